"""What the demo model understands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from bot.demo.commands import (
    Deploy,
    Hint,
    PlannedToolCall,
    Target,
    gives_up,
    read_command,
    with_answer,
)


def targets(text: str) -> tuple[Target, ...]:
    command = read_command(text)
    assert isinstance(command, Deploy)
    return command.targets


def arguments(text: str) -> dict[str, object]:
    command = read_command(text)
    assert isinstance(command, PlannedToolCall)
    return dict(command.arguments)


@pytest.mark.parametrize(
    "before",
    ["", "<@U0123>", "<@U0123> ", "  <@U0123|bot>: ", "<@U0123>, please ", "Hi, can you ", "OK "],
)
def test_mention_and_politeness_are_skipped(before: str) -> None:
    assert arguments(f"{before}status of payments") == {"service": "payments"}


@pytest.mark.parametrize("text", ["", "help", "hello", "what can you do?", "announcement", "roll"])
def test_the_rest_is_no_command(text: str) -> None:
    assert read_command(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("payments 1.4.2 to production", [("payments", "1.4.2", "production", 3)]),
        ("the Payments version 1.4.2 on prod", [("payments", "1.4.2", "production", 3)]),
        ("payments v1.4.2-rc.1 to stage", [("payments", "1.4.2-rc.1", "staging", 3)]),
        ("payments", [("payments", "", "", 3)]),
        ("payments to live", [("payments", "", "production", 3)]),
        ("payments 1.4.2", [("payments", "1.4.2", "", 3)]),
        ("payments 1.4.2 to staging with 5 replicas", [("payments", "1.4.2", "staging", 5)]),
        ("payments 1.4 to staging", [("payments", "1.4", "staging", 3)]),
        (
            "payments 1.4.2 and search 2.0.1 to production",
            [("payments", "1.4.2", "production", 3), ("search", "2.0.1", "production", 3)],
        ),
        (
            "payments 1.4.2 to staging, search to production",
            [("payments", "1.4.2", "staging", 3), ("search", "", "production", 3)],
        ),
        (
            "payments 1.4.2 to staging with 99999999999 replicas",
            [("payments", "1.4.2", "staging", 3)],
        ),
    ],
)
def test_deployments(text: str, expected: list[tuple[str, str, str, int]]) -> None:
    assert targets(f"deploy {text}") == tuple(Target(*fields) for fields in expected)
    assert targets(f"RELEASE {text}") == tuple(Target(*fields) for fields in expected)


@pytest.mark.parametrize(
    ("answer", "version", "place"),
    [
        ("1.4.2, production", "1.4.2", "production"),
        ("1.4.2\nproduction", "1.4.2", "production"),
        ("version 1.4.2 to staging", "1.4.2", "staging"),
        ("Version: v1.4.2. Environment: PROD.", "1.4.2", "production"),
        ("1. 1.4.2\n2. staging", "1.4.2", "staging"),
        ("staging", "", "staging"),
        ("1.4.2!", "1.4.2", ""),
        ("1.4", "", ""),
        ("10.0.0.1.5", "", ""),
        ("reproduction of 2", "", ""),
        ("dunno", "", ""),
    ],
)
def test_answers_of_many_shapes(answer: str, version: str, place: str) -> None:
    deploy = with_answer(Deploy((Target("payments"),)), answer)
    assert deploy.targets == (Target("payments", version, place),)


def test_answer_keeps_what_is_known_and_fills_in_order() -> None:
    asked = Deploy((Target("a", "1.0.0"), Target("b"), Target("c", environment="staging")))
    deploy = with_answer(asked, "2.0.0 and 3.0.0, staging then production")
    assert deploy.targets == (
        Target("a", "1.0.0", "staging"),
        Target("b", "2.0.0", "production"),
        Target("c", "3.0.0", "staging"),
    )


@pytest.mark.parametrize(
    ("text", "order", "amount"),
    [
        ("refund order 1234 120.50", "1234", "120.50"),
        ("refund 1234 5", "1234", "5"),
        ("refund order #A-77 €12.00 for the customer", "A-77", "12.00"),
        ("refund order 1 -5", "1", "-5"),
    ],
)
def test_refunds(text: str, order: str, amount: str) -> None:
    values = arguments(text)
    assert (values["order_id"], values["amount"]) == (order, amount)


@pytest.mark.parametrize(
    "text",
    [
        "refund",
        "refund order",
        "refund order 1234",
        "refund order 1234 120,50",
        "refund order 1234 1,250.00",
        "refund order 1 1.2.3",
        "refund order 1 12e5",
        "restart",
        "restart cache",
        "restart cache tomorrow",
        "restart cache on 1.12.2026",
        "status",
        "status of 5",
        "deploy",
        "deploy latest",
        "deploy to production",
        "announce",
        "roll back",
    ],
)
def test_half_a_command_is_never_guessed(text: str) -> None:
    assert isinstance(read_command(text), Hint)


@pytest.mark.parametrize(
    ("text", "channels", "message"),
    [
        ("announce all is well", ["status"], "all is well"),
        ("announce: all is well", ["status"], "all is well"),
        ("announce to status: hi", ["status"], "hi"),
        ("announce in #support and #status hello", ["support", "status"], "hello"),
        ("announce to status, status: hi", ["status"], "hi"),
        ("announce to everybody: hi", ["status"], "to everybody: hi"),
        ("announce in status:\none\n two", ["status"], "one\n two"),
    ],
)
def test_announcements(text: str, channels: list[str], message: str) -> None:
    assert arguments(text) == {"message": message, "channels": channels}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cancel", True),
        ("Never mind!", True),
        ("cancel the order of staging now", False),
        ("", False),
    ],
)
def test_giving_up(text: str, expected: bool) -> None:
    assert gives_up(text) is expected


@settings(deadline=None)
@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for start in ["", "deploy ", "refund ", "restart ", "announce ", "status ", "rollback "]:
        assert read_command(start + text) == read_command(start + text)
    before = Deploy((Target("a"),))
    assert isinstance(with_answer(before, text), Deploy)
