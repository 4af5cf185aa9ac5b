"""An independent count of votes: from the audit and from what people pressed, not by our ballot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from bot.errors import DirectoryError, NotRecordedError
from bot.records.approval import Approval, Kind, Status
from bot.records.people import Grant
from bot.slack.listeners.errors import explain
from storage.audit import AuditEntry
from storage.errors import StoreUnavailableError

AWHILE_MS = 200
"""Clocks are read by one process before another one."""
SOON_MS = 3_000
"""A private answer follows the acknowledgement at once; at a great load it takes its time."""
UNRECORDED = (
    explain(NotRecordedError()),
    explain(DirectoryError()),
    explain(StoreUnavailableError("")),
)
"""The words that tell a person that a click may count for nothing."""


@dataclass(kw_only=True)
class Press:
    """A press of a button, or of a form, that is a vote.

    Attributes:
        by: Who.
        approval_id: On which card.
        channel: Where that was.
        choice: `approve` or `reject`.
        began_ms: When.
        ended_ms: When it was answered.
        is_answered: Whether the app acknowledged it, and not as one that it may not have kept.
        click: Number of the click that was a vote on several at once; 0 for one of its own.
    """

    by: str
    approval_id: str
    choice: str
    channel: str
    began_ms: int
    ended_ms: int = 0
    is_answered: bool = False
    click: int = 0


@dataclass(frozen=True, kw_only=True)
class Word:
    """What the app told a person privately.

    Attributes:
        user: Whom.
        channel: Where.
        text: What.
        at_ms: When.
    """

    user: str
    channel: str
    text: str
    at_ms: int


@dataclass(frozen=True, kw_only=True)
class Seats:
    """The people that a rule needs, in plain words: one set for each slot, of a stage each.

    Attributes:
        slots: Who may fill each slot.
        rejections: So many people end it by their no.
        later: Who of these may agree only some time after the request.
        later_ms: How long after it.
    """

    slots: tuple[frozenset[str], ...]
    rejections: int = 1
    later: frozenset[str] = frozenset()
    later_ms: int = 0


@dataclass(kw_only=True)
class Tally:
    """The count.

    Args:
        seats: The rule of each tool.
        presses: All votes that people meant to cast.
        words: What people were told privately; each answers one press.
        unrecorded: How many have no trace, by what was said to whoever pressed.
    """

    seats: Mapping[str, Seats]
    presses: Sequence[Press]
    words: Sequence[Word] = ()
    unrecorded: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._excuses = [word for word in self.words if word.text in UNRECORDED]
        self._excused: dict[int, Word] = {}

    def count(self, approvals: Sequence[Approval], audit: Sequence[AuditEntry]) -> None:
        """Count the votes of one thread."""
        for approval in approvals:
            if approval.kind is Kind.APPROVAL:
                about = [entry for entry in audit if entry.approval_id == approval.approval_id]
                self._check_votes(approval, about)
                self._check_end(approval, _standing(approval, about))

    def _check_votes(self, approval: Approval, about: Sequence[AuditEntry]) -> None:
        """No press lost, none counted twice, and no vote of nobody's."""
        name = f"votes on {approval.title!r}"
        voted = [entry for entry in about if entry.action == "voted"]
        for payload, count in Counter(entry.detail.get("payload") for entry in voted).items():
            if count > 1:
                self.wrong.append(f"{name}: one click was counted {count} times: {payload}")
        presses = [press for press in self.presses if press.approval_id == approval.approval_id]
        self._check_presses(name, presses, about)
        seats = self.seats[approval.tool]
        for vote in voted:
            choice = vote.detail["choice"]
            is_early = vote.at_ms < approval.created_ms + seats.later_ms
            if choice == "approve" and vote.actor_id in seats.later and is_early:
                self.wrong.append(f"{name}: {vote.actor_id} was not asked yet")
            mine = [
                press for press in presses if (press.by, press.choice) == (vote.actor_id, choice)
            ]
            if not any(_within(press, vote.at_ms) for press in mine):
                self.wrong.append(f"{name}: {vote.actor_id} never pressed {choice}: {vote.at_ms}")

    def _check_presses(
        self, name: str, presses: Sequence[Press], about: Sequence[AuditEntry]
    ) -> None:
        """What was answered has a trace, however long it took, or the person knows better."""
        for press in presses:
            if not press.is_answered or any(_answers(press, entry) for entry in about):
                continue
            excuse = self._excuse(press)
            if excuse is None:
                acts = [(entry.action, entry.actor_id, entry.at_ms) for entry in about]
                self.wrong.append(f"{name}: lost {press}: {acts}")
            else:
                self.unrecorded[excuse.text] += 1

    def _excuse(self, press: Press) -> Word | None:
        """What told the person that this click may count for nothing; said once, used once."""
        if press.click in self._excused:
            return self._excused[press.click]
        until_ms = press.ended_ms + SOON_MS
        for excuse in self._excuses:
            is_theirs = (excuse.user, excuse.channel) == (press.by, press.channel)
            if is_theirs and press.began_ms <= excuse.at_ms <= until_ms:
                self._excuses.remove(excuse)
                if press.click:
                    self._excused[press.click] = excuse
                return excuse
        return None

    def _check_end(self, approval: Approval, audited: Mapping[tuple[str, int], str]) -> None:
        """Decided by just the votes that its rule needs, and by those that the record has."""
        name, seats = f"end of {approval.title!r}", self.seats[approval.tool]
        if approval.decision is not None and approval.decision.emergency:
            return  # past all votes
        kept = {(vote.by, vote.at_ms): vote.choice for vote in approval.votes}
        if kept != dict(audited):
            self.wrong.append(f"{name}: the record has {kept}, the audit {dict(audited)}")
        by = {choice: _people(audited, choice) for choice in ("approve", "reject")}
        if any(len(people) != len({*people}) for people in by.values()):
            self.wrong.append(f"{name}: somebody voted twice: {dict(audited)}")
        is_full = _fills(by["approve"], seats.slots)
        if (approval.status is Status.APPROVED) != is_full:
            self.wrong.append(f"{name}: {approval.status} by {dict(audited)}")
        if (approval.status is Status.REJECTED) != (len(by["reject"]) >= seats.rejections):
            self.wrong.append(f"{name}: {approval.status} by {dict(audited)}")
        if len(by["approve"]) > len(seats.slots):
            self.wrong.append(f"{name}: more votes than it needs: {dict(audited)}")

    def count_grants(self, grants: Sequence[Grant], audit: Sequence[AuditEntry]) -> set[str]:
        """Count the uses of grants; return the references of what ran by one."""
        used = [entry for entry in audit if entry.action == "grant_used"]
        uses = Counter(str(entry.detail["grant"]) for entry in used)
        for grant in grants:
            kept = len(grant.uses)
            if uses[grant.grant_id] > min(kept, grant.max_uses) or kept > grant.max_uses:
                self.wrong.append(
                    f"{grant.grant_id}: {uses[grant.grant_id]} uses, {kept} of {grant.max_uses}"
                )
        unknown = set(uses) - {stored.grant_id for stored in grants}
        if unknown:
            self.wrong.append(f"used and never given: {unknown}")
        return {_argument(entry, "ref") for entry in used}


