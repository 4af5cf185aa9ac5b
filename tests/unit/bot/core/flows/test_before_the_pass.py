"""What a decision hands on to the pass after it: whatever comes in between, the records decide."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from agents.models import call, say
from bot.core.decisions.unseen import Surface
from bot.core.runs.outcome import Run, RunState, run_of
from bot.core.scheduler import give_back
from storage.errors import StoreUnavailableError
from storage.records import Approval, Decision, Status
from storage.sqlite import SqliteStorage
from tests.unit.bot.office import ADA, BEN, ROSA, THREAD_ID, Office, an_actor, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
RAN = Run(state=RunState.RAN, at_ms=1).to_text()


async def decide(office: Office, card: Approval, *, by: str = ADA) -> Approval:
    """Approve, up to the wake: the pass and the card wait for the test."""
    actor = an_actor(by)
    seen = await office.approvals.find(card.approval_id, actor, shown=card.digest)
    yes = Decision(status=Status.APPROVED, by=by, at_ms=office.clock(), digest=seen.digest)
    decided = await office.approvals.decide(seen, yes, actor, surface=Surface.CARD)
    await office.approvals.tell([decided])
    return decided


async def is_at_rest(storage: SqliteStorage) -> bool:
    """Whether nothing is due in the thread, and each card shows what its record says."""
    thread = await storage.threads.get(THREAD_ID)
    found = await storage.approvals.newest_of(THREAD_ID, limit=9)
    drawn = all(one.drawn_revision == one.revision for one in found)
    return (thread.due_ms, thread.leased_by) == (None, "") and drawn


async def follow(office: Office, *decided: Approval) -> None:
    """Do what follows: the passes first, and the cards."""
    for one in decided:
        office.queue.spawn(office.attendance.attend(one.approval_id, is_told=True))
    await office.queue.run()


async def test_what_another_process_decides_meanwhile_is_seen_by_the_same_pass(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [[PAY, PAY_BEN], say("Both paid.")], expects_ends=True)
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
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY, say("Paid."), say("You are welcome.")], expects_ends=True)
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    await office.inbox.receive(an_incoming("<@UBOT> thanks", ts="1800000000.000200"))
    await follow(office, decided)
    assert len(office.ran) == 1
    assert office.shown() == ["Paid.", "You are welcome."]
    assert await is_at_rest(storage)


async def test_a_stop_that_comes_before_the_pass_lets_nothing_run(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY], expects_ends=True)
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    await office.inbox.receive(an_incoming("stop", user_id=ROSA, ts="1800000000.000200"))
    await follow(office, decided)
    assert office.ran == []
    (stored,) = await storage.approvals.newest_of(THREAD_ID, limit=9)
    assert stored.status is Status.CANCELLED
    assert await is_at_rest(storage)


async def test_a_pass_that_fails_hands_nothing_on_to_the_next(storage: SqliteStorage) -> None:
    """What it was handed is read again by then: another process may have had the thread."""
    office = Office(storage, [PAY, say("Paid.")], expects_ends=True)
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    new = storage.inbox.new

    async def away(*_: Any, **__: Any) -> Any:
        storage.inbox.new = new  # type: ignore[method-assign]
        raise StoreUnavailableError("away")

    storage.inbox.new = away  # type: ignore[method-assign]
    for work in list(office.queue.waiting):
        office.queue.waiting.remove(work)
        with suppress(StoreUnavailableError):
            await work
    reads: list[str] = []
    open_of = storage.approvals.open_of

    async def read(thread_id: str) -> Any:
        reads.append(thread_id)
        return await open_of(thread_id)

    storage.approvals.open_of = read  # type: ignore[method-assign]
    office.clock.forward(minutes=1)
    await office.sweep.tick()
    await follow(office, decided)
    assert len(office.ran) == 1
    assert reads
    assert await is_at_rest(storage)


async def test_the_end_of_a_call_reaches_its_card_also_after_the_wait(
    storage: SqliteStorage,
) -> None:
    """A process that stops while the card waits, or sleeps over it, leaves it due."""
    office = Office(storage, [PAY, say("Paid.")], expects_ends=True)
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    await office.queue.run()  # the call has ended, and was told to a card that nobody drew
    stored = await storage.approvals.get(decided.approval_id)
    run = run_of(stored)
    assert run is not None
    assert run.state is RunState.RAN
    office.clock.forward(minutes=1)
    await follow(office, decided)
    assert await is_at_rest(storage)


async def test_what_a_stop_kept_from_beginning_is_begun_by_the_next_process_at_once(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY])
    await office.hear("<@UBOT> pay Mia")
    await decide(office, await office.the_approval())
    office.queue.drop()  # as the stop does with what waits for a place
    await office.sweep.give_back()
    other = Office(storage, [say("Paid.")], clock=office.clock, owner="other")
    await other.sweep.tick()  # no lease is waited for
    await other.queue.run()
    assert len(other.ran) == 1
    assert await is_at_rest(storage)


async def test_a_card_that_a_stop_kept_from_being_drawn_is_drawn_by_the_next_process_at_once(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear("<@UBOT> pay Mia")
    decided = await decide(office, await office.the_approval())
    lease, now = office.taken.offer(), office.clock()
    ran = await storage.approvals.mark_run(
        decided.approval_id, was="", run_json=RAN, now_ms=now, lease=lease
    )
    office.taken.keep(decided.approval_id, ran, lease)
    office.queue.drop()
    await give_back(office.sweep)
    other = Office(storage, [], clock=office.clock, notifier=office.notifier, owner="other")
    await other.attendance.attend(decided.approval_id)
    stored = await storage.approvals.get(decided.approval_id)
    assert (stored.drawn_revision, stored.leased_by) == (stored.revision, "")


async def test_a_stop_goes_on_though_no_lease_can_be_given_back(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY])
    await office.hear("<@UBOT> pay Mia")
    await decide(office, await office.the_approval())
    office.queue.drop()

    async def away(*_: Any, **__: Any) -> bool:
        raise StoreUnavailableError("away")

    storage.threads.release = away  # type: ignore[method-assign]
    await give_back(office.sweep)
