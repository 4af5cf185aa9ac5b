"""Messages, stops and other decisions that come between a decision and the resumed turn."""

from __future__ import annotations

from agents.models import call, say
from bot.approvals.disclosure import Surface
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Status
from bot.records.approval_queries import newest_of
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, THREAD_ID, Office, an_actor, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
RAN = Execution(state=ExecutionState.ENDED, at_ms=1)


async def decide(office: Office, card: Approval, *, by: str = ADA) -> Approval:
    """Approve, up to the wake: the pass and the card wait for the test."""
    actor = an_actor(by)
    seen = await office.approvals.get_pending(card.approval_id, actor, shown=card.digest)
    yes = Decision(status=Status.APPROVED, by=by, at_ms=office.clock(), digest=seen.digest)
    decided = await office.approvals.decide(seen, yes, actor, surface=Surface.CARD)
    await office.approvals.tell([decided])
    return decided


async def is_at_rest(storage: SqliteStores) -> bool:
    """Whether nothing is due in the thread, and each card shows what its record says."""
    thread = await storage.threads.get(THREAD_ID)
    approvals = await newest_of(storage.approvals, THREAD_ID, limit=9)
    drawn = all(approval.card.revision == approval.shown_revision for approval in approvals)
    return (thread.due_ms, thread.leased_by) == (None, "") and drawn


async def follow(office: Office, *decided: Approval) -> None:
    """Do what follows: the passes first, and the cards."""
    for approval in decided:
        office.queue.spawn(office.attendance.attend(approval.approval_id, announced=approval))
    await office.queue.run()


async def test_what_another_process_decides_meanwhile_is_seen_by_the_same_pass(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [[PAY, PAY_BEN], say("Both paid.")])
    other = Office(storage, [], clock=office.clock, notifier=office.notifier, owner="other")
    await office.hear("<@UBOT> pay both")
    mia, ben = await office.open_approvals()
    first = await decide(office, mia)
    second = await decide(other, ben, by=BEN)
    await follow(office, first)
    await follow(other, second)
    assert [args for _, args in office.ran] == [("Mia", 5, "card"), ("Ben", 7, "card")]
    assert other.ran == []
    assert office.shown() == ["Both paid."]
    assert await is_at_rest(storage)


async def test_a_message_that_comes_before_the_pass_is_kept_for_the_agent(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid."), say("You are welcome.")])
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    await office.inbox.receive(an_incoming("<@UBOT> thanks", ts="1800000000.000200"))
    await follow(office, decided)
    assert len(office.ran) == 1
    assert office.shown() == ["Paid.", "You are welcome."]
    assert await is_at_rest(storage)


async def test_a_stop_that_comes_before_the_pass_lets_nothing_run(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    await office.inbox.receive(an_incoming("stop", user_id=ROSA, ts="1800000000.000200"))
    await follow(office, decided)
    assert office.ran == []
    (stored,) = await newest_of(storage.approvals, THREAD_ID, limit=9)
    assert stored.status is Status.CANCELLED
    assert await is_at_rest(storage)
