"""Functions behind a gate (check 56 of the doors)."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError

from countersign_client import (
    AlreadyStarted,
    AsyncCountersign,
    Countersign,
    InvalidRequest,
    NotApproved,
    Rejected,
    gate,
)
from tests.support.programs.server import KEY, URL
from tests.support.programs.world import VirtualWorld

ran: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


class Size(Enum):
    SMALL = "small"


class Customer(BaseModel):
    name: str
    since: dt.date


def refund(
    order: str, amount: Annotated[float, Field(gt=0, le=500)], note: str | None = None
) -> str:
    ran.append((order, amount, note))
    return "done"


def test_a_gated_function_runs_what_was_approved(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    gated = world.client().gate(title="Refund {amount} € for {order}")(refund)
    assert gated("o 12", amount="40") == "done"  # as from a form
    assert ran == [("o 12", 40.0, None)]
    shown = world.request.shown
    assert (shown["title"], shown["tool"], shown["execution"]["state"]) == (
        "Refund 40.0 € for o 12",
        "refund",
        "ran",
    )
    assert shown["arguments"] == {"order": "o 12", "amount": 40.0, "note": None}
    assert "done" not in str(shown)


def test_edited_arguments_run(world: VirtualWorld) -> None:
    world.after(
        60, lambda: world.server.approve(world.request, {"order": "12", "amount": 20, "note": "x"})
    )
    world.client().gate(edit=True)(refund)("12", 40.0)
    assert ran == [("12", 20.0, "x")]
    assert world.request.shown["schema"]["properties"]["amount"]["maximum"] == 500


@pytest.mark.parametrize(
    "edited",
    [
        {"order": "12", "amount": 501},
        {"order": 12, "amount": 5},
        {"order": "1", "amount": 5, "x": 1},
    ],
)
def test_edited_arguments_that_do_not_fit_the_annotations_do_not_run(
    world: VirtualWorld, edited: dict[str, Any]
) -> None:
    world.after(60, lambda: world.server.approve(world.request, {"note": None, **edited}))

    def free(
        order: str, amount: Annotated[float, Field(gt=0, le=500)], note: Size | str | None = None
    ) -> None:
        ran.append(order)

    with pytest.raises(InvalidRequest) as raised:
        world.client().gate(edit=True)(free)("12", 40.0)
    assert raised.value.code == "arguments-do-not-fit"
    assert (ran, world.request.shown["execution"]["state"]) == ([], "not_run")
    assert "schema" not in world.request.shown


def test_values_come_as_the_annotations_say(world: VirtualWorld) -> None:
    world.server.policy = "allow"

    def welcome(
        customer: Customer, size: Size, on: dt.date, tags: set[str], kind: Literal["a"] = "a"
    ) -> None:
        ran.append((customer, size, on, tags, kind))

    day = dt.date(2026, 11, 23)
    world.client().gate()(welcome)(Customer(name="Ada", since=day), Size.SMALL, day, {"x"})
    assert ran == [(Customer(name="Ada", since=day), Size.SMALL, day, {"x"}, "a")]


def test_the_exception_of_the_function_passes_unchanged(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    error = LookupError("no order")

    def failing() -> None:
        raise error

    with pytest.raises(LookupError) as raised:
        world.client().gate()(failing)()
    assert raised.value is error
    assert world.request.shown["execution"]["summary"] == "LookupError: no order"


def test_a_rejection_is_raised_or_returned(world: VirtualWorld) -> None:
    world.server.policy = "deny"
    with pytest.raises(Rejected):
        world.client().gate()(refund)("12", 40.0)
    returned = world.client().gate(on_reject="return")(refund)("12", 40.0)
    assert isinstance(returned, NotApproved)
    assert ran == []


def test_without_a_key_each_call_asks_anew(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    gated = world.client().gate()(refund)
    gated("12", 40.0)
    gated("12", 40.0)
    assert len(world.server.records) == 2


@pytest.mark.parametrize("key", ["refund-{order}", lambda order, **_: f"refund-{order}"])
def test_a_key_makes_two_calls_the_same_also_after_a_restart(world: VirtualWorld, key: Any) -> None:
    world.server.policy = "allow"
    world.client().gate(key=key)(refund)("Größe 12%", 40.0)
    assert world.request.key == "refund-Gr%C3%B6%C3%9Fe%2012%25"
    with pytest.raises(AlreadyStarted):
        world.client().gate(key=key)(refund)("Größe 12%", 40.0)
    assert len(ran) == 1


def test_why_and_preview_are_made_from_the_arguments(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    world.client().gate(
        why="Order {order} was late.",
        preview=lambda order, amount, note: f"-{amount}",
        secret=["note"],
        metadata={"a": "b"},
    )(refund)("12", 40.0)
    assert (world.request.shown["why"], world.request.shown["metadata"]) == (
        "Order 12 was late.",
        {"a": "b"},
    )


def test_a_long_or_odd_title_is_one_line(world: VirtualWorld) -> None:
    world.server.policy = "allow"
    world.client().gate(title="Refund {order}")(refund)("a\nb\x07" + "x" * 300, 40.0)
    title = world.request.shown["title"]
    assert (title[:13], len(title)) == ("Refund a b?xx", 150)


def test_arguments_that_do_not_fit_are_not_asked_for(world: VirtualWorld) -> None:
    with pytest.raises(ValidationError):
        world.client().gate()(refund)("12", 501)
    with pytest.raises(TypeError):
        world.client().gate()(refund)("12", 5, "x", "too many")
    assert world.server.seen == []


def test_an_argument_that_is_no_json_is_refused_at_the_call(world: VirtualWorld) -> None:
    def loose(thing) -> None:  # type: ignore[no-untyped-def]
        pass

    for thing in (object(), float("nan"), 2**60 + 1):
        with pytest.raises(TypeError, match="cannot be shown as JSON"):
            world.client().gate()(loose)(thing)
    assert world.server.seen == []


def star(*args: int) -> None: ...
def stars(**kwargs: int) -> None: ...
def generator() -> Iterator[int]:
    yield 1


async def agenerator() -> AsyncIterator[int]:
    yield 1


def callback(done: Callable[[], None]) -> None: ...
def thing(it: Countersign) -> None: ...
def password(word: SecretStr) -> None: ...


@pytest.mark.parametrize(
    "function",
    [star, stars, generator, agenerator, callback, thing, password, staticmethod(star), print],
)
def test_what_cannot_be_shown_is_refused_at_decoration(function: Any) -> None:
    with pytest.raises(TypeError):
        gate(function)


@pytest.mark.parametrize("part", ["key", "title", "why"])
@pytest.mark.parametrize("text", ["{colour}", "{order.__class__}", "{0}", "{}"])
def test_a_name_that_is_no_argument_is_refused_at_decoration(part: str, text: str) -> None:
    options: Any = {part: text}
    with pytest.raises(ValueError, match="no arguments"):
        gate(**options)(refund)


def test_a_client_of_the_other_kind_is_refused_at_decoration() -> None:
    async def waits() -> None: ...

    with pytest.raises(TypeError, match="AsyncCountersign"):
        gate(client=Countersign(URL, KEY))(waits)
    with pytest.raises(TypeError, match="no async function"):
        gate(client=AsyncCountersign(URL, KEY))(refund)


def test_a_method_is_gated_without_self(sync_world: VirtualWorld) -> None:
    sync_world.server.policy = "allow"
    client: Countersign = sync_world.client()

    class Shop:
        name = "Kiel"

        @client.gate(tool="shop.close")
        def close(self, day: int) -> str:
            return f"{self.name} {day}"

        @classmethod
        @client.gate(tool="shop.open")
        def open(cls, day: int) -> str:
            return f"{cls.name} {day}"

    assert (Shop().close(7), Shop.open(8)) == ("Kiel 7", "Kiel 8")
    assert [record.shown["arguments"] for record in sync_world.server.records.values()] == [
        {"day": 7},
        {"day": 8},
    ]
