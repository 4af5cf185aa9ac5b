"""Messages, stops and other decisions that come between a decision and the resumed turn."""

from __future__ import annotations

from agents.models import call
from bot.approvals.disclosure import Surface
from bot.records.approval import Approval, Decision, Status
from bot.records.approval_queries import newest_of
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, ROSA, THREAD_ID, Office, an_actor, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")


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
