"""JSON schema and validation of arguments, from a function's signature."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, SchemaValidator, core_schema, to_jsonable_python

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import AgentConfigError, ArgumentError, InvalidArgumentsError, ToolError
from agents.core.kinds import same

_PLAIN_DIGITS = 40
"""Up to this number of digits, decimals are written without an exponent."""

_KEPT = 256
"""Number of signatures whose schemas are cached."""
_PLAIN_DEFAULTS = {bool, int, float, str, type(None)}
"""Types of defaults that are equal if their text is equal."""


@dataclass(frozen=True, slots=True)
class _MultilineMarker:
    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "format": "multiline"}


Multiline = _MultilineMarker()
"""Marks a text that may have several lines: `Annotated[str, Multiline]`."""


class _Schema(GenerateJsonSchema):
    """Generates schemas without titles; decimals are text, as numbers lose digits."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's
        return False

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        places = schema.get("decimal_places")
        fraction = "" if places == 0 else rf"(\.\d{{1,{'' if places is None else places}}})?"
        json_schema: JsonSchemaValue = {
            "type": "string",
            "format": "decimal",
            "pattern": rf"^-?\d+{fraction}$",
        }
        keys = {
            "ge": "minimum",
            "gt": "exclusiveMinimum",
            "le": "maximum",
            "lt": "exclusiveMaximum",
        }
        limits = cast("Mapping[str, Decimal | None]", schema)
        for key, keyword in keys.items():
            limit = limits.get(key)
            if limit is not None:
                json_schema[keyword] = int(limit) if limit == int(limit) else float(limit)
        return json_schema


