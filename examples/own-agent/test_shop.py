"""Nothing is refunded before people have agreed, and what they agreed to is what is refunded."""

import asyncio

import pytest
import shop

from agents import (
    InterruptContext,
    InterruptEvent,
    MemoryCheckpointStore,
    Runner,
    ScriptedModel,
    ToolEvent,
)
from agents.models import call, say

REFUND = {"order": "A-1", "amount": 20, "reason": "The parcel was empty."}


@pytest.fixture(autouse=True)
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_URL", shop.PRETEND)


def runner_of(**changes: object) -> Runner:
    """A runner whose model asks for one refund, and then says that it is done."""
    model = ScriptedModel([call("refund", {**REFUND, **changes}), say("Done.")])
    return Runner(shop.build(model), checkpoint_store=MemoryCheckpointStore())


async def asked(runner: Runner) -> InterruptContext:
    """Let the agent work until people are asked."""
    last = [event async for event in runner.query("Refund A-1.", checkpoint_id="1")][-1]
    assert isinstance(last, InterruptEvent)
    (waiting,) = last.contexts
    return waiting


async def outcomes(runner: Runner, waiting: InterruptContext, answer: object) -> list[str]:
    """Give the answer of people, as a click does; what came of the calls."""
    events = [event async for event in runner.resume("1", {waiting.id: answer})]
    return [event.outcome for event in events if isinstance(event, ToolEvent)]


def test_the_card_says_what_will_happen() -> None:
    info = asyncio.run(asked(runner_of())).info
    assert info.title == "Refund 20 € of order A-1"
    assert "gets 20.00 € back" in info.preview


def test_a_refund_runs_when_somebody_agrees() -> None:
    async def play() -> list[str]:
        runner = runner_of()
        waiting = await asked(runner)
        return await outcomes(runner, waiting, waiting.info.accept(by="ada"))

    assert asyncio.run(play()) == ["ran"]


def test_a_refund_that_is_rejected_does_not_run() -> None:
    async def play() -> list[str]:
        runner = runner_of()
        waiting = await asked(runner)
        return await outcomes(runner, waiting, waiting.info.reject("not twice", by="ada"))

    assert asyncio.run(play()) == ["rejected"]


def test_nobody_is_asked_about_too_much() -> None:
    async def play() -> list[object]:
        return [event async for event in runner_of(amount=5000).query("Refund.", checkpoint_id="1")]

    assert not [event for event in asyncio.run(play()) if isinstance(event, InterruptEvent)]
