"""Parses the edit form: the inverse of `edit`.

Data from Slack is not trusted: choices are looked up, numbers and times are parsed, and an
unchanged input returns exactly the original value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from bot.layout.blocks import Values, read_state
from bot.layout.data import same
from bot.layout.forms.fields import (
    EMPTY_LISTS,
    MOST_TEXT,
    NOTHING,
    Field,
    FieldKind,
    plain_number,
)
from bot.layout.forms.leaves import Missing, Path
from bot.layout.text import clip
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.typed import typed_in_form

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
"""A number that is a thousand times larger where the dot groups digits."""
_DECIMAL = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The result of a submitted form.

    Attributes:
        arguments: All edited arguments; None if there are errors.
        errors: A sentence for each block id, for `response_action: errors`.
    """

    arguments: dict[str, Any] | None = None
    errors: dict[str, str] = dataclass_field(default_factory=dict)


class _FieldError(ValueError):
    """A typed value is invalid; the text is for the person who typed it."""


def read_fields(
    fields: Sequence[Field], values: Values, *, is_new: bool = False
) -> tuple[dict[Path, object], dict[str, str]]:
    """Parse inputs.

    Args:
        fields: The fields of the inputs.
        values: The submitted values.
        is_new: Whether the form started empty, so that required values must be given.

    Returns:
        The values by path, and the errors by block.
    """
    new: dict[Path, object] = {}
    errors: dict[str, str] = {}
    for field in fields:
        try:
            value = _read(field, values)
            new[field.path] = _needed(field, value) if is_new else value
        except _FieldError as fault:
            errors[field.block_ids[0]] = str(fault)
    return new, errors


def _needed(field: Field, value: object) -> object:
    """Return the value of an empty input if it is required."""
    if value is not Missing.MISSING or not field.required:
        return value
    if field.nullable:
        return None
    if field.kind in EMPTY_LISTS:
        return []
    raise _FieldError(say("error.required"))


