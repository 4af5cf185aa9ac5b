"""The keys of a graph's state: their types, defaults and reducers."""

from __future__ import annotations

import dataclasses
import inspect
import types as pytypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from agents.core.codec import Json, encode
from agents.core.errors import UnstorableValueError
from agents.graph.errors import GraphBuildError, StateUpdateError
from agents.graph.options import is_async
from agents.graph.state.shapes import ModelSchema, fault_line

Values: TypeAlias = dict[str, Any]
Reducer: TypeAlias = Callable[[Any, Any], object]

_EMPTY: dict[object, Callable[[], object]] = {
    kind: kind for kind in (list, dict, str, int, float, tuple, bool)
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One key of the state.

    Attributes:
        name: The key.
        kind: The type of its values.
        reducer: Merges an update into the value; None replaces the value.
        fault: Describes what is wrong with a value; empty if it is valid.
        default: Creates the initial value; None leaves the key out.
    """

    name: str
    kind: object
    reducer: Reducer | None
    fault: Callable[[object], str]
    default: Callable[[], object] | None


class Channels:
    """All keys of a state.

    Args:
        schema: A TypedDict, a dataclass or a pydantic model. `Annotated[list, add]` gives a key a
            reducer: a function of the old value and the update.

    Raises:
        GraphBuildError: The schema is none of these.
    """

    def __init__(self, schema: type) -> None:
        self._model = _model_of(schema)
        channels = _read_model(schema, self._model) if self._model else _read(schema)
        self._channels = {channel.name: channel for channel in channels}

    @property
    def names(self) -> tuple[str, ...]:
        """The keys, in the order of the schema."""
        return tuple(self._channels)

    def has_reducer(self, name: str) -> bool:
        """Whether updates of a key are merged instead of replacing the value."""
        return self._channels[name].reducer is not None

    def schemas(self) -> dict[str, Json]:
        """JSON schemas by key, for keys with a self-contained schema."""
        schemas = {name: _schema(channel.kind) for name, channel in self._channels.items()}
        return {name: schema for name, schema in schemas.items() if schema}

    def initial(self) -> Values:
        """Return the state before the first write."""
        return {c.name: c.default() for c in self._channels.values() if c.default is not None}

    def filled(self, values: Mapping[str, Any]) -> Values:
        """Add the defaults of missing keys, since the schema may be newer than the state."""
        missing = {key: value for key, value in self.initial().items() if key not in values}
        return {**missing, **values}

    def given(self, given: object, who: str) -> dict[str, object]:
        """Read the input of a graph: a dict by key, or an instance of the state's model."""
        values = self._model.read(given) if self._model else None
        if values is None and isinstance(given, Mapping):
            values = dict(given)
        if values is None:
            wanted = "a dict by key of the state" + (" or its model" if self._model else "")
            raise StateUpdateError(who, f"expected {wanted}, got a {type(given).__name__}")
        return values

    def view(self, values: Values) -> Any:
        """Return the state as nodes and routers receive it: a model, or else a dict."""
        return self._model.view(values) if self._model else values

    def misfit(self, values: Values) -> str:
        """Return why a stored state does not fit the current schema; empty if it fits."""
        if self._model is not None:
            _, faults = self._model.validated(values, ())
            return "; ".join(faults.values())
        for name, channel in self._channels.items():
            is_default = channel.default is not None and channel.default() == values.get(name)
            fault = channel.fault(values[name]) if name in values and not is_default else ""
            if fault:
                return f"{name!r} is of the wrong type: {fault}"
        return ""

    def check(self, update: Mapping[str, object], who: str) -> Values:
        """Check an update before it is applied."""
        for key, value in update.items():
            channel = self._channel(key, who)
            _encode(value, key, who)
            if channel.reducer is None and self._model is None:
                _refuse_misfit(channel, value, who)
        if self._model is not None:
            plain = {key: value for key, value in update.items() if not self.has_reducer(key)}
            _refuse_faults(self._model.faults_of(plain), {}, who)
        return dict(update)

    def merge(self, values: Values, updates: Iterable[tuple[str, Mapping[str, object]]]) -> Values:
        """Apply the updates of one step, pairs of writer and update, in order."""
        merged, writers = deepcopy(self.filled(values)), dict[str, str]()
        last = "the state"
        for who, update in updates:
            last = who
            for key, value in self.check(update, who).items():
                channel = self._channel(key, who)
                if channel.reducer is None and key in writers:
                    raise StateUpdateError(
                        who,
                        f"{writers[key]} writes {key!r} in the same step; give the key a reducer, "
                        "as in `Annotated[list, add]`, or let one of them write it",
                    )
                writers[key] = who
                merged[key] = self._reduced(channel, merged, deepcopy(value), who)
        return self._whole(merged, writers, last)

    def replace(self, values: Values, edit: Mapping[str, object], who: str) -> Values:
        """Replace values without reducers."""
        if not isinstance(edit, Mapping):
            raise StateUpdateError(who, f"expected a dict, got a {type(edit).__name__}")
        for key, value in edit.items():
            channel = self._channel(key, who)
            if self._model is None:
                _refuse_misfit(channel, value, who)
            _encode(value, key, who)
        edited = {**deepcopy(values), **deepcopy(dict(edit))}
        return self._whole(edited, dict.fromkeys(edit, who), who)

    def _whole(self, values: Values, writers: Mapping[str, str], who: str) -> Values:
        """Validate the whole state if the schema is a model."""
        if self._model is None:
            return values
        made, faults = self._model.validated(values, writers)
        _refuse_faults(faults, writers, who)
        for key, value in made.items():
            _encode(value, key, who)
        return made

    def _reduced(self, channel: Channel, values: Values, value: object, who: str) -> object:
        if channel.reducer is None or channel.name not in values:
            result = value
        else:
            try:
                result = channel.reducer(values[channel.name], value)
            except Exception as error:
                fault = f"the reducer of {channel.name!r} failed: {type(error).__name__}: {error}"
                raise StateUpdateError(who, fault) from error
        if self._model is None:
            _refuse_misfit(channel, result, who)
        _encode(result, channel.name, who)
        return result

    def _channel(self, key: str, who: str) -> Channel:
        if key not in self._channels:
            known = ", ".join(self._channels)
            raise StateUpdateError(who, f"the state has no key {key!r}; it has: {known}")
        return self._channels[key]


def _refuse_faults(faults: Mapping[str, str], writers: Mapping[str, str], who: str) -> None:
    for name, fault in faults.items():
        raise StateUpdateError(writers.get(name, who), f"the model refuses it: {fault}")


def _refuse_misfit(channel: Channel, value: object, who: str) -> None:
    fault = channel.fault(value)
    if fault:
        raise StateUpdateError(who, f"{channel.name!r} is of the wrong type: {fault}")


def _encode(value: object, key: str, who: str) -> None:
    try:
        encode(value)
    except UnstorableValueError as error:
        error.add_note(f"it is the value of {key!r} in the update of {who}")
        raise


def _read(schema: type) -> list[Channel]:
    defaults = _defaults(schema)
    try:
        hints = get_type_hints(schema, include_extras=True)
    except NameError as error:
        raise GraphBuildError(
            f"the types of {schema.__name__!r} cannot be read: {error}"
        ) from error
    names = [name for name in hints if defaults is None or name in defaults]
    if not names:
        raise GraphBuildError(f"the state {schema.__name__!r} has no keys; declare some")
    return [_make(name, hints[name], (defaults or {}).get(name)) for name in names]


def _defaults(schema: Any) -> dict[str, Callable[[], object] | None] | None:
    """Return functions that create defaults by key, or None if the schema has none."""
    if is_typeddict(schema):
        return None
    if isinstance(schema, type) and dataclasses.is_dataclass(schema):
        return {field.name: _field_default(field) for field in dataclasses.fields(schema)}
    raise GraphBuildError(
        f"{schema!r} cannot describe a state; use a TypedDict, a dataclass or a pydantic model"
    )


def _model_of(schema: Any) -> ModelSchema | None:
    is_model = isinstance(schema, type) and issubclass(schema, BaseModel)
    return ModelSchema(schema) if is_model else None


def _read_model(schema: type, model: ModelSchema) -> list[Channel]:
    """Return the keys of a model with all constraints of its fields."""
    if not model.fields:
        raise GraphBuildError(f"the state {schema.__name__!r} has no keys; declare some")
    channels = []
    for name, field in model.fields.items():
        has_none = field.is_required() or field.default_factory_takes_validated_data
        default = None if has_none else partial(field.get_default, call_default_factory=True)
        channels.append(_make(name, _annotated(field.annotation, field.metadata), default))
    return channels


def _field_default(field: dataclasses.Field[Any]) -> Callable[[], object] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    if field.default is dataclasses.MISSING:
        return None
    return lambda: deepcopy(field.default)


def _make(name: str, hint: object, default: Callable[[], object] | None) -> Channel:
    while get_origin(hint) in {Required, NotRequired}:
        hint = get_args(hint)[0]
    plain: object = hint
    metadata: Sequence[Any] = ()
    if get_origin(hint) is Annotated:
        plain, *metadata = get_args(hint)
    reducers = [item for item in metadata if callable(item) and not isinstance(item, type)]
    reducer = reducers[-1] if reducers else None
    kind = _annotated(plain, [item for item in metadata if item not in reducers])
    if reducer is not None:
        _check_reducer(name, reducer)
    if reducer is not None and default is None:
        default = _EMPTY.get(get_origin(plain) or plain)
    return Channel(name=name, kind=kind, reducer=reducer, fault=type_fault(kind), default=default)


def _annotated(kind: object, metadata: Sequence[object]) -> object:
    """Return a type with its constraints as `Annotated`."""
    return Annotated[(kind, *metadata)] if metadata else kind


def _check_reducer(name: str, reducer: Reducer) -> None:
    """Check that the reducer can be called with the old value and the update."""
    wanted = f"the reducer of {name!r} must be a plain function of the old value and the update"
    if is_async(reducer):
        raise GraphBuildError(f"{wanted}; {reducer!r} is async")
    try:
        inspect.signature(reducer).bind(None, None)
    except ValueError:  # some builtins have no signature
        return
    except TypeError as error:
        raise GraphBuildError(f"{wanted}; {reducer!r} does not take both: {error}") from error


def type_fault(kind: object) -> Callable[[object], str]:
    """Return a function that describes what is wrong with a value, without converting."""
    adapter = _adapter(kind)

    def fault(value: object) -> str:
        if adapter is None:
            plain = _plain(kind)
            return "" if isinstance(value, plain) else f"expected {kind}, got {_name(value)}"
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False, include_context=False)
            return "; ".join(fault_line(problem["loc"], problem["msg"]) for problem in problems)
        return ""

    return fault


def _schema(kind: object) -> dict[str, Json]:
    try:
        schema = TypeAdapter(cast("Any", kind)).json_schema()
    except (PydanticUserError, NameError, TypeError):
        return {}
    return {} if "$defs" in schema or "$ref" in schema else cast("dict[str, Json]", schema)


def _adapter(kind: object) -> TypeAdapter[Any] | None:
    for config in (None, ConfigDict(arbitrary_types_allowed=True)):
        try:
            return TypeAdapter(cast("Any", kind), config=config)
        except (PydanticUserError, NameError, TypeError):
            continue
    return None


def _plain(kind: object) -> tuple[type, ...]:
    """Return the classes to check for a type that pydantic cannot read."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in {Union, pytypes.UnionType}:
        return tuple(base for part in get_args(kind) for base in _plain(part))
    if is_typeddict(kind):
        return (dict,)
    origin = get_origin(kind) or kind
    return (origin,) if isinstance(origin, type) else (object,)


def _name(value: object) -> str:
    return type(value).__name__
