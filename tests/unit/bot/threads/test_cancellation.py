"""A word that stops the agent: who may say it, what it ends, and what people are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents import (
    CancelToken,
    ChatModelAgent,
    MessageEvent,
    ScriptedModel,
    TextDelta,
    ToolEvent,
    tool,
)
from agents.core.calls import ToolCall
from agents.core.observers import ToolOutcome
from agents.models import call, say
from bot.audit.acts import Act
from bot.audit.report import story
from bot.records.approval import Status
from bot.threads.cancellation import looks_like_stop
from bot.threads.message_event import NO_TURN
from bot.threads.runs.following import StoppableRun
from bot.words import say as words
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, THREAD_ID, KilledError, Office, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = "<@UBOT> pay Mia"


def ts(number: int) -> str:
    return f"18000001{number:02d}.000001"


@pytest.mark.parametrize(
    "text", ["stop", "Stop!", "please stop", "STOP IT NOW.", "halt", "abort", "stop everything"]
)
def test_a_message_that_is_nothing_but_a_stop(text: str) -> None:
    assert looks_like_stop(text)


@pytest.mark.parametrize(
    "text", ["stop the payments service", "do not stop", "stopped", "", "cancel", "stop?", "no"]
)
def test_a_message_that_is_more_is_none(text: str) -> None:
    assert not looks_like_stop(text)


async def test_what_waits_is_cancelled_and_the_turn_is_over(storage: SqliteStores) -> None:
    office = Office(storage, [[PAY, PAY_BEN], say("Hello again.")])
    await office.hear(ASK)
    first, second = await office.open_approvals()
    await office.hear("stop", ts=ts(1))
    cards = office.notifier.cards
    assert {cards[one.approval_id].status for one in (first, second)} == {Status.CANCELLED}
    assert office.ran == []
    told = office.shown()[-1]
    assert told.startswith("Stopped by urosa.")
    assert "Didn't run: Pay 5 to Mia; Pay 7 to Ben." in told
    assert "Nothing that needed approval ran." in told
    assert (await storage.threads.get(THREAD_ID)).turn_open is False
    assert [one.text for one in await storage.inbox.of_turn(THREAD_ID, NO_TURN)] == ["stop"]
    acts = [(one.action, one.actor_id) for one in await story(storage, thread_id=THREAD_ID)]
    assert (Act.STOPPED, ROSA) in acts
    await office.hear("<@UBOT> hello", ts=ts(2))
    assert office.shown()[-1] == "Hello again."


async def test_what_ran_before_is_named(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, PAY_BEN])
    await office.hear(ASK)
    await office.decide(await office.the_approval())
    await office.hear("stop", ts=ts(1))
    told = office.shown()[-1]
    assert "Already ran: Pay 5 to Mia." in told
    assert "Didn't run: Pay 7 to Ben." in told
    assert [name for name, _ in office.ran] == ["pay"]


async def test_a_message_that_becomes_a_stop_needs_the_right_to_it(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Sorry.")])
    await office.hear(ASK)
    late = an_incoming("<@UBOT> hello", user_id=BEN, ts=ts(1))
    await office.inbox.receive(late)
    office.directory.channels["C1"] = frozenset({ROSA, ADA})
    await storage.inbox.revise(late.message_id, "stop")
    await office.threads.work(THREAD_ID)
    await office.queue.run()
    assert len(await office.open_approvals()) == 1
    assert (BEN, words("refuse.stop")) in office.notifier.whispers


async def test_what_was_not_begun_does_not_begin(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await office.inbox.receive(an_incoming(ASK))
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    await office.threads.work(THREAD_ID)
    await office.queue.run()
    assert office.model.calls == 0
    assert office.notifier.whispers[-1] == (ROSA, words("message.stopped_early"))


async def test_what_is_written_after_the_stop_is_the_next_turn(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Then 6.")])
    await office.hear(ASK)
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    await office.hear("pay 6", ts=ts(2))
    assert await office.open_approvals() == []
    assert office.shown()[-1] == "Then 6."
    history = str(office.model.inputs[-1])
    assert "Stopped by urosa" in history
    assert "pay 6" in history


async def test_a_run_is_stopped_after_its_tools(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.make_agent = lambda model: stopping_agent(office, model)
    await office.hear("<@UBOT> look")
    assert office.ran == [("look", "done")]
    assert office.model.calls == 1
    assert office.shown()[-1].startswith("Stopped by urosa.")


def stopping_agent(office: Office, _: ScriptedModel) -> ChatModelAgent:
    """An agent whose tool is at work when somebody says stop; its second answer never comes."""

    @tool
    async def look() -> str:
        """Look, while somebody loses patience."""
        await office.inbox.receive(an_incoming("stop", ts=ts(1)))
        await asyncio.sleep(0)
        office.ran.append(("look", "done"))
        return "fine"

    office.model = ScriptedModel([call("look", {}, id="c1")])
    return ChatModelAgent(name="A", model=office.model, tools=[look])


async def test_another_process_hears_of_it_at_its_next_beat(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await office.inbox.receive(an_incoming(ASK))
    other = Office(storage, [], clock=office.clock, owner="other")
    runs = office.turns.stopping
    with runs.run(THREAD_ID, is_resumed=False) as running:
        await office.threads._heed_stop(THREAD_ID)
        seen = [running.is_stopped]
        await other.inbox.receive(an_incoming("stop", ts=ts(1)))
        seen.append(running.is_stopped)
        await office.threads._heed_stop(THREAD_ID)
        assert [*seen, running.is_stopped] == [False, False, True]
    runs.stop(THREAD_ID)  # over


async def test_a_crash_in_between_changes_nothing(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    approval = await office.the_approval()

    async def die(*_: object, **__: object) -> None:
        raise KilledError

    witness = office.turns.witness
    object.__setattr__(office.turns, "witness", replace_ended(witness, die))
    with pytest.raises(KilledError):
        await office.hear("stop", ts=ts(1))
    office.queue.drop()
    second = Office(storage, [], clock=office.clock, owner="second")
    second.clock.forward(minutes=1)
    await second.threads.work(THREAD_ID)
    await second.queue.run()
    assert (await storage.approvals.get(approval.approval_id)).status is Status.CANCELLED
    assert [text for text in second.shown() if text.startswith("Stopped")]
    assert await storage.inbox.new(THREAD_ID, limit=5) == []


def replace_ended(witness: object, ended: object) -> Any:
    """The witness with another end."""

    class Dying:
        def __getattr__(self, name: str) -> object:
            return ended if name == "ended" else getattr(witness, name)

    return Dying()


HEADER: Any = {"agent_name": "A", "run_path": ("A",), "key": "k"}
ONE = ToolCall(id="1", name="look", arguments={})


def test_a_model_is_cut_off_and_a_tool_is_not() -> None:
    run = StoppableRun()
    run.stop()
    assert run.token.mode == "now"
    run = StoppableRun()
    run.see(MessageEvent(**HEADER, text="", tool_calls=(ONE,)))
    run.stop()
    assert (run.token.mode, run.token.stop_now.is_set()) == ("next", False)
    run.see(ToolEvent(**HEADER, call=ONE, result="", outcome=ToolOutcome.RAN))
    run.see(TextDelta(**HEADER, text="and"))
    assert run.token.stop_now.is_set()


def test_what_a_resume_begins_with_is_not_cut_off() -> None:
    run = StoppableRun(calls={"resumed"})
    run.stop()
    assert run.token.mode == "next"


def test_next_stops_at_each_safe_point() -> None:
    token = CancelToken()
    token.cancel("next")
    assert token.wants("after_model")
    assert token.wants("after_tools")
    assert token.wants("now")
    assert not token.stop_now.is_set()