def place(faults: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Assign faults to inputs.

    Args:
        faults: A sentence for each JSON pointer into the arguments.
        fields: The shown fields.

    Returns:
        A sentence for each block id. Faults without an input are assigned to the first one.
    """
    blocks = {
        field.path: field.block_ids[0] for field in fields if field.kind is not FieldKind.FIXED
    }
    first = next(iter(blocks.values()))
    errors: dict[str, str] = {}
    for pointed, message in faults.items():
        names = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointed.split("/")[1:])
        block_id, inner = _nearest(blocks, names)
        text = f"{'.'.join(inner)}: {message}" if inner else message
        errors.setdefault(block_id or first, clip(mask_text(text), 200))
    return errors


def _nearest(blocks: Mapping[Path, str], names: Path) -> tuple[str, Path]:
    """Return the block of a fault, and the names within it; empty if it has no block."""
    for length in range(len(names), 0, -1):
        if names[:length] in blocks:
            return blocks[names[:length]], names[length:]
    for length in range(len(names), 0, -1):  # for an object: its first input
        for path, block_id in blocks.items():
            if path[:length] == names[:length]:
                return block_id, names[length:]
    return "", names


def _read(field: Field, values: Values) -> object:
    if field.kind is FieldKind.FIXED:
        return field.value
    states = [read_state(values, block_id) for block_id in field.block_ids]
    if not all(states):
        raise _FieldError(say("error.not_sent"))
    return _READERS[field.kind](field, states[0] if len(states) == 1 else _joined(states))


def _joined(states: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Join the parts of a long text."""
    texts = [state.get("value") or "" for state in states]
    if not all(isinstance(text, str) and len(text) <= MOST_TEXT for text in texts):
        raise _FieldError(say("error.part_long", n=f"{MOST_TEXT:,}"))
    return {"value": "".join(texts)}


def _emptied(field: Field) -> object:
    """Return the value of an empty input."""
    if not field.initial and field.value in (Missing.MISSING, None, "", []):
        return field.value
    if field.kind is FieldKind.LIST:
        return []
    if field.nullable:
        return None
    if field.takes_empty_text:
        return ""
    if not field.required:
        return Missing.MISSING
    raise _FieldError(say("error.required"))


def _from_text(
    parse: Callable[[Field, str], object],
) -> Callable[[Field, Mapping[str, Any]], object]:
    def read(field: Field, state: Mapping[str, Any]) -> object:
        text = state.get("value")
        if text is None or text == "":
            return _emptied(field)
        most = MOST_TEXT * len(field.parts)
        if not isinstance(text, str) or len(text) > most:
            raise _FieldError(say("error.long", n=most))
        text = typed_in_form(text.replace("\r\n", "\n"), field.initial)
        return field.value if text == field.initial else parse(field, text)

    return read


def _text(_field: Field, text: str) -> object:
    return text


def _integer(_field: Field, text: str) -> object:
    if not _INTEGER.fullmatch(text.strip()):
        raise _FieldError(say("error.whole"))
    return int(text)


def _number(field: Field, text: str) -> object:
    value = _digits(field, text)
    whole = "." not in text and not isinstance(field.value, float)
    number: float = int(value) if whole else float(value)
    if Decimal(plain_number(number) or "NaN") != value:
        raise _FieldError(say("error.digits"))
    return number


def _decimal(field: Field, text: str) -> object:
    value = _digits(field, text)
    if isinstance(field.value, int | float):
        number = float(value)
        if Decimal(plain_number(number) or "NaN") == value:
            return number if "." in text or isinstance(field.value, float) else int(value)
    return format(value, "f")  # `.5` and `+5` as tools read them, with all digits


def _digits(field: Field, text: str) -> Decimal:
    text = text.strip()
    if not _DECIMAL.fullmatch(text):
        raise _FieldError(say("error.number"))
    # Half of the world writes a thousand as 1.000.
    if _THOUSANDS.fullmatch(text) and "." not in field.initial:
        raise _FieldError(say("error.thousands", whole=text.replace(".", ""), part=f"{text}0"))
    return Decimal(text)


def _json(_field: Field, text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)
    except _FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise _FieldError(say("error.json", where=_where(error))) from error


def _where(error: Exception) -> str:
    """Return the position of a fault in a JSON text."""
    if isinstance(error, json.JSONDecodeError):
        return say("error.json_line", n=error.lineno)
    return say("error.json_deep")


def _list(field: Field, text: str) -> object:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    inner = field.schema.get("items")
    if not isinstance(inner, Mapping) or inner.get("type") != "integer":
        return lines
    wrong = [line for line in lines if not _INTEGER.fullmatch(line)]
    if wrong:
        raise _FieldError(say("error.lines"))
    return [int(line) for line in lines]


def _refuse(name: str) -> object:
    raise _FieldError(say("error.json_number", name=name))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _FieldError(say("error.json_twice"))
    return made


def _choice(field: Field, state: Mapping[str, Any]) -> object:
    option = state.get("selected_option")
    if option is None:
        return _emptied(field)
    value = option.get("value") if isinstance(option, Mapping) else None
    if value == NOTHING and field.nullable:
        return None
    return _chosen(field, value)


def _chosen(field: Field, value: object) -> object:
    for index, choice in enumerate(field.choices):
        if value == str(index):
            return choice
    raise _FieldError(say("error.choice"))


def _several(field: Field, state: Mapping[str, Any]) -> object:
    options = state.get("selected_options") or []
    if not isinstance(options, list) or not all(isinstance(item, Mapping) for item in options):
        raise _FieldError(say("error.choice"))
    if not options and field.value in (Missing.MISSING, None):
        return field.value
    wanted = [_chosen(field, item.get("value")) for item in options]
    before = field.value if isinstance(field.value, list) else []
    unchanged = [item for item in before if any(same(item, other) for other in wanted)]
    return unchanged + [item for item in wanted if not any(same(item, other) for other in before)]


def _day(field: Field, state: Mapping[str, Any]) -> object:
    text = state.get("selected_date")
    if not text:
        return _emptied(field)
    try:
        return date.fromisoformat(text).isoformat()
    except (TypeError, ValueError) as error:
        raise _FieldError(say("error.date")) from error


def _moment(field: Field, state: Mapping[str, Any]) -> object:
    seconds = state.get("selected_date_time")
    if seconds is None:
        return _emptied(field)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds < 10**10:
        raise _FieldError(say("error.datetime"))
    if str(seconds) == field.initial:
        return field.value
    before = (
        datetime.fromisoformat(field.value)
        if isinstance(field.value, str) and field.value
        else None
    )
    text = datetime.fromtimestamp(seconds, tz=before.tzinfo if before else UTC).isoformat()
    return text.replace("+00:00", "Z")


_READERS: dict[FieldKind, Callable[[Field, Mapping[str, Any]], object]] = {
    FieldKind.TEXT: _from_text(_text),
    FieldKind.LINES: _from_text(_text),
    FieldKind.LIST: _from_text(_list),
    FieldKind.INTEGER: _from_text(_integer),
    FieldKind.NUMBER: _from_text(_number),
    FieldKind.DECIMAL: _from_text(_decimal),
    FieldKind.JSON: _from_text(_json),
    FieldKind.BOOLEAN: _choice,
    FieldKind.CHOICE: _choice,
    FieldKind.CHOICES: _several,
    FieldKind.DATE: _day,
    FieldKind.DATETIME: _moment,
}
