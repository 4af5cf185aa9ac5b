"""Several calls in words: the author's, where they fit; nothing where they fail or lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from agents import AgentConfigError, tool
from agents.core.codec import Json
from agents.core.tools import Tool
from agents.tools.several import SeveralText, describer_in

CALLS: list[Mapping[str, Json]] = [
    {"order": "1", "amount": "20.00", "currency": "EUR"},
    {"order": "2", "amount": "1020.50", "currency": "EUR"},
]


def a_tool(**words: Any) -> Tool:
    @tool(gate="approval", **words)
    def refund(order: str, amount: Decimal, currency: str = "EUR") -> str:
        return f"{order} {amount} {currency}"

    return refund


def text_of(calls: list[Mapping[str, Json]] = CALLS, **words: Any) -> SeveralText:
    describer = describer_in(a_tool(**words))
    assert describer is not None
    return describer.describe_several(calls)


def test_a_template_counts_adds_up_and_names_what_all_have_in_common() -> None:
    words = text_of(batch_title="{n} refunds, {amount:sum} {currency}  in total")
    assert words.title == "2 refunds, 1,040.50 EUR in total"


def test_a_value_that_differs_stands_for_none_of_them() -> None:
    mixed = [*CALLS, {**CALLS[0], "currency": "USD"}]
    assert text_of(mixed, batch_title="{n} refunds, {amount:sum} {currency}").title == ""
    assert text_of(batch_title="Refund order {order}").title == ""


def test_a_function_gets_the_arguments_of_each_call_as_the_tool_does() -> None:
    def words(calls: list[dict[str, Any]]) -> str:
        return f"{len(calls)} refunds,\nup to {max(arguments['amount'] for arguments in calls)}"

    assert text_of(batch_title=words).title == "2 refunds, up to 1020.50"


def raises(*_: object, **__: object) -> str:
    raise RuntimeError("no words today")


@pytest.mark.parametrize(
    "words", [raises, lambda _: None, lambda _: 7, lambda: "", lambda _: b"two"]
)
def test_words_that_fail_or_are_none_are_left_out(words: Callable[..., Any]) -> None:
    assert text_of(batch_title=words).title == ""


def test_a_function_cannot_change_the_calls() -> None:
    def greedy(calls: list[dict[str, Any]]) -> str:
        calls[0]["amount"] = Decimal(1)
        calls.clear()
        return "nothing"

    before = [dict(arguments) for arguments in CALLS]
    assert text_of(batch_title=greedy).title == "nothing"
    assert before == CALLS


def test_a_key_is_an_argument_or_a_function_of_the_arguments() -> None:
    sizes = (Decimal("20.00"), Decimal("1020.50"))
    assert text_of(batch_key="amount").sizes == sizes
    assert text_of(batch_key=lambda order, amount, currency: amount).sizes == sizes
    assert text_of().sizes == ()


@pytest.mark.parametrize(
    "key",
    [
        raises,
        lambda **_: float("nan"),
        lambda **_: float("inf"),
        lambda **_: True,
        lambda **_: None,
        lambda **_: "many",
        lambda **_: Decimal("sNaN"),
        "currency",
    ],
)
def test_a_key_that_is_no_number_counts_for_nothing(key: Any) -> None:
    assert text_of(batch_key=key).sizes == ()


@pytest.mark.parametrize(
    "words",
    [
        {"batch_title": "{n"},
        {"batch_title": "{total}"},
        {"batch_title": "{amount:max}"},
        {"batch_title": "{amount!r}"},
        {"batch_title": "{n:sum}"},
        {"batch_title": "{}"},
        {"batch_key": "total"},
    ],
)
def test_words_that_name_no_argument_are_refused_at_once(words: dict[str, str]) -> None:
    with pytest.raises(AgentConfigError, match=r"batch_(title|key) of tool 'refund'"):
        a_tool(**words)


def test_what_is_no_tool_with_such_words_has_none() -> None:
    assert describer_in(object()) is None
    assert describer_in(None) is None
