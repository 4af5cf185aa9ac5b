"""A town with rules of its own: what its people do, and what becomes of them; see `ledger`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from bot.errors import ApprovalClosedError, UserFacingError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import open_of
from tests.property.worlds.bench import CLEO, EVE, GROUP, befall, mark
from tests.property.worlds.hall import PEOPLE, Hall, amount_by
from tests.property.worlds.ledger import House, Ledger, Shown
from tests.property.worlds.rulebook import DAN, FAY, Book, Payment
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotifier
from tests.support.stores import SqliteStores
from tests.unit.bot.office import CHANNEL, ROOT, THREAD_ID, KilledError, an_actor

__all__ = ["CLICKS", "FATES", "PEOPLE", "Town", "amount_by"]

FATES = (
    "joins",
    "leaves",
    "guest",
    "gone",
    "back",
    "treasurer",
    "no treasurer",
    "down",
    "up",
    "up",
)
CLICKS = (*["approve"] * 5, "reject", "withdraw", "again", "ran", "give up")
_BUTTONS = {
    "approve": ActionId.APPROVE,
    "again": ActionId.AGAIN,
    "give up": ActionId.GIVE_UP,
}
_FORMS = {
    "reject": (ActionId.REJECT_MODAL, "reason"),
    "withdraw": (ActionId.WITHDRAW_MODAL, "reason"),
    "ran": (ActionId.RAN_MODAL, "result"),
}
_YES = {"approve", "again"}


class Town:
    """People, their bot, and its rules."""

    def __init__(self, book: Book, house: House) -> None:
        self.loop = asyncio.Runner()
        self.storage = SqliteStores(None)
        self.loop.run(self.storage.open())
        self.clock, self.notifier, self.directory = FakeClock(), FakeNotifier(), FakeDirectory()
        self.ledger = Ledger(book, house, self.directory, self.clock)
        self.cards: list[Shown] = []
        self.count = self.jobs = self.free_ms = 0
        self.open()
        for who in (CLEO, DAN, FAY):
            self.directory.add(who)
        self.directory.add(EVE, is_external=True, team_id="T9")
        self.directory.groups[GROUP] = frozenset({CLEO})
        self.directory.channels[CHANNEL] |= {DAN, FAY}

    def open(self) -> None:
        """Start a process; people and what is stored stay as they are."""
        self.hall = Hall(self.storage, self.notifier, self.ledger)

    def close(self) -> None:
        """Forget all of it."""
        self.hall.office.queue.drop()
        self.loop.run(self.storage.close())
        self.loop.close()

    # ---- the process ----------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something; where the process dies of it, another one is started."""
        before = self.clock()
        try:
            self.loop.run(work)
            self.loop.run(self.hall.office.queue.run())
        except KilledError:
            self.dies()
        self.loop.run(self._look(before))

    def dies(self) -> None:
        """The process is killed, and another one is started."""
        self.hall.life.left = 0
        self.hall.office.queue.drop()
        self.loop.run(_end_all())
        self.hall.forget_between()
        self.free_ms = self.clock() + 30_000  # what it had leased is free again
        self.open()

    def will_die(self, writes: int) -> None:
        """The process dies when a tool begins, or after some writes."""
        if writes:
            self.hall.life.left = writes
        else:
            self.hall.life.ends_in_tool = True

    async def _look(self, before: int) -> None:
        """See which cards there are."""
        for approval in await self._waiting():
            card = shown(approval)
            self.ledger.sees(card, before)
            if card not in self.cards:
                self.cards.append(card)
            if not self.directory.is_down:
                await self._try_all(approval, card)

    async def _try_all(self, approval: Approval, card: Shown) -> None:
        """See who could do something with a card now; it changes nothing."""
        for who in PEOPLE:
            approvals = self.hall.office.approvals
            try:
                if approval.kind is Kind.QUESTION:
                    await approvals.access.check_answerer(approval, an_actor(who))
                else:
                    await approvals.votes.check(approval, an_actor(who))
            except UserFacingError:
                if self.ledger.surely_may(who, card):
                    self.ledger.faults.append(f"{who} cannot do anything with {card}")
            else:
                if not self.ledger.may_edit(who, card):
                    self.ledger.faults.append(f"{who} can do something with {card}")

    async def _waiting(self) -> list[Approval]:
        approvals = await open_of(self.storage.approvals, THREAD_ID)
        waiting = [approval for approval in approvals if approval.status is Status.PENDING]
        return sorted(waiting, key=lambda card: (card.created_ms, card.address))

    def waiting(self) -> list[Shown]:
        """The cards that wait."""
        return [shown(approval) for approval in self.loop.run(self._waiting())]

    @property
    def is_well(self) -> bool:
        """Whether nothing keeps the bot from its work."""
        is_alive = self.hall.life.left is None and not self.hall.life.ends_in_tool
        return is_alive and self.clock() >= self.free_ms and not self.directory.is_down

    # ---- what people do -------------------------------------------------------------------------

    def write(self, who: str, text: str) -> None:
        """Somebody writes into the thread, with a mention."""
        self.count += 1
        self.ledger.spoke.add(who)
        words = f"<@UBOT> {text}, {mark(who)}"
        ts = ROOT if self.count == 1 else f"1800000001.{self.count:06d}"
        self.run(self.hall.office.hear(words, user_id=who, ts=ts, thread_ts=ROOT))

    def ask_for(self, who: str, *payments: Payment) -> None:
        """Somebody asks for payments, all at once."""
        jobs = []
        for payment in payments:
            self.jobs += 1
            jobs.append(f"job {self.jobs} pay {payment.amount} to {payment.to}.")
        self.write(who, " ".join(jobs))

    def befalls(self, who: str, what: str) -> None:
        """Something becomes of a person, or of what is known of people."""
        if what in {"down", "up"}:
            self.directory.is_down = what == "down"
        else:
            befall(self.directory, who, what)

    def passes(self, minutes: float) -> None:
        """Time passes, and the bot does what is due."""
        self.clock.forward(minutes=minutes)
        self.run(self._tick())

    async def _tick(self) -> None:
        await self.hall.office.sweep.tick()

    def clicks(self, who: str, card: Shown, choice: str, *, dies: bool = False) -> None:
        """Somebody presses a button of a card, or sends its form.

        Args:
            who: Somebody.
            card: As they see it; it may be an old one.
            choice: What they do.
            dies: Whether the process dies as soon as that is on record.
        """
        is_sure = self._is_sure(who, card, choice)
        runs = len(self.ledger.ran[card.job])
        self._do(self._click(who, card, choice, is_sure=is_sure), dies=dies)
        is_done = card.job in self.ledger.stopped or len(self.ledger.ran[card.job]) > runs
        if is_sure and not dies and not is_done and self._must_run(card):
            self.ledger.faults.append(f"{card} is agreed to, and does not begin")

    def _do(self, work: Coroutine[Any, Any, None], *, dies: bool) -> None:
        if not dies:
            self.run(work)
            return
        with contextlib.suppress(KilledError):
            self.loop.run(work)
        self.dies()
        self.loop.run(self._look(self.clock()))

    def _is_sure(self, who: str, card: Shown, choice: str) -> bool:
        """Whether it is certain that this has to be taken."""
        if choice != ("again" if card.is_doubt else "approve") or not self.is_well:
            return False
        return card in self.waiting() and self.ledger.surely_may(who, card)

    def _must_run(self, card: Shown) -> bool:
        if card.is_doubt:
            return True
        is_plain = len(self.ledger.versions[card.job]) == 1 or len(self.ledger.book) == 1
        return is_plain and self.ledger.is_agreed(card.job, card.payment)

    async def _click(self, who: str, card: Shown, choice: str, *, is_sure: bool = False) -> None:
        ledger, at_ms = self.ledger, self.clock()
        gates, may_stop = ledger.gates_for(who, card), ledger.may_stop(who, card)
        try:
            await self._send(who, card, choice)
        except UserFacingError as error:
            if is_sure and not isinstance(error, ApprovalClosedError):
                ledger.faults.append(f"{who} is refused at {card}: {error!r}")
            return
        if choice in _YES:
            ledger.agrees(who, card, at_ms, gates)
        else:
            ledger.spoke.add(who)
            ledger.stopped.add(card.job)
        if not (gates if choice in _YES else may_stop):
            ledger.faults.append(f"{who} said {choice} to {card}, and may not")

    async def _send(self, who: str, card: Shown, choice: str) -> None:
        if choice in _BUTTONS:
            await self.hall.press(who, card, _BUTTONS[choice])
        else:
            await self.hall.send(who, card, *_FORMS[choice], f"well, {mark(who)}")

    def edits(
        self,
        who: str,
        card: Shown,
        payment: Payment,
        *,
        dies: bool = False,
        faster: tuple[str, str] | None = None,
    ) -> None:
        """Somebody opens the form of a card, changes what is in it, and sends it.

        Args:
            who: Somebody.
            card: As they see it; it may be an old one.
            payment: What they make of it.
            dies: Whether the process dies as soon as that is on record.
            faster: Who does what with the same card while the form is being judged.
        """
        self._do(self._edit(who, card, payment, faster), dies=dies)

    async def _edit(
        self, who: str, card: Shown, payment: Payment, faster: tuple[str, str] | None
    ) -> None:
        may_edit = self.ledger.may_edit(who, card)
        if faster is not None:
            self.hall.between.append(self._click(faster[0], card, faster[1]))
        try:
            is_taken = await self.hall.edit(who, card, payment)
        except UserFacingError:
            return
        finally:
            self.hall.forget_between()
        if is_taken and not may_edit:
            self.ledger.faults.append(f"{who} edited {card}, and may not")
        if is_taken:
            self.ledger.is_edited(card, payment, who)
            await self._edited(who, replace(card, payment=payment))

    async def _edited(self, who: str, wanted: Shown) -> None:
        """It was taken: as an approval, too, when nobody is asked any more."""
        ledger, now = self.ledger, self.clock()
        after = await self.storage.approvals.get(wanted.approval_id)
        if after.status is Status.PENDING:
            return
        ledger.versions[wanted.job].append(wanted.payment)
        if ledger.asking(wanted):
            ledger.agrees(who, wanted, now, ledger.gates_for(who, wanted))


def shown(approval: Approval) -> Shown:
    """The card of an approval, as this record has it."""
    arguments: Any = approval.arguments
    return Shown(
        approval_id=approval.approval_id,
        digest=approval.digest,
        is_doubt=approval.kind is Kind.DOUBT,
        job=arguments["ref"],
        payment=Payment(arguments["amount"], arguments["to"]),
    )


async def _end_all() -> None:
    """End what a dead process has left."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
