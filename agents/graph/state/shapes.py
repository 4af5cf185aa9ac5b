"""Validation of answers: by the stored JSON schema, then by the Python type.

The process that receives an answer may never have run the node that asked. It therefore checks the
answer with the stored schema at once; the type is checked when the node runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
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
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        lines = [(".".join(map(str, problem["loc"])), problem["msg"]) for problem in problems]
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
    target = root
    for step in reference.removeprefix("#/").split("/"):
        target = target.get(step) if isinstance(target, dict) else None
    return target


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


class ModelSchema:
    """A pydantic model as the schema of a state.

    Only validators of the model convert values, and their results are stored. Validators must
    therefore be idempotent.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """The fields by name."""
        return self._model.model_fields

    def read(self, given: object) -> dict[str, object] | None:
        """Return the fields that an instance was created with, or None for another object."""
        if not isinstance(given, self._model):
            return None
        return {
            name: getattr(given, name)
            for name, field in self.fields.items()
            if name in given.model_fields_set or getattr(given, name) != _default(field)
        }

    def view(self, values: Mapping[str, Any]) -> BaseModel:
        """Return the state as a model, without validating it again."""
        known = {name: value for name, value in values.items() if name in self.fields}
        return self._model.model_construct(**known)

    def validated(
        self, values: Mapping[str, Any], written: Collection[str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Validate a whole state. As in pydantic, defaults that were not written are not validated.

        Returns:
            The validated state and no faults; or the faults by field, where an empty name means the
            whole state.
        """
        given = {
            name: value
            for name, value in values.items()
            if name in self.fields and (name in written or value != _default(self.fields[name]))
        }
        try:
            made = self._model.model_validate(given, strict=True, by_name=True, by_alias=False)
        except ValidationError as error:
            return {}, _faults(error)
        except Exception as error:  # noqa: BLE001 - code of the graph's author: a validator
            return {}, {"": f"a validator failed: {type(error).__name__}: {error}"}
        return {name: getattr(made, name) for name in self.fields}, {}

    def faults_of(self, update: Mapping[str, Any]) -> dict[str, str]:
        """Return the faults of single fields. Faults between fields need the whole state."""
        _, faults = self.validated(update, update)
        return {name: fault for name, fault in faults.items() if name in update}


def _default(field: FieldInfo) -> object:
    takes_data = field.default_factory_takes_validated_data is True
    return object() if takes_data else field.get_default(call_default_factory=True)


def _faults(error: ValidationError) -> dict[str, str]:
    faults: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        line = fault_line(fault["loc"], fault["msg"])
        faults[name] = f"{faults[name]}; {line}" if name in faults else line
    return faults


def fault_line(path: Sequence[int | str], message: str) -> str:
    """Format a fault as a line: field and message."""
    return f"{'.'.join(map(str, path))}: {message}" if path else message
