"""Check whether a value fits a type, and convert values to and from JSON data."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, time
from enum import Enum
from functools import lru_cache, partial
from types import EllipsisType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)

from pydantic import BaseModel

from agents.core.errors import AgentConfigError

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""JSON data."""

Shape: TypeAlias = tuple[Callable[[Any], object], Callable[[Any], object]]
"""Two functions: one writes the values of a type, the other reads them."""

_MISSING = object()


def shape(cls: type) -> Shape:
    """Return how values of a type are written and read."""
    if issubclass(cls, Enum):
        return (lambda value: value.value), cls
    if issubclass(cls, BaseModel):
        return _of_model(cls)
    if dataclasses.is_dataclass(cls):
        return _of_dataclass(cls)
    raise AgentConfigError(
        f"{cls.__qualname__!r} is no dataclass, pydantic model or enum; use `types.add` with "
        "functions that write and read it"
    )


def same(value: object, other: object) -> bool:
    """Whether two values are deeply equal, including their types. NaN equals NaN."""
    if value is other or type(value) is not type(other):
        return value is other
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return _same_items(_parts(value), _parts(other))
    match value, other:
        case float(), float():
            return value == other or (math.isnan(value) and math.isnan(other))
        case (list() | tuple(), list() | tuple()):
            return len(value) == len(other) and all(map(same, value, other))
        case dict(), dict():
            return _same_items(value, other)
        case _:
            return bool(value == other) and _zone(value) == _zone(other)


def _zone(value: object) -> object:
    """Return the zone and the fold of a time, which `==` ignores; the offset of a fixed zone."""
    if not isinstance(value, datetime | time):
        return None
    zone = value.tzinfo
    fixed = zone.utcoffset(None) if zone is not None else None
    return zone if fixed is None else fixed, value.fold


def _same_items(value: Mapping[Any, object], other: Mapping[Any, object]) -> bool:
    if value.keys() != other.keys():
        return False
    # Compare by identity first: most values read back are the written objects themselves.
    different = [key for key, item in value.items() if item is not other[key]]
    return all(same(value[key], other[key]) for key in different)


def _of_model(cls: type[BaseModel]) -> Shape:
    lost = [n for n, field in cls.model_fields.items() if field.exclude and field.is_required()]
    if lost:
        raise AgentConfigError(
            f"{cls.__qualname__!r} could not be read: its field {lost[0]!r} is required, and left "
            "out when it is written (`exclude=True`); give it a default, or do not leave it out"
        )

    def write(value: BaseModel) -> object:
        # By field name: an alias may differ between reading and writing.
        return value.model_dump(mode="json", by_alias=False, round_trip=True, warnings=False)

    def read(data: object) -> BaseModel:
        # Not strict: JSON data has text in place of, for example, a time.
        return cls.model_validate(data, strict=False, by_alias=True, by_name=True)

    return write, read


def _of_dataclass(cls: type) -> Shape:
    names = tuple(field.name for field in dataclasses.fields(cls) if field.init)
    needed = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    ]
    unknown = [name for name in needed if name not in names]
    if unknown:
        raise AgentConfigError(
            f"{cls.__qualname__!r} could not be read: it is made with {unknown[0]!r}, which is no "
            "field of it; make it a field, or use `types.add` with functions that write and read it"
        )

    def write(value: object) -> object:
        return {name: getattr(value, name) for name in names}

    def read(data: Mapping[str, Any]) -> object:
        return cls(**data)

    return write, read


def _parts(value: Any) -> dict[str, object]:
    """Return the fields that define a value, without computed ones."""
    if isinstance(value, BaseModel):
        return {**value.__dict__, **(value.model_extra or {})}
    names = _compared(cast("Hashable", type(value)))
    return {name: getattr(value, name, _MISSING) for name in names}


@lru_cache(maxsize=1_024)
def _compared(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.compare)


def fits(kind: object, value: object) -> bool:
    """Whether a value has a type. The keys of a `TypedDict` are not checked.

    An integer is also a `float`, as in annotations, because JSON does not distinguish them. A
    boolean is no number.
    """
    if type(kind) is type and kind is not float:  # the usual case, made fast
        return isinstance(value, kind) and (kind is not int or type(value) is not bool)
    kind = _bare(kind)
    origin = get_origin(kind)
    if origin in {Union, UnionType}:
        fitting = [fits(member, value) for member in get_args(kind)]
        return True in fitting  # check all: a wrong annotation must fail for every value
    if origin is Literal:
        return any(type(literal) is type(value) and literal == value for literal in get_args(kind))
    base = _class_of(origin or kind)
    if base is float and type(value) is int:
        return True
    if base is int and type(value) is bool:  # a yes is no number
        return False
    try:
        is_fit = isinstance(value, base)
    except TypeError as error:
        raise _no_kind(kind) from error
    return _items_fit(get_args(kind), value) and is_fit


def _items_fit(kinds: tuple[object, ...], value: object) -> bool:
    """Whether the items of a list, tuple or dict have the types in the brackets."""
    for kind in kinds:
        _item_fits(kind, None)  # a wrong annotation must fail for every value
    match value:
        case dict() if len(kinds) == 2:
            is_key, is_item = (partial(_item_fits, kind) for kind in kinds)
            return all(map(is_key, value)) and all(map(is_item, value.values()))
        case tuple() if kinds and kinds[-1] is not Ellipsis:
            return len(value) == len(kinds) and all(map(_item_fits, kinds, value))
        case list() | tuple() if kinds:
            return all(_item_fits(kinds[0], item) for item in value)
        case _:
            return True


def _item_fits(kind: object, item: object) -> bool:
    # A type that refers to itself, such as `Json`, is not resolved.
    return isinstance(kind, str | ForwardRef | TypeVar | EllipsisType) or fits(kind, item)


def kind_name(kind: object) -> str:
    """Return a type as it stands in an annotation."""
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    return str(kind).replace("typing.", "")


def as_kind(kind: object, value: object) -> object:
    """Convert a value that fits a type: an integer becomes a float for plain `float`."""
    return float(value) if type(value) is int and _bare(kind) is float else value


def _bare(kind: object) -> object:
    """Return a type without its alias names and annotations."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        else:
            return kind


def _class_of(kind: object) -> type:
    if kind is Any:
        return object
    if kind is None:
        return NoneType
    if is_typeddict(kind):
        return dict
    if not isinstance(kind, type):
        raise _no_kind(kind)
    return kind


def _no_kind(kind: object) -> AgentConfigError:
    return AgentConfigError(
        f"nobody can tell whether an answer is {kind!r}; give a class, such as `str`, or `object` "
        "for any answer"
    )
