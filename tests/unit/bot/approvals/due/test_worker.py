"""How cards are drawn: under the lease they are born with, one at a time, and as the record is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agents.models import call, say
from bot.approvals import changes
from bot.approvals.execution import with_outcome
from bot.leases import ATTENDANCE, LEASE
from bot.maintenance.retention import Forgetting
from bot.ports.notifier import Newest
from bot.records.approval import Approval, ApprovalMessage, Decision, ExecutionState, Status
from tests.support.decided import decide, write
from tests.support.fakes import FakeNotifier
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, THREAD_ID, Office, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = "<@UBOT> pay Mia"


@dataclass
class SlowNotifier(FakeNotifier):
    """Slack takes its time: something happens before a card is sent."""

    before: Callable[[], Awaitable[None]] | None = None
    revisions: list[int] = field(default_factory=list)

    async def post_card(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        await self._wait()
        posted = await super().post_card(approval, message, look_first=look_first, newest=newest)
        self.revisions.append(self.cards[approval.approval_id].shown_revision)
        return posted

    async def update_card(self, message: ApprovalMessage, *, newest: Newest) -> bool:
        await self._wait()
        is_there = await super().update_card(message, newest=newest)
        self.revisions.append(self.cards[(await newest()).approval_id].shown_revision)
        return is_there

    async def _wait(self) -> None:
        before, self.before = self.before, None
        if before is not None:
            await before()


async def an_undrawn(storage: SqliteStores) -> tuple[Office, SlowNotifier]:
    """An office whose approval is on record, and whose card waits to be drawn."""
    notifier = SlowNotifier()
    office = Office(storage, [PAY, say("Paid.")], notifier=notifier)
    thread_id = await office.inbox.receive(an_incoming(ASK))
    assert thread_id is not None
    await office.threads.work(thread_id)
    assert notifier.posts == []
    return office, notifier


async def redrawn(office: Office, approval: Approval) -> None:
    await write(office.storage.approvals, approval.key, changes.redrawn, now_ms=office.clock())


async def is_at_rest(office: Office, approval: Approval) -> bool:
    stored = await office.storage.approvals.get(approval.approval_id)
    shown = office.notifier.cards[approval.approval_id]
    return (
        stored.card.revision == stored.shown_revision == shown.shown_revision
        and stored.leased_by == ""
    )


async def test_i4_a_card_whose_turn_comes_late_gets_a_lease_of_its_own(
    storage: SqliteStores,
) -> None:
    office, notifier = await an_undrawn(storage)
    approval = await office.the_approval()
    assert approval.leased_by == office.owner
    office.clock.forward(seconds=(LEASE - ATTENDANCE).total_seconds() + 1)
    await office.queue.run()
    assert notifier.posts == [approval.approval_id]
    assert (await storage.approvals.get(approval.approval_id)).fence == approval.fence + 1
    assert await is_at_rest(office, approval)


async def test_i4_a_card_that_its_process_did_not_draw_is_drawn_by_another_once(
    storage: SqliteStores,
) -> None:
    office, notifier = await an_undrawn(storage)
    approval = await office.the_approval()
    other = Office(storage, [], clock=office.clock, notifier=notifier, owner="other")
    await other.later()
    assert notifier.posts == []  # it is leased
    office.clock.forward(seconds=LEASE.total_seconds())
    await other.later()
    await office.queue.run()  # the first one wakes up
    assert notifier.posts == [approval.approval_id]
    assert (await office.acts(approval.thread_id)).count("requested") == 1


async def marked(office: Office, approval: Approval) -> Approval:
    """A run has noted its end on the record."""
    stored = await write(
        office.storage.approvals,
        approval.key,
        with_outcome,
        state=ExecutionState.ENDED,
        fence=9,
        now_ms=office.clock(),
    )
    assert stored is not None
    return stored


async def an_approved(storage: SqliteStores) -> tuple[Office, SlowNotifier, Approval]:
    """An office whose approval is decided; what follows from that waits."""
    office, notifier = await an_undrawn(storage)
    await office.queue.run()
    approval = await office.the_approval()
    decision = Decision(
        status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=approval.digest
    )
    decided = await decide(
        storage.approvals, approval.approval_id, decision, digest=approval.digest
    )
    return office, notifier, decided


async def test_i4_a_lease_that_a_write_took_along_and_nobody_used_is_due_for_others(
    storage: SqliteStores,
) -> None:
    office, notifier, approval = await an_approved(storage)
    stored = await marked(office, approval)
    other = Office(storage, [], clock=office.clock, notifier=notifier, owner="other")
    office.clock.forward(seconds=LEASE.total_seconds())
    await other.later()
    assert notifier.revisions == [1, stored.shown_revision]
    await office.attendance.attend(approval.approval_id)  # the first one wakes up
    assert notifier.revisions == [1, stored.shown_revision]


async def test_one_attendance_of_an_approval_goes_on_at_a_time_and_sees_what_others_came_for(
    storage: SqliteStores,
) -> None:
    office, notifier = await an_undrawn(storage)
    await office.queue.run()
    approval = await office.the_approval()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await go_on.wait()

    notifier.before = hold
    await redrawn(office, approval)
    first = asyncio.create_task(office.attendance.attend(approval.approval_id))
    await begun.wait()
    await redrawn(office, approval)
    others = [asyncio.create_task(office.attendance.attend(approval.approval_id)) for _ in range(3)]
    await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(60):
        await asyncio.gather(first, *others)
    assert notifier.revisions == [1, 2, 3]
    assert await is_at_rest(office, approval)


async def test_an_attendance_that_lost_its_lease_unawares_goes_on_with_the_new_one(
    storage: SqliteStores,
) -> None:
    office, notifier = await an_undrawn(storage)
    await office.queue.run()
    approval, approvals = await office.the_approval(), storage.approvals
    name = approval.approval_id
    await office.decide(approval)
    others: list[asyncio.Task[None]] = []

    async def sleep_over_the_lease() -> None:
        """Another process has the card meanwhile; then its call fails, as this process hears."""
        office.clock.forward(minutes=1)
        now = office.clock()
        taken = await approvals.claim(name, owner="other", now_ms=now, until_ms=now + 15_000)
        assert taken is not None
        await approvals.release(name, fence=taken.fence, due_ms=None)
        await write(approvals, name, with_outcome, state=ExecutionState.ENDED, fence=9, now_ms=now)
        others.append(asyncio.create_task(office.attendance.attend(name)))
        await asyncio.sleep(0)

    notifier.before = sleep_over_the_lease
    await redrawn(office, approval)
    async with asyncio.timeout(60):
        await office.attendance.attend(name)
        await asyncio.gather(*others)
    stored = await approvals.get(name)
    assert (stored.leased_by, stored.card.revision) == ("", stored.shown_revision)


async def test_whoever_waits_for_an_attendance_that_fails_goes_on(storage: SqliteStores) -> None:
    office, notifier = await an_undrawn(storage)
    await office.queue.run()
    approval = await office.the_approval()
    begun = asyncio.Event()

    async def hold() -> None:
        begun.set()
        await asyncio.Event().wait()

    notifier.before = hold
    await redrawn(office, approval)
    first = asyncio.create_task(office.attendance.attend(approval.approval_id))
    await begun.wait()
    other = asyncio.create_task(office.attendance.attend(approval.approval_id))
    await asyncio.sleep(0)
    first.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([first, other])
    assert not other.cancelled()
    office.clock.forward(seconds=LEASE.total_seconds())
    await office.attendance.attend(approval.approval_id)
    assert await is_at_rest(office, approval)


async def test_i6_of_two_processes_each_goes_on_from_what_the_other_has_stored(
    storage: SqliteStores,
) -> None:
    first = Office(storage, [[PAY, PAY_BEN], say("Both done.")], owner="first")
    await first.hear(ASK)
    mia, ben = await first.open_approvals()
    second = Office(storage, [], clock=first.clock, notifier=first.notifier, owner="second")
    await second.decide(mia)
    assert second.ran == [("pay", ("Mia", 5, "card"))]
    await first.decide(ben, by=BEN)  # what it stored last is no longer so
    assert first.ran == [("pay", ("Ben", 7, "card"))]
    assert first.shown()[-1] == "Both done."


async def test_i6_who_only_looked_at_a_run_goes_on_from_what_it_saw_then(
    storage: SqliteStores,
) -> None:
    first = Office(storage, [PAY, say("Both done.")], owner="first")
    second = Office(storage, [PAY_BEN], clock=first.clock, notifier=first.notifier, owner="second")
    await first.hear(ASK)
    await second.decide(await first.the_approval())
    ben = await first.the_approval()
    for ts in ("1800000000.000002", "1800000000.000003"):  # not what it stored last
        await first.hear("And be quick", ts=ts)
    assert (await storage.approvals.get(ben.approval_id)).status is Status.PENDING
    await first.decide(ben, by=BEN)
    assert first.ran == [("pay", ("Ben", 7, "card"))]


async def test_i6_a_thread_that_was_forgotten_and_began_anew_is_not_the_one_that_was_left(
    storage: SqliteStores,
) -> None:
    first = Office(storage, [PAY, say("Both done.")], owner="first")
    second = Office(
        storage, [say("Done."), PAY_BEN], clock=first.clock, notifier=first.notifier, owner="second"
    )
    await first.hear(ASK)
    await second.decide(await first.the_approval())
    forgetting = Forgetting(storage=storage, clock=first.clock, owner="keeper")
    assert (await forgetting.forget(THREAD_ID, how="forget")).refusal == ""
    first.clock.forward(seconds=1)
    await second.hear(ASK)  # the same place in Slack, the same numbers of leases and turns
    await first.decide(await first.the_approval(), by=BEN)
    assert (first.ran, second.ran) == ([("pay", ("Ben", 7, "card"))], [("pay", ("Mia", 5, "card"))])
    assert await first.open_approvals() == []


async def test_i12_a_decision_that_nobody_noted_is_noted_with_its_resume(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    await office.approve_alone(approval)  # and its process dies
    other = Office(storage, [say("Paid.")], clock=office.clock, owner="other")
    silent = replace(other.attendance, wake=lambda _: None)
    other.approvals = replace(other.approvals, attendance=silent)
    await storage.threads.wake(approval.thread_id, now_ms=office.clock())
    await other.threads.work(approval.thread_id)
    other.queue.drop()
    acts = await other.acts(approval.thread_id)
    assert {"requested", "decided", "resumed", "started", "executed"} <= set(acts)
    assert acts.count("decided") == 1
