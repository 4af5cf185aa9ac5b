"""Stored values: versioned JSON of registered types. Nothing is ever imported by a stored name.

JSON data is written as it is. Any other value becomes `{"$type": name, "value": data}`, where the
name was given when the type was registered. A user's dict that has a key `$type` is wrapped, so
that it can never pass for a typed value.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ValidationError

from agents.errors import (
    AgentConfigError,
    CheckpointDecodeError,
    CheckpointVersionError,
    UnregisteredTypeError,
)

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
"""JSON data."""

T = TypeVar("T")
C = TypeVar("C", bound=type)

_TYPE = "$type"
_DICT = "dict"
_TUPLE = "tuple"
_FLOAT = "float"
_FLAT = frozenset({NoneType, bool, int, str})
"""Types of values that are JSON data as they are."""
_DEEP = (dict, list)
"""JSON data that holds other data; all else is what it is."""
_PLAIN = (bool, int, float, str, list, dict, tuple, type(None))


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    """How values of one type are written and read."""

    name: str
    kind: type
    write: Callable[[Any], object]
    read: Callable[[Any], object]


def _read_bytes(value: str) -> bytes:
    return base64.b64decode(value, validate=True)


def _write_timedelta(value: timedelta) -> object:
    return [value.days, value.seconds, value.microseconds]


def _read_timedelta(value: list[int]) -> timedelta:
    return timedelta(days=value[0], seconds=value[1], microseconds=value[2])


class TypeRegistry:
    """Which types can be stored, under which names."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Entry] = {}
        self._old: dict[str, Callable[[Any], object]] = {}
        self._by_kind: dict[type, _Entry] = {}
        self.add("bytes", bytes, lambda v: base64.b64encode(v).decode(), _read_bytes)
        self.add("datetime", datetime, datetime.isoformat, datetime.fromisoformat)
        self.add("date", date, date.isoformat, date.fromisoformat)
        self.add("time", time, time.isoformat, time.fromisoformat)
        self.add("timedelta", timedelta, _write_timedelta, _read_timedelta)
        self.add("decimal", Decimal, str, Decimal)

    def register(self, name: str) -> Callable[[C], C]:
        """Make a dataclass, pydantic model or enum storable; a class decorator.

        Args:
            name: Stored with each value: never change it. A version at its end helps: "app.Form/1".
        """

        def decorate(cls: C) -> C:
            write, read = _shape(cls)
            self.add(name, cls, write, read)
            return cls

        return decorate

    def add(
        self,
        name: str,
        kind: type[T],
        write: Callable[[T], object],
        read: Callable[[Any], T],
    ) -> None:
        """Make any other type storable.

        Args:
            name: Stored with each value: never change it.
            kind: The exact type; subclasses need a registration of their own.
            write: Gives storable data, which may hold other registered types.
            read: Gives the value back.

        Raises:
            AgentConfigError: The name or the type is taken.
        """
        self._check_name(name)
        if kind in self._by_kind or kind in _PLAIN:
            raise AgentConfigError(f"the type {kind.__qualname__!r} is registered already")
        self._by_name[name] = self._by_kind[kind] = _Entry(name, kind, write, read)

    def add_old(self, name: str, read: Callable[[Any], object]) -> None:
        """Keep a name readable under which values were stored once; new ones never get it.

        Args:
            name: As it was stored: "app.Form/1", when the type is "app.Form/2" now.
            read: Gives a value of today from the data of then.

        Raises:
            AgentConfigError: The name is taken.
        """
        self._check_name(name)
        self._old[name] = read

    def encode(self, value: object) -> Json:
        """Write a value as JSON data.

        Raises:
            UnregisteredTypeError: It is, or holds, a value of an unknown type.
        """
        kind = type(value)
        if kind in _FLAT:
            return cast("Json", value)
        if kind is float:
            return self._encode_float(cast("float", value))
        if kind is list:
            return [
                cast("Json", item) if type(item) in _FLAT else self.encode(item)
                for item in cast("list[object]", value)
            ]
        if kind is tuple:
            return _tagged(_TUPLE, [self.encode(item) for item in cast("tuple[object]", value)])
        if kind is dict:
            return self._encode_dict(cast("dict[object, object]", value))
        entry = self._by_kind.get(kind)
        if entry is None:
            raise UnregisteredTypeError(f"{kind.__module__}.{kind.__qualname__}")
        return _tagged(entry.name, self.encode(entry.write(value)))

    def decode(self, data: Json) -> object:
        """Read what `encode` wrote.

        Raises:
            CheckpointDecodeError: It is damaged, or names a type that nobody registered.
        """
        if isinstance(data, list):
            return [self.decode(item) if type(item) in _DEEP else item for item in data]
        if not isinstance(data, dict):
            return data
        if _TYPE not in data:
            return {
                key: self.decode(item) if type(item) in _DEEP else item
                for key, item in data.items()
            }
        return self._decode_tagged(data)

    def _check_name(self, name: str) -> None:
        if name in {_DICT, _TUPLE, _FLOAT} or name in self._by_name or name in self._old:
            raise AgentConfigError(f"the stored name {name!r} is taken; choose another")

    def _encode_float(self, value: float) -> Json:
        return value if math.isfinite(value) else _tagged(_FLOAT, str(value))

    def _encode_dict(self, value: dict[object, object]) -> Json:
        for key in value:
            if type(key) is not str:
                raise UnregisteredTypeError(f"dict with a {type(key).__name__} key")
        data = {
            cast("str", key): cast("Json", item) if type(item) in _FLAT else self.encode(item)
            for key, item in value.items()
        }
        return _tagged(_DICT, data) if _TYPE in data else data

    def _decode_tagged(self, data: dict[str, Json]) -> object:
        name, value = data[_TYPE], data.get("value")
        if len(data) != 2 or "value" not in data or not isinstance(name, str):
            raise CheckpointDecodeError("a typed value has unexpected parts")
        if name == _DICT and isinstance(value, dict):
            return {key: self.decode(item) for key, item in value.items()}
        if name == _TUPLE and isinstance(value, list):
            return tuple(self.decode(item) for item in value)
        if name == _FLOAT and value in {"inf", "-inf", "nan"}:
            return float(str(value))
        entry = self._by_name.get(name)
        read = entry.read if entry else self._old.get(name)
        if read is None:
            raise CheckpointDecodeError(f"the type {name!r} is not registered in this program")
        try:
            return read(self.decode(value))
        except (TypeError, ValueError, LookupError, ArithmeticError, ValidationError) as error:
            raise CheckpointDecodeError(
                f"a value of type {name!r} does not fit: {error}"
            ) from error


