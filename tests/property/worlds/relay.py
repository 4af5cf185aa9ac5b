"""A call that one person changes and another one lets run, by a bot that dies on the way.

Rosa asks for a small payment. Ada, who decides about small ones, makes a large one of it. Ben
decides about those, and it runs. Each of them acts on the card as it stands in Slack, and does so
again when nothing came of it, whatever has become of the bot meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.errors import UserFacingError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Decision, Status
from bot.stores import Stores
from storage.audit import AuditEntry
from tests.property.worlds.bench import mark
from tests.property.worlds.hall import Hall, Life
from tests.property.worlds.ledger import House, Ledger, Shown
from tests.property.worlds.rulebook import Line, Payment, Rules, Say
from tests.property.worlds.town import amount_by, shown
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotifier
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, KilledError

FIRST, FINAL = Payment(10, "ann"), Payment(amount_by(ADA, 600), "ann")
BOOK = (
    Rules(
        lines=(Line(Say("ask", "large", approvers=(BEN,)), at_least=500),),
        default=Say("ask", "small", approvers=(ADA,)),
    ),
)
ROUNDS = 8
"""How often people look at Slack; in a bot that stays alive, twice are enough."""


@dataclass
class Planned(Life):
    """A life that ends at a write: before it is made, or right after it has taken effect.

    Attributes:
        is_after: Whether it ends after the last write that it can make, not before the next one.
        is_over: Whether it has ended.
        done: Every write that took effect, by store and method, with what was given to it; and
            each time that the tool has begun.
    """

    is_after: bool = False
    is_over: bool = False
    done: list[tuple[str, str, tuple[Any, ...]]] = field(default_factory=list)

    def writes(self, number: int) -> None:
        """See `Life.writes`."""
        try:
            super().writes(number)
        except KilledError:
            self.is_over = True
            raise

    def wrote(self, store: str, method: str, *values: Any) -> None:
        """See `Life.wrote`."""
        self.done.append((store, method, values))
        if self.is_after and self.left == 0:
            self.left, self.is_over = -1, True
            raise KilledError

    def enters_tool(self) -> None:
        """See `Life.enters_tool`."""
        self.done.append(("tool", "pay", ()))


def dies(write: int, *, is_after: bool) -> Planned:
    """Make a life.

    Args:
        write: At which write it ends, from 1.
        is_after: Whether after it, not before it.
    """
    return Planned(left=write if is_after else write - 1, is_after=is_after)


@dataclass
class Play:
    """What happened with one payment.

    Attributes:
        job: Its name.
        thread_id: Where it was asked for.
        deaths: How often a bot died.
        done: See `Planned.done`; of all bots, one after the other.
        doubts: Cards that asked whether it has run.
        faults: What is wrong.
    """

    job: str
    thread_id: str
    deaths: int = 0
    done: list[tuple[str, str, tuple[Any, ...]]] = field(default_factory=list)
    doubts: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def entries(self) -> Iterator[tuple[int, AuditEntry]]:
        """What was put into the audit, and at which place in the list of what was done."""
        for at, (store, _, values) in enumerate(self.done):
            if store == "audit":
                yield from ((at, entry) for entry in values)

    def decisions(self) -> Iterator[tuple[int, Decision]]:
        """What was decided, and at which place."""
        seen: set[str] = set()
        for at, (store, method, values) in enumerate(self.done):
            if (store, method) == ("approvals", "replace") and values[0].decision is not None:
                approval = values[0]
                if approval.approval_id not in seen:
                    yield at, approval.decision
                seen.add(approval.approval_id)

    def begins(self) -> list[int]:
        """At which places the tool has begun."""
        return [at for at, (store, *_) in enumerate(self.done) if store == "tool"]


class Relay:
    """The people, what outlives a bot, and one bot at a time.

    Attributes:
        ledger: Who had to agree to what ran.
        notifier: What stands in Slack.
    """

    def __init__(self, storage: Stores) -> None:
        self.storage, self.clock = storage, FakeClock()
        self.notifier, self.directory = FakeNotifier(is_brief=True), FakeDirectory()
        self.ledger = Ledger(BOOK, House(), self.directory, self.clock)
        self._count = 0
        self._old: dict[str, Shown] = {}
        self._tried: set[Shown] = set()

    async def play(self, *lives: Planned) -> Play:
        """Play it from the message to the end.

        Args:
            lives: Those of the first bots; the last one is immortal.
        """
        self._count += 1
        self._lives = list(lives)
        root = f"1800000001.{self._count:06d}"
        self._now = Play(f"job-{self._count}", f"T1:{CHANNEL}:{root}")
        self._open()
        pay = f"<@UBOT> job {self._count} pay {FIRST.amount} to {FIRST.to}., {mark(ROSA)}"
        while await self._dies_of(
            self._hall.office.hear(pay, user_id=ROSA, ts=root, thread_ts=root)
        ):
            pass  # Slack sends it again
        for _ in range(ROUNDS):
            await self._round()
        self._hall.office.queue.drop()
        return self._now

    def cards(self) -> list[Approval]:
        """The cards in the thread, as they stand in Slack."""
        drawn = self.notifier.cards.values()
        return [card for card in drawn if card.thread_id == self._now.thread_id]

    # ---- the bot --------------------------------------------------------------------------------

    def _open(self) -> None:
        self._life = self._lives.pop(0) if self._lives else Planned()
        self._life.done = self._now.done
        self._hall = Hall(self.storage, self.notifier, self.ledger, self._life)

    async def _dies_of(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something; if the bot dies of it, start another one when its leases have ended."""
        try:
            await work
            await self._hall.office.queue.run()
        except KilledError:
            assert self._life.is_over
        if not self._life.is_over:
            return False
        self._now.deaths += 1
        self._hall.office.queue.drop()
        await _end_all()
        self.clock.forward(seconds=30)
        self._open()
        return True

    async def _tick(self) -> None:
        await self._hall.office.sweep.tick()

    # ---- the people -----------------------------------------------------------------------------

    async def _round(self) -> None:
        self.clock.forward(seconds=5)
        await self._dies_of(self._tick())
        for drawn in self.cards():
            if drawn.status is Status.PENDING:
                card = shown(drawn)
                self.ledger.sees(card, self.clock())
                if card.is_doubt:
                    self._now.doubts.add(card.approval_id)
                if self._life.left is None and card not in self._tried:
                    self._tried.add(card)
                    await self._dies_of(self._others_try(card))
                await self._dies_of(self._acts(card))

    async def _others_try(self, card: Shown) -> None:
        """Nobody else can let it run, and nobody by a card that shows what it was before."""
        yes = ActionId.AGAIN if card.is_doubt else ActionId.APPROVE
        decider = ADA if card.payment == FIRST else BEN
        tries = [(who, card) for who in (ROSA, ADA, BEN) if who != decider]
        if not card.is_doubt:
            old = self._old.setdefault(card.approval_id, card)
            tries += [(who, old) for who in (ADA, BEN) if old != card]
        for who, seen in tries:
            try:
                await self._hall.press(who, seen, yes)
            except UserFacingError:
                continue
            self._now.faults.append(f"{who} could press {yes} on {seen}")

    async def _acts(self, card: Shown) -> None:
        """Who decides does what there is to do; nobody hears of it when the bot dies meanwhile."""
        try:
            if card.is_doubt:
                await self._tells(card)
            elif card.payment == FIRST:
                self._old[card.approval_id] = card
                self.ledger.is_edited(card, FINAL, ADA)
                if not await self._hall.edit(ADA, card, FINAL):
                    self._now.faults.append("the edit is not taken")
            else:
                self._agrees(card)
                await self._hall.press(BEN, card, ActionId.APPROVE)
        except UserFacingError:
            pass  # the card is not that new any more; it is looked at again

    async def _tells(self, card: Shown) -> None:
        """Ben has looked whether it has run."""
        if self.ledger.ran[card.job]:
            self.ledger.stopped.add(card.job)
            await self._hall.send(BEN, card, ActionId.RAN_MODAL, "result", "it is there")
        else:
            self._agrees(card)
            await self._hall.press(BEN, card, ActionId.AGAIN)

    def _agrees(self, card: Shown) -> None:
        """What counts is what he wants: the bot may die before or after it has it on record."""
        self.ledger.agrees(BEN, card, self.clock(), self.ledger.gates_for(BEN, card))


async def _end_all() -> None:
    """End what a dead bot has left; tasks of a database's driver are not the bot's."""
    left = [task for task in asyncio.all_tasks() - {asyncio.current_task()} if _is_ours(task)]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _is_ours(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "pymongo" not in code.co_filename
