"""What people decided is in the audit before anything that follows from it: whatever goes on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from agents import (
    Agent,
    ChatModelAgent,
    FollowUpInfo,
    ResumeError,
    ScriptedModel,
    interrupt,
    tool,
)
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.graph import END, START, StateGraph, node_interrupt
from agents.graph.agent import GraphAgent
from agents.models import Turn, call, say
from bot.core.decisions.unseen import Surface
from bot.errors import ApprovalClosedError
from bot.questions.texts import texts_json
from storage.errors import Fault, StoreBrokenError
from storage.records import Approval, AuditEntry, Decision, Status
from storage.sqlite import SqliteStorage
from tests.scenario import asking
from tests.unit.bot.office import ADA, BEN, THREAD_ID, Office, an_actor

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
MANY = 20


class Seen:
    """What was in the audit at an effect."""

    def __init__(self, storage: SqliteStorage) -> None:
        self.storage = storage
        self.acts: list[str] = []

    async def happen(self) -> None:
        """Do something that cannot be taken back."""
        noted = await self.storage.audit.of_thread(THREAD_ID, limit=100)
        self.acts = [entry.action for entry in noted]

    def node(self, _: ScriptedModel) -> Agent:
        """An agent with a node that asks, and does something of its own with the answer."""

        async def send(_: asking.State) -> asking.State:
            where = node_interrupt("Where?")
            await self.happen()
            return {"output": str(where)}

        made = StateGraph(asking.State).add_node("send", send)
        made.add_edge(START, "send").add_edge("send", END)
        return GraphAgent(made.compile(), "asking")

    def tool(self, _: ScriptedModel) -> Agent:
        """An agent with a tool that no gate guards, and that asks by itself."""

        @tool
        async def send() -> str:
            """Send something."""
            was_interrupted, _, _ = get_interrupt_state(object)
            is_target, _, answer = get_resume_context(object)
            if not (was_interrupted and is_target):
                interrupt(FollowUpInfo(questions=("Where?",)))
            await self.happen()
            return str(answer)

        turns: list[Turn] = [call("send", {}, id="c1"), say("Sent.")]
        return ChatModelAgent(name="asking", model=ScriptedModel(turns), tools=[send])


@pytest.mark.parametrize("asks", ["node", "tool"])
async def test_an_answer_is_in_the_audit_before_what_asked_goes_on(
    storage: SqliteStorage, asks: str
) -> None:
    seen = Seen(storage)
    office = Office(storage, [], make_agent=getattr(seen, asks))
    await office.hear("<@UBOT> go")
    approval = await office.the_approval()
    await office.decide(approval, Status.ANSWERED, answers=texts_json(["Rome"]))
    assert {"decided", "resumed"} <= set(seen.acts)


async def written(office: Office) -> list[str]:
    """The acts about people's decisions, in the order in which they were put into the audit."""
    names = {"voted", "decided", "resumed", "refused", "started", "executed", "unusable"}
    (team,) = (await office.storage.trail.heads()).keys()
    page = await office.storage.trail.page(team, after=0, limit=100)
    return [link.entry.action for link in page if link.entry.action in names]


async def test_who_was_too_late_is_noted_after_what_was_decided(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    card = await office.the_approval()
    actor = an_actor(ADA)
    seen = await office.approvals.find(card.approval_id, actor, shown=card.digest)
    yes = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest)
    decided = await office.approvals.decide(seen, yes, actor, surface=Surface.CARD)
    await office.approvals.tell([decided])  # held: its run goes on here in a moment
    with pytest.raises(ApprovalClosedError):
        await office.decide(card, by=BEN)
    await office.queue.run()
    assert await written(office) == [
        "voted",
        "decided",
        "refused",
        "resumed",
        "started",
        "executed",
    ]


