"""Encode values of registered types as JSON. Stored names never import code.

JSON data is written unchanged. Any other value becomes `{"$type": name, "value": data}`, with the
name under which its type was registered. A user's dict with the key `$type` is wrapped, so that it
cannot be mistaken for a typed value.

Every value of a registered type is read back once while it is written, level by level, so that the
cost is linear. A value that would come back different is an error before anything is stored.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, TypeAlias, TypeVar, cast
from zoneinfo import ZoneInfo

from agents.core.errors import (
    AgentConfigError,
    CheckpointDecodeError,
    CheckpointError,
    CheckpointVersionError,
    UnregisteredTypeError,
    UnstorableValueError,
)
from agents.core.kinds import (
    Json as Json,  # noqa: PLC0414 - re-exported for users of the codec
    same,
    shape,
)

__all__ = ["Json", "TypeRegistry", "decode", "encode", "register", "types"]

T = TypeVar("T")
C = TypeVar("C", bound=type)

_TYPE = "$type"
_DICT = "dict"
_TUPLE = "tuple"
_FLOAT = "float"
_FLAT = frozenset({NoneType, bool, str})
"""Types whose values are JSON data already."""
_DEEP = (dict, list)
"""JSON types that contain other values."""
_PLAIN = (bool, int, float, str, list, dict, tuple, type(None))
_BIGGEST = 10**4300
"""Python's limit for parsing integers: 4300 digits."""
_UNFIT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, AssertionError)
"""Errors of a type's own write or read code for an unsuitable value."""