types = TypeRegistry()
"""The registry of this program."""


def register(name: str) -> Callable[[C], C]:
    """Make a dataclass, pydantic model or enum storable; a class decorator.

    Args:
        name: Stored with each value: never change it. A version at its end helps: "app.Form/1".
    """
    return types.register(name)


def encode(value: object) -> Json:
    """Write a value as JSON data, with the registry of this program.

    Raises:
        UnregisteredTypeError: It is, or holds, a value of an unknown type, or holds itself.
    """
    try:
        return types.encode(value)
    except RecursionError:
        kind = f"{type(value).__name__} that holds itself, or is nested too deeply"
        raise UnregisteredTypeError(kind) from None


def decode(data: Json) -> object:
    """Read what `encode` wrote.

    Raises:
        CheckpointDecodeError: It is damaged, or names a type that nobody registered.
    """
    return types.decode(data)


def to_text(data: Mapping[str, Json]) -> str:
    """Write JSON data as compact text: what a store keeps."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as models may write: no store takes it
        return json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text


def from_text(text: str) -> dict[str, Json]:
    """Read an object that `to_text` wrote.

    Raises:
        CheckpointDecodeError: It is not one.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointDecodeError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CheckpointDecodeError("not a JSON object")
    return cast("dict[str, Json]", data)


def check_version(data: Mapping[str, Json], known: int) -> None:
    """Refuse a document of a version that this program does not know.

    Raises:
        CheckpointVersionError: It is newer, or has no version.
    """
    version = data.get("schema")
    if type(version) is not int or not 1 <= version <= known:
        raise CheckpointVersionError(version, known)


def _tagged(name: str, value: Json) -> Json:
    return {_TYPE: name, "value": value}


def _shape(cls: type) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    if issubclass(cls, Enum):
        return (lambda value: value.value), cls
    if issubclass(cls, BaseModel):
        return (lambda value: value.model_dump(mode="json")), cls.model_validate
    if dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls) if field.init)
        return (lambda value: {name: getattr(value, name) for name in names}), (
            lambda data: cls(**data)
        )
    raise AgentConfigError(
        f"{cls.__qualname__!r} is no dataclass, pydantic model or enum; use `types.add` with "
        "functions that write and read it"
    )
