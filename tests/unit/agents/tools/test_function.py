"""Tools made of functions: names, titles, running, results."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from agents.core.errors import AgentConfigError, InvalidArgumentsError
from agents.core.tools import Tool
from agents.gates.decorator import tool
from agents.tools.function import result_text
from tests.unit.agents.stage import Stage


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def test_definition_comes_from_the_function() -> None:
    spec = add.definition
    assert spec.name == "add"
    assert spec.description == "Add two numbers."
    assert spec.schema["required"] == ["a"]
    assert spec.gates == ()
    assert not spec.idempotent
    assert spec is add.definition


async def pay(amount: Decimal, day: date) -> str:
    return f"{amount!r} {day!r}"


async def test_runs_with_python_values() -> None:
    arguments = tool(pay).validate({"amount": "1.50", "day": "2026-12-01"})
    result = await tool(pay).call(arguments)
    assert result == "Decimal('1.50') datetime.date(2026, 12, 1)"


async def test_invalid_arguments_run_nothing() -> None:
    with pytest.raises(InvalidArgumentsError):
        await add.call({"a": "x"})


async def test_callable_that_gives_an_awaitable_is_awaited() -> None:
    async def later() -> str:
        return "late"

    def now() -> Awaitable[str]:
        return later()

    assert await tool(now).call({}) == "late"


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "done"),
        (5, "5"),
        (Decimal("1.50"), '"1.50"'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([Odd()], '["odd"]'),
        ([object()], '["object (no text)"]'),
        (b"\xff", "It ran; its result (bytes) cannot be written as text."),
    ],
)
def test_result_is_text(result: object, text: str) -> None:
    assert result_text(result) == text


def described(title: str = "", **arguments: Any) -> str:
    def do_it_now(
        text: str = "", flag: bool = True, items: list[str] | None = None, n: int = 1
    ) -> None: ...

    made = tool(title=title)(do_it_now) if title else tool(do_it_now)
    return made.describe(made.validate(arguments)).title


@pytest.mark.parametrize(
    ("title", "arguments", "expected"),
    [
        ("", {}, "Do it now"),
        ("Say {text}", {"text": "hi"}, "Say hi"),
        ("Say {text}", {"text": "two\nlines\t here"}, "Say two lines here"),
        ("Say {text}", {"text": "{n} {text.__class__}"}, "Say {n} {text.__class__}"),
        ("Say {text}", {"text": "x" * 100}, f"Say {'x' * 79}…"),
        ("{flag} {n}", {"flag": False}, "no 1"),
        ("{flag} {items}", {}, "yes none"),
        ("In {items}", {"items": ["a", "b"]}, "In a, b"),
        ("{{n}} {n}", {}, "{n} 1"),
    ],
)
def test_title_shows_arguments_on_one_line(
    title: str, arguments: dict[str, Any], expected: str
) -> None:
    assert described(title, **arguments) == expected


@pytest.mark.parametrize(
    "title", ["{nothing}", "{text.upper}", "{text[0]}", "{text!r}", "{n:>5}", "{}", "{0}", "{n"]
)
def test_title_that_cannot_be_filled_is_refused_at_once(title: str) -> None:
    with pytest.raises(AgentConfigError, match="title"):
        described(title)


def test_title_of_a_tool_without_arguments() -> None:
    with pytest.raises(AgentConfigError, match="it has none"):
        tool(name="ping", title="{x}")(lambda: None)


@pytest.mark.parametrize("name", ["", "1st", "with space", "x" * 65, "ünt", "<lambda>"])
def test_name_that_providers_refuse_is_refused_at_once(name: str) -> None:
    def plain() -> None: ...

    plain.__name__ = name
    with pytest.raises(AgentConfigError, match="cannot be the name"):
        tool(plain)


def preview_of(made: Tool) -> str:
    return made.describe(made.validate({"amount": "2", "day": "2026-12-01"})).preview


def test_preview_gets_python_values() -> None:
    def preview(amount: Decimal, day: date) -> str:
        return f"{amount * 2} on {day:%d.%m.}"

    assert preview_of(tool(preview=preview)(pay)) == "4 on 01.12."
    assert preview_of(tool(pay)) == ""


async def test_preview_that_fails_asks_nobody_and_runs_nothing() -> None:
    ran: list[str] = []

    def preview(text: str) -> str:
        raise KeyError(text)

    @tool(gate="approval", preview=preview)
    async def shout(text: str) -> None:
        ran.append(text)

    stage = Stage(shout, {"text": "a"})
    with pytest.raises(KeyError):
        await stage.run()
    assert stage.point is None
    assert ran == []


def test_a_gate_that_does_not_exist_is_a_mistake_of_the_program() -> None:
    with pytest.raises(AgentConfigError, match="gate='aproval'; use 'approval', 'review'"):
        tool(gate="aproval")(test_a_gate_that_does_not_exist_is_a_mistake_of_the_program)  # type: ignore[call-overload]


@tool(gate="review", secret=["pin"], shown=("account",), title="Pay {account}")
def pay_out(account: str, pin: str, note: str = "") -> str:
    """Pay out."""
    return f"{account} {pin} {note}"


def test_secret_and_shown_arguments_are_part_of_the_definition() -> None:
    assert pay_out.definition.secret == ("pin",)
    assert pay_out.definition.shown == ("account",)
    assert pay_out.definition.masks == {"secret": ("pin",), "shown": ("account",)}


@pytest.mark.parametrize(
    ("declared", "fault"),
    [
        (
            {"secret": ["pni"]},
            "`secret` of tool 'f' is \\['pni'\\]; give a list of its arguments: a, b",
        ),
        ({"shown": ["c"]}, "`shown` of tool 'f'"),
        ({"secret": "a"}, "give a list of its arguments"),
        ({"secret": [5]}, "give a list of its arguments"),
        ({"secret": ["a"], "shown": ["b", "a"]}, "declares a both secret and shown"),
    ],
)
def test_wrong_declarations_are_refused_when_the_tool_is_made(
    declared: dict[str, Any], fault: str
) -> None:
    def f(a: str, b: str) -> None:
        """Do it."""

    with pytest.raises(AgentConfigError, match=fault):
        tool(**declared)(f)


def test_a_tool_without_arguments_has_none_to_declare() -> None:
    def f() -> None:
        """Do it."""

    with pytest.raises(AgentConfigError, match="it has none"):
        tool(secret=["a"])(f)


@pytest.mark.parametrize(("amount", "expected"), [(20.0, "20"), (20.5, "20.5"), (1e300, "1e+300")])
def test_title_shows_a_whole_number_without_a_fraction(amount: float, expected: str) -> None:
    @tool(title="Refund {amount} EUR")
    def refund(amount: float) -> str:
        """Refund an amount.

        Args:
            amount: In euros.
        """
        return str(amount)

    text = refund.describe(refund.validate({"amount": amount}))
    assert (text.title, text.named) == (f"Refund {expected} EUR", ("amount",))


class Sends:
    """Sends a letter."""

    def __call__(self, to: str) -> str:
        return to


@pytest.mark.parametrize("given", [Sends(), Sends, functools.partial(Sends().__call__, to="Rosa")])
@pytest.mark.parametrize("name", ["", "send"])
def test_what_is_no_function_is_refused_with_a_way_out(given: Any, name: str) -> None:
    with pytest.raises(AgentConfigError, match="write a function that calls"):
        tool(name=name)(given)
