"""A word that stops the agent: who may say it, what it ends, and what people are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents import ChatModelAgent, ScriptedModel, tool
from agents.models import call, say
from bot.audit.acts import Act
from bot.audit.report import story
from bot.questions.drawing import drawn_question
from bot.records.approval import Approval, ExecutionState, Status
from bot.slack.cards.decided import decided_card
from bot.threads.cancellation import looks_like_stop
from bot.words import say as words
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, THREAD_ID, KilledError, Office, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
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


async def test_a_stop_that_comes_before_the_pass_lets_nothing_run(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    await office.decide_meanwhile(approval, by=ADA)
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    await office.queue.run()
    assert office.ran == []
    stored = await storage.approvals.get(approval.approval_id)
    assert stored.status is Status.CANCELLED
    assert stored.card.revision == stored.shown_revision
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.due_ms, thread.leased_by) == (None, "")


class Migration:
    """An approved tool that works until the test lets it end, and its agent."""

    def __init__(self, office: Office, *, is_cancellable: bool = False) -> None:
        self.inside, self.go_on = asyncio.Event(), asyncio.Event()

        @tool(gate="approval", title="Migrate {table}", cancellable=is_cancellable)
        async def migrate(table: str) -> str:
            """Migrate a table."""
            self.inside.set()
            await self.go_on.wait()
            return f"{table} migrated"

        office.model = ScriptedModel([call("migrate", {"table": "orders"}, id="c1"), say("Done.")])
        office.make_agent = lambda model: ChatModelAgent(name="A", model=model, tools=[migrate])
        self.office = office

    async def start(self) -> Approval:
        """Let Ada approve the call; return its approval while it runs."""
        office = self.office
        approval = await office.asked("<@UBOT> migrate")
        self.work = asyncio.ensure_future(office.decide(approval))
        await self.inside.wait()
        return approval

    async def end(self) -> None:
        """Let the tool end, and all that follows."""
        self.go_on.set()
        await self.work
        await self.office.queue.run()


async def test_a_stop_during_a_call_is_answered_at_once(storage: SqliteStores) -> None:
    office = Office(storage)
    migration = Migration(office)
    approval = await migration.start()
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    stored = await storage.approvals.get(approval.approval_id)
    assert stored.stopped_by == ROSA
    await office.attendance.attend(approval.approval_id)
    line = "This can't be interrupted; nothing runs after it."
    assert line in str(decided_card(drawn_question(stored)).blocks)
    await migration.end()
    opening = "Stopping. *Migrate orders* has already started and can't be interrupted. "
    assert office.notifier.whispers == [(ROSA, f"{opening}Nothing after it will run.")]
    assert office.shown() == [
        "Stopped by urosa. Ran to its end, as it had started: Migrate orders."
    ]
    acts = [
        (entry.action, entry.actor_id)
        for entry in await story(storage, approval_id=approval.approval_id)
    ]
    assert (Act.STOPPED, ROSA) in acts
    assert line not in str(office.notifier.cards[approval.approval_id])


async def test_a_stop_cancels_a_cancellable_call(storage: SqliteStores) -> None:
    office = Office(storage)
    migration = Migration(office, is_cancellable=True)
    approval = await migration.start()
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    await migration.work
    await office.queue.run()
    assert office.notifier.whispers == [(ROSA, words("command.stop_done"))]
    assert office.shown() == ["Stopped by urosa. Failed: Migrate orders."]
    run = (await storage.approvals.get(approval.approval_id)).execution
    assert run.state is ExecutionState.FAILED
    assert "A part of it may have happened" in run.text


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("withdraw it", "This is already running, so you can't withdraw it."),
        (
            "use the replica",
            "Noted. *Migrate orders* is running. The agent will read this after it.",
        ),
        ("yes", "Noted. *Migrate orders* is running. The agent will read this after it."),
    ],
)
async def test_typed_words_are_answered_while_a_call_runs(
    storage: SqliteStores, text: str, reply: str
) -> None:
    office = Office(storage)
    migration = Migration(office)
    await migration.start()
    await office.inbox.receive(an_incoming(text, ts=ts(1)))
    await migration.end()
    assert [said.startswith(reply) for _, said in office.notifier.whispers] == [True]


class SilentModel(ScriptedModel):
    """A model that sends nothing at its second request."""

    def __init__(self, turns: list[Any]) -> None:
        super().__init__(turns)
        self.is_asked = asyncio.Event()

    async def _stream(self, messages: Any, info: Any) -> Any:
        if self.calls:
            self.is_asked.set()
            await asyncio.Event().wait()
        async for piece in super()._stream(messages, info):
            yield piece


async def test_a_stop_after_a_call_cuts_off_the_model(storage: SqliteStores) -> None:
    office = Office(storage, [])
    office.model = model = SilentModel([PAY])
    office.make_agent = lambda _: ChatModelAgent(name="A", model=model, tools=office._tools())
    await office.hear(ASK)
    work = asyncio.ensure_future(office.decide(await office.the_approval()))
    await model.is_asked.wait()
    await office.inbox.receive(an_incoming("stop", ts=ts(1)))
    await work
    await office.queue.run()
    assert office.shown() == ["Stopped by urosa. Already ran: Pay 5 to Mia."]


async def test_a_stop_that_the_end_overtook_is_answered(storage: SqliteStores) -> None:
    office = Office(storage, [say("Hello.")])
    await office.hear("<@UBOT> hello")
    late = an_incoming("stop", ts=ts(1))
    await storage.inbox.add(office.inbox._message(late, "stop", office.clock()))
    await storage.threads.wake(THREAD_ID, now_ms=office.clock())
    await office.threads.work(THREAD_ID)
    await office.queue.run()
    assert office.notifier.whispers == [(ROSA, words("message.stopped_late"))]


async def test_another_process_hears_of_it_at_its_next_beat(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await office.inbox.receive(an_incoming(ASK))
    other = Office(storage, [], clock=office.clock, owner="other")
    runs = office.turns.stopping
    with runs.run(THREAD_ID) as running:
        await office.threads._heed_stop(THREAD_ID)
        seen = [running.is_stopped]
        await other.inbox.receive(an_incoming("stop", ts=ts(1)))
        seen.append(running.is_stopped)
        await office.threads._heed_stop(THREAD_ID)
        assert [*seen, running.is_stopped] == [False, False, True]
    runs.stop(THREAD_ID)  # over


async def test_a_crash_in_between_changes_nothing(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)

    async def die(*_: object, **__: object) -> None:
        raise KilledError

    records = office.turns.call_records
    object.__setattr__(office.turns, "call_records", replace_ended(records, die))
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