@dataclass(frozen=True, slots=True)
class Parameters:
    """The arguments of a function: their schema and validation.

    Attributes:
        names: In the order of the signature.
        schema: JSON schema of an object without additional keys.
    """

    names: tuple[str, ...]
    schema: Mapping[str, Json]
    _model: type[BaseModel]

    def canonical(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments and return them as JSON data with the defaults filled in.

        Raises:
            InvalidArgumentsError: The arguments do not fit.
        """
        given = _text(arguments)
        once = self._dump(self._parse(given))
        # If validation changed a value, check that its written form can be read again.
        if not same(once, arguments) and not self._is_read_again(once, given):
            raise InvalidArgumentsError(
                (
                    ArgumentError(
                        (), "these values change when they are read again; write them plainly"
                    ),
                )
            )
        return once

    def _is_read_again(self, once: dict[str, Json], given: str) -> bool:
        text = _text(once)
        return text == given or canonical_json(self._dump(self._parse(text))) == text

    def values(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert arguments to the Python values that the function takes.

        Raises:
            InvalidArgumentsError: The arguments do not fit.
        """
        parsed = self._parse(_text(arguments))
        return {name: getattr(parsed, _field(at)) for at, name in enumerate(self.names)}

    def values_as_shown(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Convert arguments that were already validated when people saw them.

        Checks that now fail are skipped, such as a date that must be in the future.

        Raises:
            InvalidArgumentsError: The arguments are unreadable, or differ from the shown ones.
        """
        text = _text(arguments)
        # The usual case. Only a check that now fails needs the slower validator without checks.
        try:
            parsed = self._parse(text)
        except InvalidArgumentsError:
            parsed = self._parse(text, self._unchecked)
        if canonical_json(self._dump(parsed)) != text:
            problem = "these values have changed since people were shown them"
            raise InvalidArgumentsError((ArgumentError((), problem),))
        return {name: getattr(parsed, _field(at)) for at, name in enumerate(self.names)}

    @property
    def _unchecked(self) -> SchemaValidator:
        # A nested model would otherwise use its own validator, with all its checks.
        make = cast("Callable[..., SchemaValidator]", SchemaValidator)
        return make(_tolerant(self._model.__pydantic_core_schema__), _use_prebuilt=False)

    def _parse(self, text: str, validator: SchemaValidator | None = None) -> BaseModel:
        try:
            if validator is not None:
                return cast("BaseModel", validator.validate_json(text, strict=True))
            return self._model.model_validate_json(text, strict=True)
        except ValidationError as error:
            # Without the input, which may be secret.
            problems = error.errors(include_url=False, include_input=False, include_context=False)
            raise InvalidArgumentsError(
                tuple(ArgumentError(tuple(problem["loc"]), problem["msg"]) for problem in problems)
            ) from error

    def _dump(self, parsed: BaseModel) -> dict[str, Json]:
        values = _plain(parsed.model_dump(by_alias=True))
        return cast("dict[str, Json]", to_jsonable_python(values, bytes_mode="base64"))


def _text(arguments: Mapping[str, object]) -> str:
    try:
        return canonical_json(arguments)
    except ToolError as error:
        raise InvalidArgumentsError((ArgumentError((), str(error)),)) from error


def parameters(function: Callable[..., object]) -> Parameters:
    """Read a function's signature and docstring.

    Args:
        function: Every parameter needs a type and must be accepted by name.

    Raises:
        AgentConfigError: A parameter has no type, cannot be given by name, or its type has no
            stable JSON form.
    """
    descriptions = docstring_parts(function)[1]
    hints = _hints(function)
    arguments: list[_Argument] = []
    for name, parameter in inspect.signature(function).parameters.items():
        _check_parameter(function, parameter, hints)
        default = ... if parameter.default is parameter.empty else parameter.default
        arguments.append(_Argument(name, hints[name], default, descriptions.get(name)))
    # Only comparable arguments can be keys of the cache.
    build = _build_once if all(map(_is_comparable, arguments)) else _build
    return build(_name(function), tuple(arguments))


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument: type, default (`...` for none), and description from the docstring."""

    name: str
    hint: Any
    default: Any
    description: str | None

    def __eq__(self, other: object) -> bool:
        """Whether the schemas are equal: `1`, `1.0` and `True` have different ones."""
        return isinstance(other, _Argument) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self.name, self.hint, repr(self.default), self.description


def _is_comparable(argument: _Argument) -> bool:
    """Whether an argument can be compared with one of another function."""
    try:
        hash(argument.hint)
    except TypeError:  # such as pydantic's `Field` in `Annotated`
        return False
    return argument.default is ... or type(argument.default) in _PLAIN_DEFAULTS


def docstring_parts(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """Split a Google docstring into its description and the `Args:` by name."""
    lines = inspect.cleandoc(function.__doc__ or "").splitlines()
    heads = [at for at, line in enumerate(lines) if re.fullmatch(r"[A-Z][A-Za-z ]*:", line)]
    text = "\n".join(lines[: heads[0]] if heads else lines).strip()
    descriptions: dict[str, str] = {}
    for at in heads:
        if lines[at] in {"Args:", "Arguments:", "Parameters:"}:
            descriptions.update(_described(lines[at + 1 :]))
    return text, descriptions


def _described(lines: list[str]) -> dict[str, str]:
    """Read `name (type): words` entries up to the next section."""
    descriptions: dict[str, str] = {}
    name, depth = "", 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line and not indent:
            break
        entry = re.fullmatch(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)", line.strip())
        if entry and (not name or indent <= depth):
            name, depth = entry[1], indent
            descriptions[name] = entry[2]
        elif name and line.strip():
            descriptions[name] = f"{descriptions[name]} {line.strip()}".strip()
    return descriptions


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise AgentConfigError(
            f"the types of tool {_name(function)!r} cannot be read ({error}); "
            "use types that are known where the function is defined"
        ) from error


def _check_parameter(
    function: Callable[..., object], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> None:
    where = f"parameter {parameter.name!r} of tool {_name(function)!r}"
    if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
        raise AgentConfigError(f"{where} cannot be given by name; write it as a plain parameter")
    if parameter.name not in hints:
        raise AgentConfigError(f"{where} has no type; add one, for example `{parameter.name}: str`")


def _build(tool_name: str, arguments: Sequence[_Argument]) -> Parameters:
    fields: dict[str, Any] = {
        _field(at): (
            argument.hint,
            Field(argument.default, alias=argument.name, description=argument.description),
        )
        for at, argument in enumerate(arguments)
    }
    # Errors must not repeat the input, which may be secret.
    config = ConfigDict(
        extra="forbid", validate_default=True, hide_input_in_errors=True, val_json_bytes="base64"
    )
    try:
        model = create_model("Arguments", __config__=config, **fields)
        schema = model.model_json_schema(schema_generator=_Schema)
    except (PydanticUserError, TypeError) as error:
        raise AgentConfigError(
            f"a parameter of tool {tool_name!r} has a type without a JSON schema: {error}"
        ) from error
    if _takes_a_set(model.__pydantic_core_schema__):
        raise AgentConfigError(
            f"tool {tool_name!r} takes a set, whose order changes; take a list instead"
        )
    inlined = cast("dict[str, Json]", _inline(schema, schema.get("$defs", {}), ()))
    inlined.pop("title", None)
    if '"#/$defs/' not in json.dumps(inlined):
        inlined.pop("$defs", None)
    return Parameters(tuple(argument.name for argument in arguments), inlined, model)


_VALIDATORS = {"function-after", "function-before", "function-wrap"}


def _tolerant(schema: Any) -> Any:
    """Derive a schema for validated arguments, without checks that depend on the time."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_tolerant, schema))
    if not isinstance(schema, dict):
        return schema
    kept = schema if schema.get("type") in {"date", "datetime"} else {}
    tolerant = {
        key: part if key in _NO_PARTS else _tolerant(part)
        for key, part in schema.items()
        if not (kept and key == "now_op")
    }
    if schema.get("type") in _VALIDATORS:
        called, is_wrap = schema["function"], schema["type"] == "function-wrap"
        tolerant["function"] = {
            **called,
            "function": _forgiving(called["function"], is_wrap=is_wrap),
        }
    return tolerant


def _forgiving(validate: Callable[..., Any], *, is_wrap: bool) -> Callable[..., Any]:
    """Derive a validator that returns the value unchanged where the original raises."""

    def checked(value: Any, *more: Any) -> Any:
        try:
            return validate(value, *more)
        except (ValueError, AssertionError):
            return more[0](value) if is_wrap else value

    return checked


def _takes_a_set(schema: object) -> bool:
    """Whether a validation schema contains a set anywhere."""
    match schema:
        case {"type": "set" | "frozenset"}:
            return True
        case Mapping():
            # Field names are keys of a mapping without a type, and may equal these names.
            skipped = _NO_PARTS if isinstance(schema.get("type"), str) else frozenset[str]()
            return any(_takes_a_set(part) for key, part in schema.items() if key not in skipped)
        case list() | tuple():
            return any(map(_takes_a_set, schema))
        case _:
            return False


_NO_PARTS = frozenset({"default", "expected", "metadata"})
"""Keys of a schema whose values are not part of the schema."""


_build_once = lru_cache(maxsize=_KEPT)(_build)
"""Cached: agents that are created for each thread have the same tools."""


def _inline(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Replace each `$ref` by its target, except in recursive types."""
    if isinstance(schema, list):
        return [_inline(item, definitions, inside) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and name not in inside:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {
            **_inline(definitions[name], definitions, (*inside, name)),
            **_inline(rest, definitions, inside),
        }
    return {key: _inline(value, definitions, inside) for key, value in schema.items()}


def _plain(value: Any) -> Any:
    """Write decimals without an exponent, so that people can read them easily."""
    if isinstance(value, Decimal):
        short = value.is_finite() and abs(value.adjusted()) <= _PLAIN_DIGITS
        return format(value, "f") if short else str(value)
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _field(at: int) -> str:
    # Not the parameter's name: `copy` or `schema` would clash with pydantic's.
    return f"a{at}"


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", function))