_Same: TypeAlias = Callable[[Any, Any, object], bool]
"""Compares a value with the value read back; also gets the written data."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """How values of one type are written and read.

    Attributes:
        name: Stored with each value.
        write: Returns storable data.
        read: Returns the value.
        is_same: Compares the value with the value read back; None skips the comparison.
    """

    name: str
    kind: type
    write: Callable[[Any], object]
    read: Callable[[Any], object]
    is_same: _Same | None = None


def _read_bytes(value: str) -> bytes:
    return base64.b64decode(value, validate=True)


_FOLD = "[fold]"
"""Marks the second of two equal times of a day on which clocks are put back."""


def _write_datetime(value: datetime) -> str:
    """Write a time with the name of its zone: `2026-10-25T02:30:00+01:00[Europe/Berlin]`."""
    name = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    return f"{value.isoformat()}[{name}]" if name else _write_time(value)


def _read_datetime(text: str) -> datetime:
    at, _, name = text.removesuffix(_FOLD).removesuffix("]").partition("[")
    value = datetime.fromisoformat(at)
    if not name:
        return value.replace(fold=text.endswith(_FOLD))
    zone = ZoneInfo(name)
    for fold in (0, 1):  # where clocks change, two times look alike; their offsets differ
        zoned = value.replace(tzinfo=zone, fold=fold)
        if zoned.utcoffset() == value.utcoffset():
            return zoned
    return value  # the rules of the zone have changed since: the moment counts


def _write_time(value: datetime | time) -> str:
    return value.isoformat() + (_FOLD if value.fold else "")


def _read_time(text: str) -> time:
    return time.fromisoformat(text.removesuffix(_FOLD)).replace(fold=text.endswith(_FOLD))


def _is_same(value: object, other: object, _: object) -> bool:
    return same(value, other)


def _write_timedelta(value: timedelta) -> object:
    return [value.days, value.seconds, value.microseconds]


def _read_timedelta(value: list[int]) -> timedelta:
    return timedelta(days=value[0], seconds=value[1], microseconds=value[2])


class TypeRegistry:
    """Registry of the types that can be stored, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Entry] = {}
        self._old: dict[str, Callable[[Any], object]] = {}
        self._by_kind: dict[type, _Entry] = {}
        for known in (
            _Entry("bytes", bytes, lambda v: base64.b64encode(v).decode(), _read_bytes),
            _Entry("datetime", datetime, _write_datetime, _read_datetime, _is_same),
            _Entry("date", date, date.isoformat, date.fromisoformat),
            _Entry("time", time, _write_time, _read_time, _is_same),
            _Entry("timedelta", timedelta, _write_timedelta, _read_timedelta),
            _Entry("decimal", Decimal, str, Decimal),
        ):
            self._add(known)

    def register(self, name: str) -> Callable[[C], C]:
        """Make a dataclass, pydantic model or enum storable; a class decorator.

        Args:
            name: Stored with each value: never change it. End it with a version: "app.Form/1".

        Raises:
            AgentConfigError: The name or the type is already registered, or has an unreadable form.
        """

        def decorate(cls: C) -> C:
            write, read = shape(cls)
            self._add(_Entry(name, cls, write, read, _is_same))
            return cls

        return decorate

    def add(
        self,
        name: str,
        kind: type[T],
        write: Callable[[T], object],
        read: Callable[[Any], T],
        *,
        compare: bool = True,
    ) -> None:
        """Make any other type storable.

        Args:
            name: Stored with each value: never change it.
            kind: The exact type. Subclasses need their own registration.
            write: Returns storable data, which may contain other registered types.
            read: Returns the value.
            compare: Whether the written forms before and after a round trip must be equal. False
                only checks that the value can be read.

        Raises:
            AgentConfigError: The name or the type is already registered.
        """

        def is_same(_: T, other: T, written: object) -> bool:
            # The type may not support `==`, so the written forms are compared.
            if not isinstance(other, kind) or not compare:
                return isinstance(other, kind)
            again = write(other)
            return same(written, again) or self.encode(written) == self.encode(again)

        self._add(_Entry(name, kind, write, read, is_same))

    def add_old(self, name: str, read: Callable[[Any], object]) -> None:
        """Keep an old type name readable. New values are never written with it.

        Args:
            name: The stored name: "app.Form/1", if the type is now "app.Form/2".
            read: Converts the old data to a value of today's type.

        Raises:
            AgentConfigError: The name is already registered.
        """
        self._check_name(name)
        self._old[name] = read

    def encode(self, value: object) -> Json:
        """Encode a value as JSON data.

        Raises:
            UnregisteredTypeError: The value is, or contains, a value of an unregistered type.
            UnstorableValueError: The value, or a part of it, would not come back unchanged.
        """
        try:
            return self._encode(value)
        except RecursionError:
            fault = "it is nested too deeply, or holds itself"
            raise UnstorableValueError(_name(type(value)), fault) from None

    def decode(self, data: Json) -> object:
        """Decode what `encode` wrote.

        Raises:
            CheckpointDecodeError: The data is damaged or names an unregistered type.
        """
        try:
            return self._decode(data)
        except RecursionError:
            raise CheckpointDecodeError("it is nested too deeply") from None

    def _add(self, entry: _Entry) -> None:
        self._check_name(entry.name)
        if entry.kind in self._by_kind or entry.kind in _PLAIN:
            raise AgentConfigError(f"the type {entry.kind.__qualname__!r} is registered already")
        self._by_name[entry.name] = self._by_kind[entry.kind] = entry

    def _encode(self, value: object) -> Json:
        kind = type(value)
        if kind in _FLAT:
            return cast("Json", value)
        write = _NUMBERS.get(kind)
        if write is not None:
            return write(value)
        if kind is list:
            return [
                item if type(item) in _FLAT else self._encode(item)
                for item in cast("list[Json]", value)
            ]
        if kind is tuple:
            return _tagged(_TUPLE, [self._encode(item) for item in cast("tuple[object]", value)])
        if kind is dict:
            return self._encode_dict(cast("dict[object, object]", value))
        entry = self._by_kind.get(kind)
        if entry is None:
            raise UnregisteredTypeError(_name(kind))
        return self._encode_typed(entry, value)

    def _encode_typed(self, entry: _Entry, value: object) -> Json:
        try:
            written = entry.write(value)
        except _UNFIT as error:
            raise UnstorableValueError(_name(entry.kind), f"writing it failed: {error}") from error
        data = _tagged(entry.name, self._encode(written))
        if entry.is_same is None:
            return data
        # Can the value be read back? The values in it were checked one by one.
        try:
            is_same = entry.is_same(value, entry.read(written), written)
        except _UNFIT as error:
            raise UnstorableValueError(
                _name(entry.kind), f"it could not be read again: {error}"
            ) from error
        if not is_same:
            raise UnstorableValueError(_name(entry.kind), "it would come back changed")
        return data

    def _decode(self, data: Json) -> object:
        if isinstance(data, list):
            return [self._decode(item) if type(item) in _DEEP else item for item in data]
        if not isinstance(data, dict):
            return data
        if _TYPE not in data:
            return {
                key: self._decode(item) if type(item) in _DEEP else item
                for key, item in data.items()
            }
        return self._decode_tagged(data)

    def _check_name(self, name: str) -> None:
        if name in {_DICT, _TUPLE, _FLOAT} or name in self._by_name or name in self._old:
            raise AgentConfigError(f"the stored name {name!r} is taken; choose another")

    def _encode_dict(self, value: dict[object, object]) -> Json:
        # JSON would turn other keys into text.
        for key in value:
            if type(key) is not str:
                fault = f"it has a key of type {type(key).__name__!r}; use texts as keys"
                raise UnstorableValueError(_name(dict), fault)
        data = {
            key: item if type(item) in _FLAT else self._encode(item)
            for key, item in cast("dict[str, Json]", value).items()
        }
        return _tagged(_DICT, data) if _TYPE in data else data

    def _decode_tagged(self, data: dict[str, Json]) -> object:
        name, value = data[_TYPE], data.get("value")
        if len(data) != 2 or "value" not in data or not isinstance(name, str):
            raise CheckpointDecodeError("a typed value has unexpected parts")
        if name == _DICT and isinstance(value, dict):
            return {key: self._decode(item) for key, item in value.items()}
        if name == _TUPLE and isinstance(value, list):
            return tuple([self._decode(item) for item in value])
        # JSON has neither infinity nor NaN.
        if name == _FLOAT and value in {"inf", "-inf", "nan"}:
            return float(str(value))
        entry = self._by_name.get(name)
        read = entry.read if entry else self._old.get(name)
        if read is None:
            raise CheckpointDecodeError(f"the type {name!r} is not registered in this program")
        try:
            return read(self._decode(value))
        except _UNFIT as error:
            raise CheckpointDecodeError(
                f"a value of type {name!r} does not fit: {error}"
            ) from error


