"""Stored values: what is written is read back, and nothing else gets in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from agents import AgentConfigError
from agents.core.codec import Json, TypeRegistry, decode, encode, from_text, to_text
from agents.core.errors import (
    CheckpointDecodeError,
    UnstorableValueError,
)

registry = TypeRegistry()


@registry.register("test.point/1")
@dataclass(frozen=True)
class Place:
    x: int
    tags: tuple[str, ...] = ()
    inner: object = None

    def __post_init__(self) -> None:
        if not isinstance(self.x, int):
            raise TypeError("x must be a number")


@registry.register("test.color/1")
class Color(Enum):
    RED = "red"


class Unknown(StrEnum):
    A = "a"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.times()
    | st.datetimes(timezones=st.just(UTC) | st.none())
    | st.timedeltas()
    | st.just(Color.RED),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "$type", "value"]), inner)
        | st.builds(Place, st.integers(), st.just(("a",)), inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_values_are_read_back(value: object) -> None:
    data = registry.encode(value)
    back = registry.decode(from_text(to_text({"v": data}))["v"])

    assert back == value
    assert type(back) is type(value)


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    "value", [Unknown.A, Level.LOW, object(), {1: "a"}, {"a": {2}}, [ValueError()]]
)
def test_unknown_types_are_refused(value: object) -> None:
    with pytest.raises(UnstorableValueError, match=r"register|use texts as keys"):
        registry.encode(value)


@pytest.mark.parametrize(
    "data",
    [
        {"$type": "os.system", "value": "ls"},
        {"$type": "bytes", "value": "é"},
        {"$type": "bytes", "value": 1},
        {"$type": "decimal", "value": "x"},
        {"$type": "timedelta", "value": [1]},
        {"$type": "float", "value": "1.0"},
        {"$type": "dict", "value": []},
        {"$type": "tuple", "value": {}},
        {"$type": "test.point/1", "value": {"x": "1"}},
        {"$type": "test.point/1", "value": {"y": 1}},
        {"$type": "test.point/1"},
        {"$type": "test.point/1", "value": {"x": 1}, "more": 1},
        {"$type": ["bytes"], "value": ""},
        {"$type": "test.color/1", "value": "blue"},
        {"$type": "test.form/1", "value": {}},
    ],
    ids=str,
)
def test_forged_or_damaged_data_is_refused(data: Json) -> None:
    with pytest.raises(CheckpointDecodeError):
        registry.decode(data)


def test_names_and_types_are_registered_once() -> None:
    with pytest.raises(AgentConfigError, match=r"test\.color/1"):
        registry.add("test.color/1", complex, str, complex)
    with pytest.raises(AgentConfigError, match="tuple"):
        registry.add("tuple", complex, str, complex)
    with pytest.raises(AgentConfigError, match="Color"):
        registry.add("again", Color, str, Color)
    with pytest.raises(AgentConfigError, match="str"):
        registry.add("text", str, str, str)
    with pytest.raises(AgentConfigError, match="no dataclass"):
        registry.register("test.plain/1")(complex)


class OfNoName(tzinfo):
    """A zone whose offset depends on the date, and which no name finds again."""

    def utcoffset(self, at: datetime | None, /) -> timedelta | None:
        return timedelta(hours=1) if at is not None else None

    def dst(self, _: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, _: datetime | None, /) -> str | None:
        return None


# What is stored must stay readable: another form here makes stored checkpoints void.
@pytest.mark.parametrize(
    ("value", "name", "data"),
    [
        (b"\x00\xff", "bytes", "AP8="),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "datetime", "2026-01-02T03:04:00+00:00"),
        (date(2026, 1, 2), "date", "2026-01-02"),
        (time(1, 2), "time", "01:02:00"),
        (timedelta(1, 2, 3), "timedelta", [1, 2, 3]),
        (Decimal("1.10"), "decimal", "1.10"),
        ((1, "a"), "tuple", [1, "a"]),
        ({"$type": 1}, "dict", {"$type": 1}),
        (float("-inf"), "float", "-inf"),
    ],
)
def test_the_stored_form_of_each_type_never_changes(value: object, name: str, data: Json) -> None:
    fresh = TypeRegistry()
    stored: Json = {"$type": name, "value": data}

    assert fresh.encode(value) == stored
    assert fresh.decode(stored) == value
    assert type(fresh.decode(stored)) is type(value)


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("at", ["2026-10-25T02:30", "2026-03-29T02:30"])
def test_a_time_keeps_its_zone_where_clocks_change(at: str, fold: int) -> None:
    value = datetime.fromisoformat(at).replace(tzinfo=BERLIN, fold=fold)

    decoded = decode(encode(value))

    assert isinstance(decoded, datetime)
    assert (decoded, decoded.tzinfo, decoded.fold) == (value, BERLIN, fold)


def test_a_moment_stays_when_the_rules_of_its_zone_have_changed() -> None:
    """The time zones of this process may be newer than those of the one that wrote."""
    stored: Json = {"$type": "datetime", "value": "2026-07-01T02:30:00+05:00[Europe/Berlin]"}

    assert decode(stored) == datetime.fromisoformat("2026-07-01T02:30:00+05:00")


@pytest.mark.parametrize("value", [datetime(2026, 10, 25, 2, 30, tzinfo=UTC), time(2, 30)])
def test_the_second_of_two_equal_times_stays_the_second(value: datetime | time) -> None:
    decoded = decode(encode(value.replace(fold=1)))

    assert isinstance(decoded, datetime | time)
    assert (decoded, decoded.fold) == (value, 1)


@pytest.mark.parametrize(
    "value",
    [
        time(2, 30, tzinfo=BERLIN),
        datetime(2026, 1, 1, tzinfo=OfNoName()),
    ],
)
def test_a_time_that_would_come_back_different_is_refused(value: object) -> None:
    with pytest.raises(UnstorableValueError, match="come back changed"):
        encode(value)


@dataclass(frozen=True)
class Meeting:
    at: datetime


def test_a_time_in_a_registered_type_keeps_its_zone() -> None:
    registry = TypeRegistry()
    registry.register("test.meeting/1")(Meeting)
    value = Meeting(datetime(2026, 1, 1, tzinfo=BERLIN))

    assert registry.decode(registry.encode(value)) == value


def test_text_is_compact_and_keeps_its_letters() -> None:
    assert to_text({"a": ["é", 1], "b": None}) == '{"a":["é",1],"b":null}'
    assert to_text({"a": "é\ud83d"}) == '{"a":"\\u00e9\\ud83d"}'
    with pytest.raises(UnstorableValueError, match="it is none"):
        to_text({"a": float("nan")})


def test_what_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UnstorableValueError, match=r"it is nested too deeply, or holds itself$"):
        registry.encode(loop)


def test_an_old_name_is_read_and_never_written() -> None:
    fresh = TypeRegistry()
    fresh.add_old("place/1", lambda value: ("old", value))

    assert fresh.decode({"$type": "place/1", "value": [1, {"$type": "tuple", "value": []}]}) == (
        "old",
        [1, ()],
    )
    for take in (fresh.add_old, lambda name, read: fresh.add(name, complex, str, read)):
        with pytest.raises(AgentConfigError, match="'place/1' is taken"):
            take("place/1", complex)
    with pytest.raises(AgentConfigError, match="'bytes' is taken"):
        fresh.add_old("bytes", bytes)


# ---- types with functions of their own -----------------------------------------------------------


class Heat:
    """Cannot be compared: two of them are never equal."""

    def __init__(self, degrees: float) -> None:
        self.degrees = degrees


class MoreHeat(Heat):
    """Another type."""


def read_heat(data: list[float]) -> Heat:
    return Heat(data[0])


def with_heat(read: Callable[[list[float]], Heat] = read_heat, *, compare: bool = True) -> Json:
    fresh = TypeRegistry()
    fresh.add("test.heat/1", Heat, lambda heat: [heat.degrees, (1,)], read, compare=compare)
    return fresh.encode(Heat(1.5))


def test_a_type_with_functions_of_its_own_is_written_and_read_by_them() -> None:
    fresh = TypeRegistry()
    fresh.add("test.heat/1", Heat, lambda heat: [heat.degrees, (1,)], read_heat)
    data = fresh.encode(Heat(1.5))
    assert data == {"$type": "test.heat/1", "value": [1.5, {"$type": "tuple", "value": [1]}]}
    heat = fresh.decode(data)
    assert isinstance(heat, Heat)
    assert heat.degrees == 1.5


def test_what_comes_back_changed_is_refused_whoever_wrote_its_functions() -> None:
    with pytest.raises(UnstorableValueError) as refused:
        with_heat(lambda data: Heat(data[0] + 1))
    assert refused.value.fault == "it would come back changed"
    assert with_heat(lambda data: Heat(data[0] + 1), compare=False) == with_heat()


@pytest.mark.parametrize("compare", [True, False])
def test_what_comes_back_as_something_else_is_refused(compare: bool) -> None:
    with pytest.raises(UnstorableValueError, match="come back changed"):
        with_heat(lambda data: (data[0], (1,)), compare=compare)  # type: ignore[arg-type,return-value]
    assert with_heat(lambda data: MoreHeat(data[0]), compare=compare) == with_heat()


def test_bytes_with_anything_else_in_them_are_damaged() -> None:
    assert decode({"$type": "bytes", "value": "AP8="}) == b"\x00\xff"
    for value in ("AP 8=", "AP\n8=", "A!P8="):
        with pytest.raises(CheckpointDecodeError):
            decode({"$type": "bytes", "value": value})


class Box:
    """Holds what cannot be compared."""

    def __init__(self, heat: Heat) -> None:
        self.heat = heat


class Tub(Box):
    """The same, for another way to read it."""


def test_a_value_in_a_value_is_compared_by_what_is_written_of_it() -> None:
    fresh = TypeRegistry()
    fresh.add("test.heat/1", Heat, lambda heat: heat.degrees, Heat)
    fresh.add("test.box/1", Box, lambda box: box.heat, lambda heat: Box(Heat(heat.degrees)))
    fresh.add("test.tub/1", Tub, lambda tub: tub.heat, lambda heat: Tub(Heat(heat.degrees + 1)))
    data = fresh.encode(Box(Heat(2.0)))
    assert data == {"$type": "test.box/1", "value": {"$type": "test.heat/1", "value": 2.0}}
    with pytest.raises(UnstorableValueError, match="come back changed"):
        fresh.encode(Tub(Heat(2.0)))
