"""The inputs of the edit form: one per argument, with its current value.

The fields depend only on the tool's JSON schema and the current arguments, so the same fields are
built again when the form is submitted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from bot.layout.data import same
from bot.layout.forms.leaves import Leaf, Missing, Path, leaves_of
from bot.layout.forms.schema import Schema, check_schema, resolve
from bot.layout.text import clip, is_plain, width
from bot.redaction.call import is_masked, mask_value
from bot.redaction.masks import NO_NAMES, Names
from bot.words import say

MOST_FIELDS = 500
MOST_TEXT = 3_000
"""The maximum number of characters of one input."""
MOST_PARTS = 10
"""The maximum number of inputs for one long text. A longer text cannot be edited."""
_PART = 2_800
MOST_FIXED = 300
"""Number of characters shown of a value that cannot be edited."""
MOST_CHOICES = 100
"""The maximum number of choices in a menu; more choices need a search."""
MOST_SEARCHED = 5_000
MOST_CHECKS = 10
OPTION = 75
NOTHING = "nothing"
"""The value of the choice for null."""
_LONG = 80
_SAFE_INTEGER = 2**53


class FieldKind(StrEnum):
    """The kind of input for an argument."""

    FIXED = "fixed"  # a secret, read-only, or too long: cannot be edited
    TEXT = "text"
    LINES = "lines"
    LIST = "list"  # one entry per line
    INTEGER = "integer"
    NUMBER = "number"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"
    DATE = "date"
    DATETIME = "datetime"
    JSON = "json"


LONG_KINDS = frozenset({FieldKind.LINES, FieldKind.LIST, FieldKind.JSON})
"""Kinds whose text may be split into several inputs."""
EMPTY_LISTS = frozenset({FieldKind.CHOICES, FieldKind.LIST})
"""Kinds whose empty input means the empty list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEditable:
    """The reason why the arguments have no form.

    Attributes:
        reason: The end of a sentence for people.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One argument in the form.

    Attributes:
        block_id: Id of its block, and prefix of the ids of its parts.
        path: Name of the argument, and of the fields in it that lead to the value.
        kind: The kind of input.
        schema: The schema of values other than null.
        nullable: Whether null is allowed.
        required: Whether the argument is required.
        value: The current value, or `Missing.MISSING`.
        initial: Initial content of the input: text, position of a choice, time in seconds; empty
            for none.
        choices: The values of a menu.
        groups: Titles of the enclosing objects, outermost first.
    """

    block_id: str
    path: Path
    kind: FieldKind
    schema: Mapping[str, Any]
    nullable: bool
    required: bool
    value: object
    initial: str = ""
    choices: tuple[object, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the value."""
        return self.path[-1]

    @property
    def parts(self) -> tuple[str, ...]:
        """The text of each of its inputs.

        Slack strips white space at the ends of an input, so no part begins or ends with any.
        """
        if self.kind not in LONG_KINDS or len(self.initial) <= MOST_TEXT:
            return (self.initial,)
        return tuple(_parts(self.initial))

    @property
    def block_ids(self) -> tuple[str, ...]:
        """Block ids of all its parts."""
        count = len(self.parts)
        if count == 1:
            return (self.block_id,)
        return tuple(f"{self.block_id}_{number}" for number in range(count))

    @property
    def is_searched(self) -> bool:
        """Whether there are too many choices for a menu."""
        return len(self.choices) >= MOST_CHOICES

    @property
    def may_be_empty(self) -> bool:
        """Whether the input may be empty."""
        if self.nullable or not self.required:
            return True
        if self.kind in EMPTY_LISTS:
            return not self.schema.get("minItems")
        return self.takes_empty_text

    @property
    def takes_empty_text(self) -> bool:
        """Whether an empty text is a valid value."""
        if self.kind not in {FieldKind.TEXT, FieldKind.LINES}:
            return False
        if self.required:  # Slack would call the input optional
            return self.value == ""
        plain = not self.schema.get("minLength") and "pattern" not in self.schema
        return (plain and "format" not in self.schema) or self.value == ""


def fields_of(
    schema: Schema, current: Mapping[str, Any], masks: Names = NO_NAMES
) -> tuple[Field, ...] | NotEditable:
    """Build the fields of a form, in the order of the schema, then of the arguments.

    Args:
        schema: The tool's JSON schema.
        current: The requested arguments.
        masks: The tool author's declarations of the arguments.

    Returns:
        The fields, or the reason why there is no form.
    """
    if not check_schema(schema):
        return NotEditable(reason=say("form.edit_no_schema"))
    fields = tuple(
        _field(index, leaf, schema, masks) for index, leaf in enumerate(leaves_of(schema, current))
    )
    if len(fields) > MOST_FIELDS:
        return NotEditable(reason=say("form.edit_too_many", n=MOST_FIELDS))
    if all(field.kind is FieldKind.FIXED for field in fields):
        return NotEditable(reason=say("form.edit_nothing_open"))
    return fields


def option_label(value: object) -> str:
    """Return the label of a choice."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain_number(value: float | Decimal) -> str:
    """Format a number exactly without an exponent; empty if too long or not finite."""
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite() or number.adjusted() > 20 or number.adjusted() < -20:
        return ""
    text = format(number, "f")
    return text if len(text) <= 30 else ""


def _field(index: int, leaf: Leaf, schema: Schema, masks: Names) -> Field:
    value = leaf.value
    if value is not Missing.MISSING and (leaf.node.get("readOnly") or _is_masked(leaf, masks)):
        kind, initial, choices = _fixed(leaf, masks)
    else:
        kind, initial, choices = _shape(leaf.node, schema, value)
        if not _fits(kind, initial):
            kind, initial, choices = _fixed(leaf, masks)
    return Field(
        block_id=f"argument_{index}",
        path=leaf.path,
        kind=kind,
        schema=leaf.node,
        nullable=leaf.nullable,
        required=leaf.required,
        value=value,
        initial=initial,
        choices=choices,
        groups=leaf.groups,
    )


def _fixed(leaf: Leaf, masks: Names) -> _Shape:
    return FieldKind.FIXED, clip(mask_value(leaf.path[-1], leaf.value, masks), MOST_FIXED), ()


def _is_masked(leaf: Leaf, masks: Names) -> bool:
    """Whether a value is a secret, by its own name or the name of an enclosing object."""
    value = leaf.value
    for name in reversed(leaf.path[1:]):
        value = {name: value}
    return is_masked(leaf.path[0], value, masks)


def _fits(kind: FieldKind, initial: str) -> bool:
    """Whether a text fits into the inputs of a form."""
    if kind not in LONG_KINDS:
        return len(initial) <= MOST_TEXT and width(initial) <= 5 * MOST_TEXT
    if len(initial) > MOST_TEXT * MOST_PARTS or width(initial) > 5 * MOST_TEXT * MOST_PARTS:
        return False
    parts = list(_parts(initial)) if len(initial) > MOST_TEXT else [initial]
    return len(parts) <= MOST_PARTS and all(
        len(part) <= MOST_TEXT and width(part) <= 5 * MOST_TEXT for part in parts
    )


def _parts(text: str) -> Iterator[str]:
    """Split a text between characters that are not white space."""
    start = 0
    while len(text) - start > _PART:
        end = start + _PART
        while end > start and (text[end - 1].isspace() or text[end].isspace()):
            end -= 1
        if end == start:  # only white space for the length of a part: see `_fits`
            yield text[start:]
            return
        yield text[start:end]
        start = end
    yield text[start:]


_Shape = tuple[FieldKind, str, tuple[object, ...]]


def _shape(node: Schema, root: Schema, value: object) -> _Shape:
    for shape in _shapes(node, root, value):
        return shape
    return FieldKind.JSON, _json_text(value), ()


def _shapes(node: Schema, root: Schema, value: object) -> Iterator[_Shape]:
    """Yield the possible inputs for a value, best first."""
    empty = value is Missing.MISSING or value is None
    choices = _choices_in(node)
    if choices:
        position = _position(choices, value)
        if empty or position:
            yield FieldKind.CHOICE, position, choices
        return
    kinds = _kinds(node)
    if kinds == {"array"}:
        yield from _several(node, root, value)
    elif kinds == {"boolean"} and (empty or isinstance(value, bool)):
        yield FieldKind.BOOLEAN, "" if empty else _json_text(value), (True, False)
    elif kinds & {"integer", "number"}:
        yield from _numeric(kinds, value)
    elif kinds == {"string"} and (empty or isinstance(value, str)):
        yield from _textual(node, value if isinstance(value, str) else "")


def _kinds(node: Schema) -> set[str]:
    """Return the types that a schema allows; empty if it names none."""
    kind = node.get("type")
    if isinstance(kind, str):
        return {kind}
    branches = node.get("anyOf", ())
    kinds = [branch.get("type") if isinstance(branch, Mapping) else None for branch in branches]
    return {kind for kind in kinds if isinstance(kind, str)} if all(kinds) else set()


def _numeric(kinds: set[str], value: object) -> Iterator[_Shape]:
    empty = value is Missing.MISSING or value is None
    if kinds == {"number", "string"}:
        yield from _decimal(value)
        return
    text = _number_text(value)
    if kinds == {"integer"} and (empty or (text and isinstance(value, int))):
        yield FieldKind.INTEGER, text, ()
    elif kinds in ({"number"}, {"number", "integer"}) and (empty or text):
        yield FieldKind.NUMBER, text, ()


def _decimal(value: object) -> Iterator[_Shape]:
    """Yield inputs for pydantic's decimals: a number, or a text that keeps its digits."""
    if value is Missing.MISSING or value is None:
        yield FieldKind.DECIMAL, "", ()
    elif isinstance(value, str) and value and is_plain(value) and "\n" not in value:
        yield FieldKind.DECIMAL, value, ()
    elif text := _number_text(value):
        yield FieldKind.DECIMAL, text, ()


def _number_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if isinstance(value, int):
        return str(value) if abs(value) <= _SAFE_INTEGER else ""
    return plain_number(value) if math.isfinite(value) else ""


def _textual(node: Schema, value: str) -> Iterator[_Shape]:
    form = node.get("format")
    if form == "decimal":
        yield from _decimal(value or Missing.MISSING)
    if form == "date" and (not value or _is_day(value)):
        yield FieldKind.DATE, value, ()
    if form == "date-time" and (not value or _seconds(value)):
        yield FieldKind.DATETIME, _seconds(value), ()
    if not is_plain(value):
        return  # edited as JSON, where invisible characters are spelled out
    many = form in {"multiline", "textarea"} or "\n" in value or len(value) > _LONG
    yield FieldKind.LINES if many else FieldKind.TEXT, value, ()


def _is_day(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _seconds(value: str) -> str:
    """Convert a time to Slack's picker value; empty if it has no zone or is invalid."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return ""
    if moment.tzinfo is None:
        return ""
    seconds = math.floor(moment.timestamp())
    return str(seconds) if 10**9 <= seconds < 10**10 else ""


def _several(node: Schema, root: Schema, value: object) -> Iterator[_Shape]:
    inner, nullable = resolve(node.get("items"), root)
    choices = _choices_in(inner)
    if nullable:
        return
    if not choices:
        yield from _listed(inner, value)
        return
    if value is Missing.MISSING or value is None:
        yield FieldKind.CHOICES, "", choices
    elif isinstance(value, list):
        places = [_position(choices, item) for item in value]
        if all(places) and len(set(places)) == len(places):
            yield FieldKind.CHOICES, ",".join(places), choices


def _listed(node: Schema, value: object) -> Iterator[_Shape]:
    """Yield an input for texts or integers, one per line, if it can restore the value."""
    if _kinds(node) not in ({"string"}, {"integer"}) or set(node) & {"format", "contentEncoding"}:
        return
    if value is Missing.MISSING or value is None:
        yield FieldKind.LIST, "", ()
    elif isinstance(value, list):
        lines = [item if isinstance(item, str) else _number_text(item) for item in value]
        wanted = str if _kinds(node) == {"string"} else int
        fits = all(type(item) is wanted for item in value)
        if fits and all(line and line == " ".join(line.split()) for line in lines):
            text = "\n".join(lines)
            if is_plain(text):
                yield FieldKind.LIST, text, ()


def _choices_in(node: Schema) -> tuple[object, ...]:
    """Return the values of an enumeration; empty if there is none that fits a menu."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(values, list):
        return ()
    choices = tuple(item for item in values if item is not None)
    labels = [option_label(item) for item in choices]
    fits = all(label.strip() and width(label) <= OPTION and is_plain(label) for label in labels)
    few = 0 < len(choices) <= MOST_SEARCHED and len(set(labels)) == len(labels)
    scalar = all(isinstance(item, str | int | float) for item in choices)
    return choices if fits and few and scalar and None not in values else ()


def _position(choices: tuple[object, ...], value: object) -> str:
    for index, choice in enumerate(choices):
        if same(choice, value):
            return str(index)
    return ""


def _json_text(value: object) -> str:
    if value is Missing.MISSING:
        return ""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) > MOST_TEXT * MOST_PARTS:  # too long even for several inputs
        return line
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if len(text) > MOST_TEXT * MOST_PARTS or is_plain(text):
        return text
    return json.dumps(value, indent=2)