async def test_who_was_too_late_elsewhere_is_noted_after_what_was_decided(
    storage: SqliteStorage,
) -> None:
    """The process in which it was decided still holds that."""
    office = Office(storage, [PAY, say("Paid.")])
    other = Office(storage, [], clock=office.clock, owner="other")
    await office.hear("<@UBOT> pay Mia")
    card = await office.the_approval()
    actor = an_actor(ADA)
    seen = await office.approvals.find(card.approval_id, actor, shown=card.digest)
    yes = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest)
    decided = await office.approvals.decide(seen, yes, actor, surface=Surface.CARD)
    await office.approvals.tell([decided])
    with pytest.raises(ApprovalClosedError):
        await other.approvals.find(card.approval_id, an_actor(BEN), shown=card.digest)
    assert await written(office) == ["voted", "decided", "refused"]
    office.clock.forward(seconds=10)
    with pytest.raises(ApprovalClosedError):
        await other.approvals.find(card.approval_id, an_actor(BEN), shown=card.digest)
    await office.queue.run()
    assert await written(office) == [
        "voted",
        "decided",
        "refused",
        "refused",
        "resumed",
        "started",
        "executed",
    ]


async def test_what_the_run_does_not_take_is_noted_after_it_was_told(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    card = await office.the_approval()
    resume = office.runner.resume_with_params

    def refuses(*_: object, **__: object) -> object:
        office.runner.resume_with_params = resume  # type: ignore[method-assign]
        error = ResumeError("it does not fit")
        error.target = card.interrupt_id
        raise error

    office.runner.resume_with_params = refuses  # type: ignore[assignment]
    await office.decide(card)
    acts = await written(office)
    assert acts[:4] == ["voted", "decided", "resumed", "unusable"]


async def test_a_process_that_lost_its_lease_notes_nothing_twice(storage: SqliteStorage) -> None:
    """It was asleep with what it held, and wakes up after another one has done all of it."""
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    card = await office.the_approval()
    actor = an_actor(ADA)
    seen = await office.approvals.find(card.approval_id, actor, shown=card.digest)
    yes = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest)
    decided = await office.approvals.decide(seen, yes, actor, surface=Surface.CARD)
    await office.approvals.tell([decided])
    other = Office(storage, [say("Paid.")], clock=office.clock, owner="other")
    other.clock.forward(minutes=1)
    await other.sweep.tick()
    await other.queue.run()
    assert len(other.ran) == 1
    done = ["voted", "decided", "resumed", "started", "executed"]
    assert await written(other) == done
    await office.queue.run()
    await office.entries.write_all()
    assert office.ran == []
    assert await written(other) == done


async def test_a_disk_that_was_full_for_a_while_lets_nothing_start_before_its_entries(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    card, audit = await office.the_approval(), office.entries.audit
    append_all = audit.append_all

    async def full(entries: Sequence[AuditEntry]) -> None:
        raise StoreBrokenError("no room is left", Fault.FULL)

    audit.append_all = full  # type: ignore[method-assign]
    with suppress(StoreBrokenError):
        await office.decide(card)
    with suppress(StoreBrokenError):
        await office.queue.run()
    assert office.ran == []
    await office.entries.write_all()  # as at an orderly stop: it says so, and raises nothing
    audit.append_all = append_all  # type: ignore[method-assign]
    office.clock.forward(minutes=1)
    await office.sweep.tick()
    await office.queue.run()
    assert len(office.ran) == 1
    acts = await written(office)
    assert acts == ["voted", "decided", "resumed", "started", "executed"]


async def test_of_many_decided_at_once_each_has_its_entries_once_and_in_order(
    storage: SqliteStorage,
) -> None:
    calls = [call("pay", {"to": "Mia", "amount": n}, id=f"c{n}") for n in range(MANY)]
    office = Office(storage, [calls, say("Paid.")])
    await office.hear("<@UBOT> pay all of them")
    actor, decided = an_actor(ADA), list[Approval]()
    for card in await office.open_approvals():
        seen = await office.approvals.find(card.approval_id, actor, shown=card.digest)
        yes = Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=seen.digest)
        decided.append(await office.approvals.decide(seen, yes, actor, surface=Surface.CARD))
    await office.approvals.tell(decided)
    await office.queue.run()
    assert len(office.ran) == MANY
    (team,) = (await storage.trail.heads()).keys()
    page = await storage.trail.page(team, after=0, limit=1_000)
    for one in decided:
        mine = [link.entry.action for link in page if link.entry.approval_id == one.approval_id]
        assert mine == ["requested", "voted", "decided", "resumed"]
    acts = [link.entry.action for link in page]
    assert acts.index("started") > max(at for at, act in enumerate(acts) if act == "resumed")
