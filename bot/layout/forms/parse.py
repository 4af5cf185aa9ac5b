"""Reads the edit form back: the inverse of `edit`.

What comes back from Slack is not trusted: choices are looked up, numbers and times are parsed, and
an input that was not touched gives exactly the value that was there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field as dataclass_field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.arguments import same
from bot.layout.forms.fields import (
    EMPTY_LISTS,
    MOST_TEXT,
    NOTHING,
    Field,
    FieldKind,
    Missing,
    NotEditable,
    fields_of,
    plain_number,
)
from bot.layout.forms.schema import Schema, check_arguments, pointer
from bot.layout.text import clip
from bot.redaction.call import NO_NAMES, Names
from bot.redaction.mask import mask_text

Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The result of a submitted form.

    Attributes:
        arguments: The edited arguments, whole; None when there are errors.
        errors: For each block id one sentence, fit for `response_action: errors`.
    """

    arguments: dict[str, Any] | None = None
    errors: dict[str, str] = dataclass_field(default_factory=dict)


class _FieldError(ValueError):
    """A person's typed value does not fit; the text is for that person."""


def read_edit_form(
    schema: Schema, current: Mapping[str, Any], values: Values, masks: Names = NO_NAMES
) -> EditResult:
    """Read a submitted form.

    Args:
        schema: The tool's JSON schema.
        current: The arguments as asked for.
        values: `view.state.values` of the submission.
        masks: What the tool's author says of the arguments.

    Returns:
        The edited arguments, or the errors, each at its input. When nothing was changed, the
        arguments are exactly the current ones.

    Raises:
        InvalidInputError: There is no such form.
    """
    fields = fields_of(schema, current, masks)
    if isinstance(fields, NotEditable):
        raise InvalidInputError("this form")
    edited = dict(current)
    changed: set[str] = set()
    errors: dict[str, str] = {}
    for field in fields:
        try:
            new = _read(field, values)
        except _FieldError as fault:
            errors[field.block_id] = str(fault)
            continue
        if same(new, field.value):
            continue
        changed.add(field.name)
        if new is Missing.MISSING:
            edited.pop(field.name, None)
        else:
            edited[field.name] = new
    if not errors and changed:
        errors = place(_news(check_arguments(schema, edited), changed), fields)
    return EditResult(errors=errors) if errors else EditResult(arguments=edited)


def read_new_form(schema: Schema, values: Values) -> EditResult:
    """Read a submitted form that started empty: all that is needed must be there.

    Args:
        schema: JSON schema of the values.
        values: `view.state.values` of the submission.

    Returns:
        The values, or the errors, each at its input.

    Raises:
        InvalidInputError: There is no such form.
    """
    fields = fields_of(schema, {})
    if isinstance(fields, NotEditable):
        raise InvalidInputError("this form")
    given: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in fields:
        try:
            new = _needed(field, _read(field, values))
        except _FieldError as fault:
            errors[field.block_id] = str(fault)
            continue
        if new is not Missing.MISSING:
            given[field.name] = new
    if not errors:
        errors = place(check_arguments(schema, given), fields)
    return EditResult(errors=errors) if errors else EditResult(arguments=given)


def _needed(field: Field, value: object) -> object:
    """Return the value of an input that was left empty, when its value is needed."""
    if value is not Missing.MISSING or not field.required:
        return value
    if field.nullable:
        return None
    if field.kind in EMPTY_LISTS:
        return []
    raise _FieldError("This is needed.")


