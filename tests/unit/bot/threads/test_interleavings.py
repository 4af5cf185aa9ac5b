"""The card tells the truth to the end, whatever happens while it is sent, and in which process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from agents.core.errors import CheckpointConflictError
from agents.models import call, say
from bot.approvals.disclosure import Surface
from bot.errors import DeliveryError
from bot.leases import ATTENDANCE, LEASE
from bot.ports.notifier import Newest
from bot.records.approval import Approval, ApprovalMessage, Decision, Status
from storage.documents import Page, Where
from tests.support.fakes import FakeNotifier
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, THREAD_ID, KilledError, Office, an_incoming

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"

InterruptNode = Literal["waits", "read", "sent"]
"""A card waits for its turn; its record was read; it stands in Slack, and nobody knows yet."""
POINTS: tuple[InterruptNode, ...] = ("waits", "read", "sent")
Event = Callable[[], Awaitable[None]]


@dataclass
class EventfulNotifier(FakeNotifier):
    """Something happens once, at a point of the next drawing."""

    point: InterruptNode = "waits"
    event: Event | None = None
    standing: list[str] = field(default_factory=list)

    async def post_card(
        self, approval: Approval, message: ApprovalMessage, *, look_first: bool, newest: Newest
    ) -> ApprovalMessage:
        drawn = _given(await self._read(newest))
        posted = await super().post_card(approval, message, look_first=look_first, newest=drawn)
        self.standing.append(posted.ts)
        await self._reach("sent")
        return posted

    async def update_card(self, message: ApprovalMessage, *, newest: Newest) -> bool:
        drawn = _given(await self._read(newest))
        updated = await super().update_card(message, newest=drawn)
        await self._reach("sent")
        return updated

    async def remove(self, approval: Approval, message: ApprovalMessage) -> None:
        await super().remove(approval, message)
        if message.ts in self.standing:
            self.standing.remove(message.ts)

    async def _read(self, newest: Newest) -> Approval:
        await self._reach("waits")
        drawn = await newest()
        await self._reach("read")
        return drawn

    @property
    def is_quiet(self) -> bool:
        """Whether the event has come."""
        return self.event is None

    async def _reach(self, point: InterruptNode) -> None:
        event = self.event
        if event is not None and point == self.point:
            self.event = None
            await event()


def _given(approval: Approval) -> Newest:
    async def newest() -> Approval:
        return approval

    return newest


@dataclass
class TwoProcesses:
    """Two processes at one database and one Slack; the first one draws."""

    first: Office
    second: Office
    notifier: EventfulNotifier
    approval: Approval

    async def decide_here(self) -> None:
        """Somebody decides in the process that draws; what follows waits for the drawing."""
        await self._record(self.first)

    async def decide_there(self) -> None:
        await self._record(self.second)
        await self.second.queue.run()

    async def decide_where_nobody_follows(self) -> None:
        """The second process dies right after it put the decision on record."""
        await self._record(self.second)
        self.second.queue.drop()

    async def redraw_twice(self) -> None:
        for office in (self.first, self.second):
            office.queue.spawn(office.attendance.redraw(self.approval.approval_id))
        await self.second.queue.run()
        await self.decide_there()

    async def sleep(self) -> None:
        """The first process sleeps for longer than its lease; the second one goes on."""
        await self.decide_there()
        self.first.clock.forward(seconds=LEASE.total_seconds() + 1)
        await self.tick(self.second)

    async def nod(self) -> None:
        """The first process sleeps for nearly as long as its lease lasts."""
        self.first.clock.forward(seconds=ATTENDANCE.total_seconds() + 1)
        await self.decide_there()

    async def die(self) -> None:
        await self.decide_there()
        raise KilledError

    async def tick(self, office: Office) -> None:
        await office.later()

    async def _record(self, office: Office) -> None:
        approval = await office.storage.approvals.get(self.approval.approval_id)
        decision = Decision(
            status=Status.REJECTED, by=ADA, at_ms=office.clock(), digest=approval.digest
        )
        decided = await office.approvals.decide(approval, decision, surface=Surface.CARD)
        office.queue.spawn(office.approvals.follow_up(decided))

    async def shown(self) -> Approval:
        """The card as it stands once all is done that is due within a lease."""
        await self.first.queue.run()
        for _ in range(2):
            self.first.clock.forward(seconds=LEASE.total_seconds())
            await self.tick(self.first)
            await self.tick(self.second)
        stored = await self.first.storage.approvals.get(self.approval.approval_id)
        assert (stored.leased_by, stored.due_ms) == ("", None)
        assert stored.card.revision == stored.shown_revision
        return self.notifier.cards[self.approval.approval_id]


async def two(storage: SqliteStores, *, is_drawn: bool) -> TwoProcesses:
    notifier = EventfulNotifier()
    first = Office(storage, [PAY, say("Not paid.")], notifier=notifier, owner="first")
    second = Office(
        storage, [say("Not paid.")], clock=first.clock, notifier=notifier, owner="second"
    )
    thread_id = await first.inbox.receive(an_incoming(ASK))
    assert thread_id is not None
    await first.threads.work(thread_id)
    if is_drawn:
        await first.queue.run()
    return TwoProcesses(first, second, notifier, await first.the_approval())


EVENTS: dict[str, Callable[[TwoProcesses], Event]] = {
    "decided by the process that draws": lambda world: world.decide_here,
    "decided by another process": lambda world: world.decide_there,
    "decided by a process that dies": lambda world: world.decide_where_nobody_follows,
    "drawing wanted by both, then decided": lambda world: world.redraw_twice,
    "asleep for longer than the lease": lambda world: world.sleep,
    "asleep for nearly as long as the lease": lambda world: world.nod,
    "the process that draws dies": lambda world: world.die,
}


async def draw(world: TwoProcesses, *, is_drawn: bool) -> None:
    office = world.first
    if is_drawn:
        await office.attendance.redraw(world.approval.approval_id)
    else:
        await office.queue.run()


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("is_drawn", [False, True], ids=["posted", "updated"])
async def test_i8_a_card_ends_as_its_record_says_whatever_came_while_it_was_sent(
    storage: SqliteStores, event: str, point: InterruptNode, is_drawn: bool
) -> None:
    world = await two(storage, is_drawn=is_drawn)
    world.notifier.point, world.notifier.event = point, EVENTS[event](world)
    with suppress(KilledError):  # the process dies, or not
        await draw(world, is_drawn=is_drawn)
    assert world.notifier.is_quiet
    card = await world.shown()
    assert card.status is Status.REJECTED
    assert card.decision is not None
    assert card.decision.by == ADA


@pytest.mark.parametrize("fault", [None, DeliveryError("remove", "fatal_error")])
async def test_i8_a_card_that_was_posted_twice_over_a_sleep_is_removed_once(
    storage: SqliteStores, fault: DeliveryError | None
) -> None:
    world = await two(storage, is_drawn=False)
    world.notifier.failing = set() if fault is None else {"remove"}
    world.notifier.point, world.notifier.event = "read", world.sleep
    await world.first.queue.run()
    card = await world.shown()
    stored = await storage.approvals.get(world.approval.approval_id)
    assert card.status is Status.REJECTED
    assert stored.thread_card.ts in world.notifier.standing
    assert len(world.notifier.standing) == (1 if fault is None else 2)


async def test_i8_a_card_that_was_posted_twice_is_removed_where_a_reminder_was_due_as_well(
    storage: SqliteStores,
) -> None:
    world = await two(storage, is_drawn=True)
    notifier, name = world.notifier, world.approval.approval_id

    async def be_gone() -> None:  # somebody has deleted the card; the sleep comes with the new one
        notifier.deleted.add(name)
        del notifier.cards[name]
        notifier.standing.clear()
        notifier.event = world.sleep

    notifier.point, notifier.event = "read", be_gone
    world.first.clock.forward(minutes=16)
    await world.first.attendance.redraw(name)
    card = await world.shown()
    assert card.status is Status.REJECTED
    assert notifier.reminders == []
    assert notifier.standing == [(await storage.approvals.get(name)).thread_card.ts]


async def test_i4_an_expiry_is_told_by_an_attendance_that_began_with_something_else(
    storage: SqliteStores,
) -> None:
    world = await two(storage, is_drawn=True)
    office = world.first
    office.clock.forward(hours=9)
    await office.attendance.attend(world.approval.approval_id, announced=world.approval)
    await office.queue.run()
    assert (await office.acts(world.approval.thread_id)).count("expired") == 1
    assert office.shown() == ["Not paid."]


async def test_i8_a_born_lease_says_how_old_what_it_draws_is(storage: SqliteStores) -> None:
    world = await two(storage, is_drawn=False)
    await world.decide_there()
    world.first.clock.forward(seconds=2)
    drawn: list[Status] = []

    async def note() -> None:
        drawn.append(world.notifier.cards[world.approval.approval_id].status)

    world.notifier.point, world.notifier.event = "sent", note
    await world.first.queue.run()
    assert drawn == [Status.REJECTED]


@pytest.mark.parametrize("gives_up", [False, True])
async def test_i6_who_was_asleep_does_not_call_off_what_the_same_turn_has_asked_meanwhile(
    storage: SqliteStores, gives_up: bool
) -> None:
    pay_ben = call("pay", {"to": "Ben", "amount": 7}, id="c2")
    first = Office(storage, [PAY], owner="first")
    second = Office(storage, [pay_ben], clock=first.clock, notifier=first.notifier, owner="second")
    await first.hear(ASK)
    look = storage.approvals.find

    async def asleep(where: Where, **options: Any) -> Page[Approval]:
        if "open" not in where:
            return await look(where, **options)
        storage.approvals.find = look  # type: ignore[method-assign]
        first.clock.forward(seconds=LEASE.total_seconds() + 1)
        await second.decide(await second.the_approval())
        return await look(where, **options)

    await first.inbox.receive(an_incoming("Be quick", ts="1800000000.000002"))
    storage.approvals.find = asleep  # type: ignore[method-assign]
    if gives_up:
        now = first.clock()
        held = await storage.threads.claim(
            THREAD_ID, owner=first.owner, now_ms=now, until_ms=now + 15_000
        )
        assert held is not None
        with pytest.raises(CheckpointConflictError):
            await first.turns.ending.abandon(held, "It is over.")
    else:
        await first.threads.work(THREAD_ID)
    await first.queue.run()
    waiting = await first.the_approval()
    assert waiting.arguments["to"] == "Ben"