def _standing(approval: Approval, about: Sequence[AuditEntry]) -> dict[tuple[str, int], str]:
    """The votes that stand at the end: by person and time."""
    digest = approval.digest
    gone = {
        (removal.actor_id, int(removal.entry_id.split(":")[2]))
        for removal in about
        if removal.action in {"taken_back", "vote_dropped"}
    }
    newest: dict[str, tuple[int, str]] = {}
    for entry in sorted(about, key=lambda noted: noted.at_ms):
        if entry.action == "voted" and entry.detail["digest"] == digest:
            newest[entry.actor_id] = (entry.at_ms, str(entry.detail["choice"]))
    votes = {(by, at): choice for by, (at, choice) in newest.items()}
    return {key: choice for key, choice in votes.items() if key not in gone}


def _people(choices: Mapping[tuple[str, int], str], choice: str) -> list[str]:
    return [by for (by, _), said in choices.items() if said == choice]


def _fills(people: Sequence[str], slots: Sequence[frozenset[str]]) -> bool:
    """Whether different people can be found for all slots, in whatever order."""
    return any(
        all(person in slot for person, slot in zip(order, slots, strict=True))
        for order in permutations(people, len(slots))
    )


def _answers(press: Press, entry: AuditEntry) -> bool:
    """Whether an entry says what became of a press."""
    is_ours = entry.actor_id == press.by and _within(press, entry.at_ms)
    return is_ours and entry.action in {"voted", "refused", "edit_refused", "edited"}


def _within(press: Press, at_ms: int) -> bool:
    end_ms = press.ended_ms or press.began_ms + 10_000
    return press.began_ms - AWHILE_MS <= at_ms <= end_ms + AWHILE_MS


def _argument(entry: AuditEntry, name: str) -> str:
    arguments: Any = entry.detail.get("arguments")
    return str(arguments[name])