def place(found: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Put faults at their inputs.

    Args:
        found: For each JSON pointer into the arguments one sentence.
        fields: Of the form.

    Returns:
        For each block id one sentence. What belongs to no input stands at the first one.
    """
    blocks = {field.name: field.block_id for field in fields if field.kind is not FieldKind.FIXED}
    first = next(iter(blocks.values()))
    errors: dict[str, str] = {}
    for path, message in found.items():
        names = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        name, inner = (names[0], names[1:]) if names else ("", [])
        where = inner if name in blocks else names
        text = f"{'.'.join(where)}: {message}" if where else message
        errors.setdefault(blocks.get(name, first), clip(mask_text(text), 200))
    return errors


def _news(found: Mapping[str, str], changed: set[str]) -> dict[str, str]:
    """Leave out what was there before: the tool took it when it was asked for."""
    changed_paths = {pointer(name) for name in changed}
    return {
        path: message
        for path, message in found.items()
        if not path or f"/{path.split('/')[1]}" in changed_paths
    }


def _read(field: Field, values: Values) -> object:
    if field.kind is FieldKind.FIXED:
        return field.value
    block = values.get(field.block_id)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    if not isinstance(state, Mapping):
        raise _FieldError("This was not sent. Please try again.")
    return _READERS[field.kind](field, state)


def _emptied(field: Field) -> object:
    """The value of an input that has nothing in it."""
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
    raise _FieldError("This is needed.")


def _from_text(
    parse: Callable[[Field, str], object],
) -> Callable[[Field, Mapping[str, Any]], object]:
    def read(field: Field, state: Mapping[str, Any]) -> object:
        text = state.get("value")
        if text is None or text == "":
            return _emptied(field)
        if not isinstance(text, str) or len(text) > MOST_TEXT:
            raise _FieldError(f"This must be a text of at most {MOST_TEXT:,} characters.")
        text = text.replace("\r\n", "\n")
        return field.value if text == field.initial else parse(field, text)

    return read


def _text(_field: Field, text: str) -> object:
    return text


def _integer(_field: Field, text: str) -> object:
    if not _INTEGER.fullmatch(text.strip()):
        raise _FieldError("Please give a whole number, such as 3.")
    return int(text)


def _number(field: Field, text: str) -> object:
    value = _digits(text)
    whole = "." not in text and not isinstance(field.value, float)
    number: float = int(value) if whole else float(value)
    if Decimal(plain_number(number) or "NaN") != value:
        raise _FieldError("This has more digits than a number can keep.")
    return number


def _decimal(field: Field, text: str) -> object:
    value = _digits(text)
    if isinstance(field.value, int | float):
        number = float(value)
        if Decimal(plain_number(number) or "NaN") == value:
            return number if "." in text or isinstance(field.value, float) else int(value)
    return text.strip()


def _digits(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text.strip()):
        raise _FieldError("Please give a number, such as 12.50.")
    return Decimal(text.strip())


def _json(_field: Field, text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)
    except _FieldError:
        raise
    except (ValueError, RecursionError) as error:
        raise _FieldError("This is not JSON. Texts need double quotes.") from error


def _list(field: Field, text: str) -> object:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    inner = field.schema.get("items")
    if not isinstance(inner, Mapping) or inner.get("type") != "integer":
        return lines
    wrong = [line for line in lines if not _INTEGER.fullmatch(line)]
    if wrong:
        raise _FieldError("Please give whole numbers, one per line.")
    return [int(line) for line in lines]


def _refuse(name: str) -> object:
    raise _FieldError(f"{name} is not a number in JSON.")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _FieldError("This has the same name twice.")
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
    raise _FieldError("This is not one of the choices.")


def _several(field: Field, state: Mapping[str, Any]) -> object:
    options = state.get("selected_options") or []
    if not isinstance(options, list) or not all(isinstance(item, Mapping) for item in options):
        raise _FieldError("This is not one of the choices.")
    if not options and field.value in (Missing.MISSING, None):
        return field.value
    wanted = [_chosen(field, item.get("value")) for item in options]
    before = field.value if isinstance(field.value, list) else []
    kept = [item for item in before if any(same(item, other) for other in wanted)]
    return kept + [item for item in wanted if not any(same(item, other) for other in before)]


def _day(field: Field, state: Mapping[str, Any]) -> object:
    text = state.get("selected_date")
    if not text:
        return _emptied(field)
    try:
        return date.fromisoformat(text).isoformat()
    except (TypeError, ValueError) as error:
        raise _FieldError("Please give a date, such as 2026-12-01.") from error


def _moment(field: Field, state: Mapping[str, Any]) -> object:
    seconds = state.get("selected_date_time")
    if seconds is None:
        return _emptied(field)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds < 10**10:
        raise _FieldError("Please give a date and time.")
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
