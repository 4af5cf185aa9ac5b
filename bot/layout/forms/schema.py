"""JSON schema for forms: references, nullable types, and checks with plain words."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from agents.core.patterns import Pattern, PatternError
from bot.layout.text import clip
from bot.redaction.mask import mask_text
from bot.words import say

Schema = Mapping[str, Any]

FOREIGN = "x-countersign-foreign"
"""Marks the stored schema of a program. No tool of the house has it."""

_DEPTH = 20
_PATTERN_TEXT = 1_000
_MERGED = ("title", "description", "default")
_EMAIL = Pattern(r"^[^@\s]+@[^@\s]+$")
_URI = Pattern(r"^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$")
_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or bool(date.fromisoformat(value))


@_FORMATS.checks("decimal", raises=InvalidOperation)
def _is_decimal(value: object) -> bool:
    return not isinstance(value, str) or Decimal(value).is_finite()


@_FORMATS.checks("date-time", raises=ValueError)
def _is_datetime(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.fromisoformat(value))


_MORE_FORMATS = FormatChecker(formats=())
_MORE_FORMATS.checkers = {**_FORMATS.checkers}


@_MORE_FORMATS.checks("email")
def _is_email(value: object) -> bool:
    return not isinstance(value, str) or _EMAIL.finds(value)


@_MORE_FORMATS.checks("uri")
def _is_uri(value: object) -> bool:
    return not isinstance(value, str) or _URI.finds(value)


def _pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator[ValidationError]:
    """Check a pattern within a time limit, because the value comes from a form."""
    if not isinstance(value, str):
        return
    if len(value) > _PATTERN_TEXT:
        yield ValidationError("is too long to be checked")
        return
    try:
        match = re.search(pattern, value)
    except re.error:
        return  # unsupported syntax: the tool's own validation decides
    if match is None:
        yield ValidationError("does not match")


def _linear_pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator[ValidationError]:
    """Check a pattern of a program in linear time, because program and person are not trusted."""
    if isinstance(value, str) and not _is_found(pattern, value):
        yield ValidationError("mismatch")


def _is_found(pattern: str, value: str) -> bool:
    try:
        return Pattern(pattern).finds(value)
    except PatternError:
        return False


_COMPARED: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


def _limit(rule: str) -> Callable[..., Iterator[ValidationError]]:
    """Return a check of a limit for numbers, and for decimals that are texts."""
    holds = _COMPARED[rule]

    def check(
        _validator: object, limit: Any, value: object, schema: Schema
    ) -> Iterator[ValidationError]:
        number = _amount(value, schema)
        if number is not None and not holds(number, Decimal(str(limit))):
            yield ValidationError("is beyond the limit")

    return check


def _amount(value: object, schema: Schema) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and schema.get("format") != "decimal":
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


# The stubs leave `extend` without types.
_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _pattern, **{rule: _limit(rule) for rule in _COMPARED}}
)
_LinearValidator: Any = extend(_Validator, {"pattern": _linear_pattern})  # type: ignore[no-untyped-call]


def resolve(node: object, root: Schema) -> tuple[dict[str, Any], bool]:
    """Resolve references and separate null from a schema.

    Args:
        node: A part of a schema.
        root: The whole schema, to which references are limited.

    Returns:
        The schema of values other than null, and whether null is allowed. A schema that cannot be
        simplified is returned unchanged.
    """
    part = dict(node) if isinstance(node, Mapping) else {}
    nullable = False
    for _ in range(_DEPTH):
        inner, null = _one_step(part, root)
        if inner is None:
            break
        overrides = {name: part[name] for name in _MERGED if name in part}
        nullable = nullable or null
        part = {**inner, **overrides}
    return part, nullable


def check_schema(schema: Schema) -> bool:
    """Whether the value is a JSON schema of an object."""
    try:
        return _is_of_object(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return False


@lru_cache(maxsize=256)
def _is_of_object(text: str) -> bool:
    """Check a schema as text; cached, since all cards of a tool have the same schema."""
    schema = json.loads(text)
    try:
        _Validator.check_schema(schema)
    except SchemaError:
        return False
    return schema.get("type") == "object" and isinstance(schema.get("properties", {}), Mapping)


def foreign(schema: Schema) -> dict[str, Any]:
    """Return the schema of a program, marked: all of it is checked here, in linear time."""
    return {**schema, FOREIGN: True}


def as_sent(schema: Schema) -> dict[str, Any]:
    """Return the schema of a program without the mark."""
    return {name: value for name, value in schema.items() if name != FOREIGN}


def check_arguments(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Check arguments against their schema.

    The tool's own validation decides; this check finds the input that a fault belongs to. For the
    schema of a program, this check decides: it also checks `email` and `uri`, and patterns as RE2.

    Args:
        schema: JSON schema of an object.
        arguments: The arguments.

    Returns:
        A plain sentence for the JSON pointer of each fault (`/replicas`, `/tags/0`; empty for the
        whole); empty if there is none.
    """
    kind, formats = (_Validator, _FORMATS)
    if schema.get(FOREIGN) is True:
        kind, formats = (_LinearValidator, _MORE_FORMATS)
    validator = kind(schema, registry=Registry(), format_checker=formats)
    faults: dict[str, str] = {}
    try:
        for error in validator.iter_errors(dict(arguments)):
            for path, message in _explain(_deepest(error)):
                faults.setdefault(path, message)
    except (Unresolvable, RecursionError):
        faults[""] = say("error.unchecked")
    return faults


