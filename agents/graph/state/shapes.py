"""Validation of answers: by the stored JSON schema, then by the Python type.

The process that receives an answer may never have run the node that asked. It therefore checks the
answer with the stored schema at once; the type is checked when the node runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from agents.core.codec import Json
from agents.graph.errors import GraphBuildError

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
}


def schema_of(kind: object) -> dict[str, Json]:
    """Return the JSON schema of a type of answers."""
    try:
        return cast("dict[str, Json]", TypeAdapter(cast("Any", kind)).json_schema())
    except (PydanticUserError, NameError, TypeError) as error:
        raise GraphBuildError(
            f"{kind!r} cannot be the type of an answer; use JSON types, a dataclass or a pydantic "
            f"model: {error}"
        ) from error


def read_answer(kind: object, answer: object) -> object:
    """Convert an answer to a type in strict mode: "yes" is not a bool."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", kind))
    try:
        if is_json(answer):
            return adapter.validate_json(to_json(answer), strict=True)
        return adapter.validate_python(answer, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        lines = [(".".join(map(str, one["loc"])), one["msg"]) for one in found]
        raise ValueError("; ".join(f"{at}: {m}" if at else m for at, m in lines)) from error


def is_json(value: object) -> bool:
    """Whether a value is plain JSON data."""
    match value:
        case None | bool() | int() | float() | str():
            return True
        case list():
            return all(is_json(item) for item in value)
        case dict():
            return all(isinstance(key, str) and is_json(item) for key, item in value.items())
        case _:
            return False


def misfit(schema: Json, value: object, root: Json = None) -> str:
    """Describe why JSON data does not match a schema; empty if it does or is unknown.

    Supports types, enums, constants, required and unknown keys, items, alternatives and references.
    Other keywords are left to the type itself.
    """
    if not isinstance(schema, dict):
        return ""
    root = root if root is not None else schema
    if "$ref" in schema:
        return misfit(_resolve(str(schema["$ref"]), root), value, root)
    return (
        _wrong_kind(schema, value)
        or _wrong_choice(schema, value, root)
        or _wrong_fields(schema, value, root)
        or _wrong_items(schema, value, root)
    )


def _resolve(reference: str, root: Json) -> Json:
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _wrong_kind(schema: Mapping[str, Json], value: object) -> str:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return ""
    if kind in {"integer", "number"}:
        numbers = (int,) if kind == "integer" else (int, float)
        fits = isinstance(value, numbers) and not isinstance(value, bool)
    else:
        fits = isinstance(value, _KINDS.get(kind, (object,)))
    return "" if fits else f"expected {kind}, got {type(value).__name__}"


def _wrong_choice(schema: Mapping[str, Json], value: object, root: Json) -> str:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list) and not any(_same(choice, value) for choice in choices):
        return f"expected one of {', '.join(map(repr, choices))}"
    options = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(options, list):
        faults = [misfit(option, value, root) for option in options]
        return "; or ".join(faults) if all(faults) and faults else ""
    return ""


def _same(choice: Json, value: object) -> bool:
    return choice == value and isinstance(choice, bool) == isinstance(value, bool)


def _wrong_fields(schema: Mapping[str, Json], value: object, root: Json) -> str:
    if not isinstance(value, dict):
        return ""
    required, fields = schema.get("required"), schema.get("properties")
    missing = [name for name in required if name not in value] if isinstance(required, list) else []
    if missing:
        return f"{', '.join(map(str, missing))}: missing"
    for name, field in fields.items() if isinstance(fields, dict) else ():
        fault = misfit(field, value[name], root) if name in value else ""
        if fault:
            return f"{name}: {fault}"
    return ""


def _wrong_items(schema: Mapping[str, Json], value: object, root: Json) -> str:
    items = schema.get("items")
    if not isinstance(value, list) or not isinstance(items, dict):
        return ""
    faults = (f"{at}: {misfit(items, item, root)}" for at, item in enumerate(value))
    return next((fault for fault in faults if not fault.endswith(": ")), "")
