"""Who had to agree to what runs: worked out from what people said, clicked and filled in.

Nothing here reads who may decide, nor under which rule, from a record of the product: only the
rules as data, the people as they are, the time, and the list of what was done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from tests.property.worlds.rulebook import Book, Payment, Say, says
from tests.support.fakes import FakeClock, FakeDirectory
from tests.unit.bot.office import CHANNEL

MINUTE = 60_000
MAX_AGE = 15 * MINUTE
FRESH = MINUTE


@dataclass(frozen=True)
class House:
    """The settings; times in minutes."""

    approvers: tuple[str, ...] = ("channel",)
    escalate: int | None = 30
    escalate_to: tuple[str, ...] = ("UCLEO",)
    excludes_editors: bool = False


@dataclass(frozen=True)
class Shown:
    """A card, as somebody saw it."""

    approval_id: str
    digest: str
    is_doubt: bool
    job: str
    payment: Payment


@dataclass
class Yes:
    """An agreement that was taken.

    Attributes:
        card: As it was shown; after an edit, with what was filled in.
        gates: For which gates the person was one of those who may agree, at that moment.
        is_used: Whether a call that was in doubt has run once more by it.
    """

    by: str
    card: Shown
    at_ms: int
    gates: frozenset[int]
    is_used: bool = False


@dataclass
class Ledger:
    """What was seen, and what is wrong with it.

    Attributes:
        heard: Whose words the model had read when it made a call, by job.
        spoke: Who has ever put words, or values, into the thread.
        editors: Who made the arguments, or those that somebody went on from; by job and payment.
        versions: What people were shown of a job.
        since: When a card was first seen as it is, at the earliest.
        once: Who was a member when a card of a job was seen, at least once.
        always: Who was, each time.
        ran: What has begun to run, by job.
        stopped: Jobs that somebody rejected, withdrew or gave up.
    """

    book: Book
    house: House
    directory: FakeDirectory
    clock: FakeClock
    heard: dict[str, set[str]] = field(default_factory=dict)
    spoke: set[str] = field(default_factory=set)
    editors: dict[tuple[str, Payment], frozenset[str]] = field(default_factory=dict)
    versions: dict[str, list[Payment]] = field(default_factory=lambda: defaultdict(list))
    since: dict[tuple[str, str], int] = field(default_factory=dict)
    once: dict[str, frozenset[str]] = field(default_factory=dict)
    always: dict[str, frozenset[str]] = field(default_factory=dict)
    agreed: list[Yes] = field(default_factory=list)
    ran: dict[str, list[Payment]] = field(default_factory=lambda: defaultdict(list))
    stopped: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def sees(self, card: Shown, now_ms: int) -> None:
        """Note a card that waits: who is in the channel counts from the first time."""
        if (card.approval_id, card.digest) in self.since:
            return
        self.since[card.approval_id, card.digest] = now_ms
        now = self.directory.channels[CHANNEL]
        self.once[card.job] = self.once.get(card.job, frozenset()) | now
        self.always[card.job] = self.always.get(card.job, now) & now
        self.versions[card.job].append(card.payment)

    # ---- who may --------------------------------------------------------------------------------

    def asking(self, card: Shown) -> list[tuple[int, Say]]:
        """The gates that demand somebody, and of a doubt, whose people decide about it."""
        asks = [
            (at, say) for at, say in enumerate(says(self.book, card.payment)) if say.effect == "ask"
        ]
        if not card.is_doubt:
            return asks
        named = [(at, say) for at, say in asks if say.approvers]
        # An allowed call has nobody's ruling: those of the settings, or of what was edited.
        before = [
            (-1, say)
            for payment in self.versions[card.job]
            for say in says(self.book, payment)
            if say.effect == "ask"
        ]
        return named or asks or [(-1, Say("ask")), *before]

    def is_home(self, who: str) -> bool:
        """Whether this is an active, full member of the workspace."""
        person = self.directory.people[who]
        return not (person.is_guest or person.is_deleted or person.is_external)

    def may(self, who: str, card: Shown, say: Say) -> bool:
        """Whether a person may agree to a card, as far as a gate that says this is concerned."""
        is_editor = who in self.editors.get((card.job, card.payment), ())
        excludes = say.excludes_editors or self.house.excludes_editors
        return self.is_among(who, card, say) and not (is_editor and excludes and not card.is_doubt)

    def is_among(self, who: str, card: Shown, say: Say) -> bool:
        """Whether a person is one of those whom this demands, and has not asked for it."""
        if not self.is_home(who) or who in self.heard[card.job]:
            return False
        names = [*(say.approvers or self.house.approvers)]
        if self._is_late(card, say):
            own = say.backups or say.approvers
            names += say.backups if own else self.house.escalate_to
        members = self.once[card.job] & self.directory.channels[CHANNEL]
        return any(self._is(who, name, members) for name in names)

    def _is_late(self, card: Shown, say: Say) -> bool:
        times = [self.house.escalate, None if card.is_doubt else say.escalate]
        waits = [wait for wait in times if wait is not None]
        if not waits:
            return False
        return self.clock() >= self.since[card.approval_id, card.digest] + min(waits) * MINUTE

    def _is(self, who: str, name: str, members: Iterable[str]) -> bool:
        if name == "channel":
            return who in members
        return who == name or who in self.directory.groups.get(name, ())

    def gates_for(self, who: str, card: Shown) -> frozenset[int]:
        """For which of the gates a person may agree to a card now."""
        return frozenset(at for at, say in self.asking(card) if self.may(who, card, say))

    def may_edit(self, who: str, card: Shown) -> bool:
        """Whether a person may change what a card asks: who has edited it may do so again."""
        return any(self.is_among(who, card, say) for _, say in self.asking(card))

    def may_stop(self, who: str, card: Shown) -> bool:
        """Whether a person may say no: who spoke may have asked for it, and can take it back."""
        return self.may_edit(who, card) or (not card.is_doubt and who in self.spoke)

    def surely_may(self, who: str, card: Shown) -> bool:
        """Whether a person may agree to it without any doubt: they did nothing else so far."""
        asking = self.asking(card)
        if who in self.spoke or not self.is_home(who) or not asking or card.job in self.stopped:
            return False
        if any(yes.by == who and yes.card.job == card.job for yes in self.agreed):
            return False
        members = self.always[card.job] & self.directory.channels[CHANNEL]
        return all(
            any(self._is(who, name, members) for name in say.approvers or self.house.approvers)
            for _, say in asking
        )

    def is_edited(self, card: Shown, payment: Payment, by: str) -> None:
        """Somebody made another call of it: theirs, and of those who changed it before."""
        self.spoke.add(by)
        before = self.editors.get((card.job, card.payment), frozenset())
        known = self.editors.get((card.job, payment), frozenset())
        self.editors[card.job, payment] = before | known | {by}

    # ---- what is done ---------------------------------------------------------------------------

    def agrees(self, who: str, card: Shown, at_ms: int, gates: frozenset[int]) -> None:
        """Somebody's agreement is taken; for which gates it counts is seen when the call begins."""
        self.agreed.append(Yes(who, card, at_ms, gates))

    def begins(self, job: str, payment: Payment) -> None:
        """A call begins: everybody has agreed to exactly this whom its rules demand."""
        sayings, where = says(self.book, payment), f"{job} begins with {payment}"
        if job in self.stopped:
            self.faults.append(f"{where}, and somebody has stopped it")
        again = [yes for yes in self._about(job, payment, is_doubt=True) if self._lets(yes)]
        if again:
            again[0].is_used = True
        elif self.ran[job]:
            self.faults.append(f"{where} once more; {self.agreed}")
        if not self.is_agreed(job, payment, is_again=bool(again)):
            self.faults.append(f"{where}; {sayings} is said of it, and who agreed is {self.agreed}")
        self.ran[job].append(payment)

    def is_agreed(self, job: str, payment: Payment, *, is_again: bool = False) -> bool:
        """Whether different people, one for each gate that asks, have agreed and still may."""
        sayings = says(self.book, payment)
        if any(say.effect == "deny" for say in sayings):
            return False
        about = self._about(job, payment, is_doubt=False)
        usable = [
            [yes for yes in about if at in yes.gates and (is_again or self._still(yes, say))]
            for at, say in enumerate(sayings)
            if say.effect == "ask"
        ]
        return any(self._is_whole(ways, is_again=is_again) for ways in product(*usable))

    def _about(self, job: str, payment: Payment, *, is_doubt: bool) -> list[Yes]:
        wanted = (job, payment, is_doubt)
        cards = [(yes, yes.card) for yes in self.agreed]
        return [yes for yes, card in cards if (card.job, card.payment, card.is_doubt) == wanted]

    def _is_whole(self, ways: Sequence[Yes], *, is_again: bool) -> bool:
        if len({yes.by for yes in ways}) < len(ways):
            return False
        newest = max((yes.at_ms for yes in ways), default=self.clock())
        return is_again or self.clock() - newest <= MAX_AGE

    def _still(self, yes: Yes, say: Say) -> bool:
        """Whether who agreed still may; for a minute nobody looks."""
        return self.clock() - yes.at_ms <= FRESH or self.may(yes.by, yes.card, say)

    def _lets(self, yes: Yes) -> bool:
        """Whether somebody's word lets a call run that was in doubt."""
        is_young = self.clock() - yes.at_ms <= MAX_AGE
        still = any(self._still(yes, say) for _, say in self.asking(yes.card))
        return is_young and still and not yes.is_used