def pointer(*names: object) -> str:
    """Return a JSON pointer."""
    return "".join(f"/{str(name).replace('~', '~0').replace('/', '~1')}" for name in names)


def _one_step(node: dict[str, Any], root: Schema) -> tuple[dict[str, Any] | None, bool]:
    if "$ref" in node:
        return _target(node["$ref"], root), False
    kinds = node.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) == 1:
            return {**node, "type": others[0]}, "null" in kinds
    for name in ("anyOf", "oneOf", "allOf"):
        branches = node.get(name)
        if not isinstance(branches, list):
            continue
        others = [branch for branch in branches if branch != {"type": "null"}]
        if len(others) == 1 and isinstance(others[0], Mapping):
            rest = {key: value for key, value in node.items() if key != name}
            return {**rest, **others[0]}, len(others) < len(branches)
        if len(others) < len(branches):
            return {**node, name: others}, True
    return None, False


def _target(reference: object, root: Schema) -> dict[str, Any] | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    part: object = root
    for name in reference[2:].split("/"):
        if not isinstance(part, Mapping):
            return None
        part = part.get(name.replace("~1", "/").replace("~0", "~"))
    return dict(part) if isinstance(part, Mapping) else None


def _deepest(error: ValidationError) -> ValidationError:
    """Return the fault of the first alternative that is not null."""
    while error.context:
        branches = [inner for inner in error.context if inner.schema != {"type": "null"}]
        error = branches[0] if branches else error.context[0]
    return error


def _explain(error: ValidationError) -> Iterator[tuple[str, str]]:
    path = tuple(error.absolute_path)
    if error.validator == "required":
        names: Any = error.validator_value
        instance: Any = error.instance
        for name in names:
            if name not in instance:
                yield pointer(*path, name), say("error.required")
        return
    yield pointer(*path), _words(error)


_KINDS = {
    "string": "error.type_text",
    "integer": "error.whole",
    "number": "error.number",
    "boolean": "error.type_yes_no",
    "array": "error.type_list",
    "object": "error.type_object",
    "null": "error.type_nothing",
}
"""JSON types, each with the key of the text that asks for it."""
_FORMAT_WORDS = {
    "decimal": "error.number",
    "date": "error.date",
    "date-time": "error.date_time",
}
_OTHERS = {
    "enum": "error.choice",
    "const": "error.choice",
    "uniqueItems": "error.twice",
    "additionalProperties": "error.unknown_name",
}
_LIMITS = {
    "minimum": "error.least",
    "maximum": "error.most",
    "exclusiveMinimum": "error.more_than",
    "exclusiveMaximum": "error.less_than",
    "multipleOf": "error.multiple",
    "minLength": "error.short",
    "maxLength": "error.long",
    "minItems": "error.few_entries",
    "maxItems": "error.many_entries",
}
_PLACES = re.compile(r"\\d\{1,(\d+)\}\)\?\$$", re.ASCII)
"""The end of a decimal's pattern, with the most digits after its point."""
_EXAMPLE = 60
_DESCRIBED = 150


def _words(error: ValidationError) -> str:
    rule = str(error.validator)
    limit: Any = error.validator_value
    schema: Any = error.schema
    if rule in {"minimum", "maximum"} and {"minimum", "maximum"} <= schema.keys():
        return say("error.range", min=schema["minimum"], max=schema["maximum"])
    if rule in _LIMITS:
        return say(_LIMITS[rule], n=limit)
    if rule == "type":
        kinds = [limit] if isinstance(limit, str) else limit
        first, *others = [say(_KINDS.get(kind, "error.form")) for kind in kinds]
        return say("word.or").join([first, *(text[:1].lower() + text[1:] for text in others)])
    if rule == "format":
        return say(_FORMAT_WORDS.get(limit, "error.form"))
    if rule == "pattern":
        return _right_form(schema, is_field=len(error.absolute_path) == 1)
    return say(_OTHERS.get(rule, "error.form"))


def _right_form(schema: Schema, *, is_field: bool) -> str:
    """Describe the required form of a text, by its example or description.

    The description of a field stands below the field already.
    """
    if schema.get("format") == "decimal" and (places := _PLACES.search(schema["pattern"])):
        return say("error.places", n=int(places[1]))
    if example := _example(schema):
        return say("error.like", example=example)
    what = schema.get("description")
    if isinstance(what, str) and what.strip():
        if is_field:
            return say("error.below")
        return say("error.described", what=clip(mask_text(what.strip()), _DESCRIBED))
    return say("error.form")


def _example(schema: Schema) -> str:
    """Return a short example from a schema; empty if there is none."""
    listed = schema.get("examples")
    examples = listed if isinstance(listed, list) else [schema.get("default")]
    for example in examples:
        if isinstance(example, str) and 0 < len(example) <= _EXAMPLE:
            return example
    return ""