types = TypeRegistry()
"""The registry of this process."""


def register(name: str) -> Callable[[C], C]:
    """Make a dataclass, pydantic model or enum storable; a class decorator.

    Args:
        name: Stored with each value: never change it. End it with a version: "app.Form/1".

    Raises:
        AgentConfigError: The name or the type is already registered, or has an unreadable form.
    """
    return types.register(name)


def encode(value: object) -> Json:
    """Encode a value as JSON data with the registry of this process.

    Raises:
        UnregisteredTypeError: The value is, or contains, a value of an unregistered type.
        UnstorableValueError: The value, or a part of it, would not come back unchanged.
    """
    return types.encode(value)


def decode(data: Json) -> object:
    """Decode what `encode` wrote.

    Raises:
        CheckpointDecodeError: The data is damaged or names an unregistered type.
    """
    return types.decode(data)


def to_text(data: object) -> str:
    """Write JSON data as compact text for a store."""
    text = _dumped(data, is_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as models may write: no store accepts it
        return _dumped(data, is_ascii=True)
    return text


def well_formed(text: str) -> str:
    """Return text that can be encoded as UTF-8.

    Two halves of a surrogate pair that a model wrote separately are joined. A single half becomes
    U+FFFD.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def read_back(text: str, read: Callable[[str], T]) -> T:
    """Check that a text can be read before it is stored, and return what was read."""
    try:
        return read(text)
    except CheckpointError as error:
        raise UnstorableValueError("text", f"it could not be read again: {error}") from error


def from_text(text: str) -> dict[str, Json]:
    """Parse an object that `to_text` wrote."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointDecodeError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CheckpointDecodeError("not a JSON object")
    return cast("dict[str, Json]", data)


def check_version(data: Mapping[str, Json], known: int) -> None:
    """Refuse a document with an unknown version."""
    version = data.get("schema")
    if type(version) is not int or not 1 <= version <= known:
        raise CheckpointVersionError(version, known)


def _tagged(name: str, value: Json) -> Json:
    return {_TYPE: name, "value": value}


def _encode_int(value: int) -> Json:
    if -_BIGGEST < value < _BIGGEST:
        return value
    raise UnstorableValueError("builtins.int", "it has more than 4300 digits")


def _encode_float(value: float) -> Json:
    return value if math.isfinite(value) else _tagged(_FLOAT, str(value))


_NUMBERS: dict[type, Callable[[Any], Json]] = {int: _encode_int, float: _encode_float}

_ENCODERS = {
    is_ascii: json.JSONEncoder(separators=(",", ":"), ensure_ascii=is_ascii, allow_nan=False)
    for is_ascii in (True, False)
}
"""Encoders by `ensure_ascii`. Made once: `json.dumps` makes a new one per value."""


def _dumped(data: object, *, is_ascii: bool) -> str:
    try:
        return _ENCODERS[is_ascii].encode(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnstorableValueError("JSON data", f"it is none: {error}") from error


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
