"""Refusals: why a vote does not count, in the order of the checks; limits of new delegations."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.policy.eligibility import (
    Delegation,
    Eligibility,
    Exclusion,
    PeopleSnapshot,
    Problem,
    either,
)
from bot.policy.tally import Ballot, ValidVotes
from bot.records.approval import APPROVE, REJECT, STOPS, CastVote, Right
from bot.records.terms import Stage
from bot.words import say


class RefusalCode(StrEnum):
    """The reason of a refusal. Stored in the audit: must stay readable."""

    CLOSED = "closed"
    OUTDATED = "outdated"
    DEACTIVATED = "deactivated"
    BOT = "bot"
    EXTERNAL = "external"
    GUEST = "guest"
    LOOKUP_FAILED = "lookup_failed"
    RULE_DENIES = "rule_denies"
    OWN_REQUEST = "own_request"
    OWN_EDIT = "own_edit"
    EXCLUDED = "excluded"
    NOT_APPROVER = "not_approver"
    NOT_YOUR_TURN = "not_your_turn"
    REASON_REQUIRED = "reason_required"
    NOT_SEEN = "not_seen"
    USED_UP = "used_up"
    ALREADY_VOTED = "already_voted"
    NOT_NEEDED = "not_needed"
    NOT_EDITOR = "not_editor"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNDECIDABLE = "undecidable"
    CLAIMED_BY_OTHER = "claimed_by_other"
    CLAIMED_BEFORE = "claimed_before"
    BEYOND_DEADLINE = "beyond_deadline"
    NOT_REQUESTER = "not_requester"
    NO_VOTE = "no_vote"
    BAD_DELEGATE = "bad_delegate"
    NOT_IN_BATCH = "not_in_batch"
    NOT_HERE = "not_here"

    @property
    def words(self) -> str:
        """Text for the refused person: short, with a remedy if there is one."""
        return say(_KEYS[self])


_KEYS = {
    RefusalCode.CLOSED: "refuse.closed_now",
    RefusalCode.OUTDATED: "refuse.changed",
    RefusalCode.DEACTIVATED: "refuse.deactivated",
    RefusalCode.BOT: "refuse.app",
    RefusalCode.EXTERNAL: "refuse.external_here",
    RefusalCode.GUEST: "refuse.guest_here",
    RefusalCode.LOOKUP_FAILED: "refuse.lookup",
    RefusalCode.RULE_DENIES: "refuse.rule_denies",
    RefusalCode.OWN_REQUEST: "refuse.own_here",
    RefusalCode.OWN_EDIT: "refuse.editor",
    RefusalCode.EXCLUDED: "refuse.excluded",
    RefusalCode.NOT_APPROVER: "refuse.not_among",
    RefusalCode.NOT_YOUR_TURN: "refuse.not_yet",
    RefusalCode.REASON_REQUIRED: "refuse.reason",
    RefusalCode.NOT_SEEN: "refuse.part_hidden",
    RefusalCode.USED_UP: "refuse.used_up",
    RefusalCode.ALREADY_VOTED: "refuse.voted_already",
    RefusalCode.NOT_NEEDED: "refuse.not_needed",
    RefusalCode.NOT_EDITOR: "refuse.not_editor",
    RefusalCode.INVALID_ARGUMENTS: "refuse.arguments",
    RefusalCode.UNDECIDABLE: "refuse.edit_undecidable",
    RefusalCode.CLAIMED_BY_OTHER: "refuse.claimed",
    RefusalCode.CLAIMED_BEFORE: "refuse.claimed_before",
    RefusalCode.BEYOND_DEADLINE: "refuse.beyond",
    RefusalCode.NOT_REQUESTER: "refuse.only_requester",
    RefusalCode.NO_VOTE: "refuse.no_vote",
    RefusalCode.BAD_DELEGATE: "refuse.bad_delegate",
    RefusalCode.NOT_HERE: "refuse.not_here",
    RefusalCode.NOT_IN_BATCH: "refuse.not_in_batch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAttempt:
    """A requested vote, and facts about the approval that the vote depends on.

    Attributes:
        by: Slack user id.
        choice: As in `CastVote`.
        at_ms: Time of the click.
        digest: Digest of the call as the person saw it.
        note: The voter's reason; may be empty.
        result: For a call in doubt, the reported result.
        is_open: Whether the approval is pending and not expired.
        is_denied: Whether the current policy denies the call.
        has_seen: Whether the person has opened all required parts.
    """

    by: str
    choice: str
    at_ms: int
    digest: str
    note: str = ""
    result: str = ""
    is_open: bool = True
    is_denied: bool = False
    has_seen: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResult:
    """The result of an attempt to vote.

    Attributes:
        ballot: The new ballot, also after a refusal, because invalid votes may have been dropped
            first.
        refusal: Why the vote does not count; None if it does.
        vote: The counted vote; None after a refusal.
        dropped: Votes of people who may no longer decide.
        void: Votes of stages that are no longer reached.
        decision: The decided choice and result; None while undecided.
    """

    ballot: Ballot
    refusal: RefusalCode | None = None
    vote: CastVote | None = None
    dropped: tuple[CastVote, ...] = ()
    void: tuple[CastVote, ...] = ()
    decision: tuple[str, str] | None = None

    @property
    def gone(self) -> tuple[CastVote, ...]:
        """The removed votes, except the voter's own vote."""
        return (*self.dropped, *self.void)


def judge_vote(ballot: Ballot, attempt: VoteAttempt, snapshot: PeopleSnapshot) -> VoteResult:
    """Check a vote, and count it if it is valid."""
    # First the refusals that leave the ballot unchanged, then a recount: invalid votes are dropped
    # even if this vote is refused.
    early = _early(ballot, attempt, snapshot)
    if early is not None:
        return VoteResult(ballot=ballot, refusal=early)
    recount = ballot.recounted(snapshot)
    ruling = _Voter(recount.ballot, attempt, snapshot).judge()
    if isinstance(ruling, RefusalCode):
        return _result(recount, refusal=ruling)
    after = recount.ballot.with_vote(ruling, snapshot)
    return VoteResult(
        ballot=after.ballot,
        vote=ruling,
        dropped=recount.dropped + after.dropped,
        void=recount.void + after.void,
        decision=after.ballot.decision(snapshot),
    )


def judge_take_back(ballot: Ballot, attempt: VoteAttempt, snapshot: PeopleSnapshot) -> VoteResult:
    """Withdraw a person's vote, if there is one. `attempt.choice` is ignored."""
    if not attempt.is_open:
        return VoteResult(ballot=ballot, refusal=RefusalCode.CLOSED)
    if attempt.digest != ballot.digest:
        return VoteResult(ballot=ballot, refusal=RefusalCode.OUTDATED)
    vote = ballot.vote_of(attempt.by)
    if vote is None:
        return VoteResult(ballot=ballot, refusal=RefusalCode.NO_VOTE)
    recount = ballot.without(attempt.by, snapshot)
    return replace(_result(recount), vote=vote)


def is_blank(text: str) -> bool:
    """Whether a reason has no visible character."""
    return all(char.isspace() or unicodedata.category(char).startswith("C") for char in text)


def _result(recount: ValidVotes, *, refusal: RefusalCode | None = None) -> VoteResult:
    return VoteResult(
        ballot=recount.ballot, refusal=refusal, dropped=recount.dropped, void=recount.void
    )


def _early(ballot: Ballot, attempt: VoteAttempt, snapshot: PeopleSnapshot) -> RefusalCode | None:
    """Return a refusal that does not depend on the person's rights, if any."""
    if not attempt.is_open:
        return RefusalCode.CLOSED
    if attempt.digest != ballot.digest:
        return RefusalCode.OUTDATED
    problem = snapshot.people.get(attempt.by)
    if problem is not None:
        return RefusalCode(problem.value)
    if attempt.by not in snapshot.people or not _Voter(ballot, attempt, snapshot).is_known():
        return RefusalCode.LOOKUP_FAILED
    return RefusalCode.RULE_DENIES if attempt.is_denied else None


class _Voter:
    """A voter and their rights on one ballot."""

    def __init__(self, ballot: Ballot, attempt: VoteAttempt, snapshot: PeopleSnapshot) -> None:
        self._ballot, self._attempt, self._snapshot = ballot, attempt, snapshot
        self._rights = Eligibility(ballot.terms, snapshot)
        self._is_stop = attempt.choice in STOPS

    def is_known(self) -> bool:
        """Whether all people and groups that this vote needs were looked up."""
        ballot, snapshot = self._ballot, self._snapshot
        # A rejection is safe without a complete look-up, so it needs less.
        if not self._is_stop:
            return ballot.is_sure(snapshot) and self._turn() is not None
        stops = {user_id for vote in ballot.votes if vote.is_stop for user_id in vote.persons}
        is_counted = ballot.terms.reject == 1 or snapshot.knows(people=stops)
        return is_counted and self._turn() is not None

    def judge(self) -> CastVote | RefusalCode:
        """Return the counted vote, or the refusal."""
        against = None if self._is_stop else self._rights.exclusion(self._attempt.by)
        if isinstance(against, Exclusion):
            return RefusalCode(against.value)
        if not self._turn():
            # Distinguish people who may vote later from people who never may.
            later = self._may(self._ballot.stages, steps=len(self._ballot.terms.escalate))
            return RefusalCode.NOT_YOUR_TURN if later else RefusalCode.NOT_APPROVER
        terms, choice = self._ballot.terms, self._attempt.choice
        needs_reason = {APPROVE: terms.approve_reason, REJECT: terms.reject_reason}
        if needs_reason.get(choice, False) and is_blank(self._attempt.note):
            return RefusalCode.REASON_REQUIRED
        if not self._is_stop and not self._attempt.has_seen:
            return RefusalCode.NOT_SEEN
        return self._stop() if self._is_stop else self._slot()

    def _usable(self) -> list[tuple[Right, bool | None]]:
        """Return the rights that may be used, and whether they are known to hold."""
        by = self._attempt.by
        rights = [(right, self._rights.holds(right, by)) for right in self._rights.of(by)]
        return [
            (right, holds)
            for right, holds in rights
            if holds is not False
            # An excluded owner cannot approve through a delegate either.
            and (self._is_stop or right.owner == by or not self._rights.exclusion(right.owner))
        ]

    def _may(self, stages: tuple[Stage, ...], *, steps: int) -> bool | None:
        answers = (
            fits if holds else (None if fits is not False else False)
            for right, holds in self._usable()
            for stage in stages
            for fits in [
                either(
                    self._rights.fits(right, requirement, steps) for requirement in stage.approve
                )
            ]
        )
        return either(answers)

    def _turn(self) -> bool | None:
        """Whether this person may vote in the current or an earlier stage, or None.

        People of all stages may reject; only people of begun stages may approve. A person with a
        vote has had their turn, and the refusal says why another vote does not count.
        """
        ballot = self._ballot
        number = ballot.stage
        reached = ballot.stages if self._is_stop else ballot.stages[: number + 1]
        result = self._may(reached, steps=ballot.steps)
        if not result or self._is_stop or self._may((ballot.current,), steps=ballot.steps):
            return result
        if ballot.vote_of(self._attempt.by) is not None:
            return True
        later = self._may(ballot.stages[number:], steps=len(ballot.terms.escalate))
        return None if later is None else not later

    def _stop(self) -> CastVote | RefusalCode:
        """Return a rejection by the first right that permits it. It needs no free slot."""
        ballot, stages = self._ballot, self._ballot.stages
        own = ballot.vote_of(self._attempt.by)
        if own is not None and own.choice == self._attempt.choice:
            return RefusalCode.ALREADY_VOTED
        # Such a right exists: `judge` refuses a person without one before.
        right = next(
            right
            for right, holds in self._usable()
            if holds
            and any(
                self._rights.fits(right, requirement, ballot.steps)
                for stage in stages
                for requirement in stage.approve
            )
        )
        vote = self._vote(right)
        others = [other for other in ballot.votes if other.by != vote.by and other.is_stop]
        return (
            RefusalCode.USED_UP if any(other.persons & vote.persons for other in others) else vote
        )

    def _slot(self) -> CastVote | RefusalCode:
        """Return an approval by the first right that fills one more slot, or a refusal."""
        refusals: list[RefusalCode] = []
        for right, holds in self._usable():
            fits = [
                self._rights.fits(right, requirement, self._ballot.steps)
                for requirement in self._ballot.current.approve
            ]
            if not (holds and any(fits)):
                continue
            refusal = self._against(right)
            if refusal is None:
                return self._vote(right)
            refusals.append(refusal)
        # The first right is the person's own, so its refusal is the most helpful.
        if refusals:
            return refusals[0]
        own = self._ballot.vote_of(self._attempt.by)
        return RefusalCode.NOT_NEEDED if own is None else RefusalCode.ALREADY_VOTED

    def _against(self, right: Right) -> RefusalCode | None:
        """Return why a right of the current stage fills no slot."""
        ballot, vote = self._ballot, self._vote(right)
        own = ballot.vote_of(vote.by)
        others = {
            user_id for other in ballot.votes if other is not own for user_id in other.persons
        }
        if vote.persons & (others | self._snapshot.counted):
            return RefusalCode.USED_UP
        if own is not None and own.aim == vote.aim:
            is_same = own.stage == vote.stage
            return RefusalCode.ALREADY_VOTED if is_same else RefusalCode.USED_UP
        useful = ballot.open_columns(self._snapshot, aim=vote.aim, but=vote.by)
        if any(self._rights.fits(right, requirement, ballot.steps) for requirement in useful):
            return None
        return RefusalCode.NOT_NEEDED

    def _vote(self, right: Right) -> CastVote:
        ballot, attempt = self._ballot, self._attempt
        return CastVote(
            by=attempt.by,
            choice=attempt.choice,
            at_ms=attempt.at_ms,
            digest=attempt.digest,
            note=attempt.note,
            result=attempt.result,
            on_behalf_of="" if right.owner == attempt.by else right.owner,
            group=right.group,
            stage=ballot.stage,
            steps=ballot.steps,
        )


LONGEST_MS = 30 * 24 * 3_600_000
"""Longest delegation, in milliseconds."""


def judge_delegation(
    new: Delegation,
    *,
    others: Iterable[Delegation],
    people: Mapping[str, Problem | None],
    now_ms: int,
) -> RefusalCode | None:
    """Return why a delegation is not permitted, or None if it is.

    Args:
        new: The requested delegation.
        others: All delegations of the workspace; ended ones are ignored.
        people: The owner and the delegate, as just looked up. A missing person could not be looked
            up.
        now_ms: The time.
    """
    if new.owner == new.delegate or not 0 < new.until_ms - now_ms <= LONGEST_MS:
        return RefusalCode.BAD_DELEGATE
    if not {new.owner, new.delegate} <= set(people):
        return RefusalCode.LOOKUP_FAILED
    problem = people[new.owner]
    if problem is not None:
        return RefusalCode(problem.value)
    holding = [delegation for delegation in others if delegation.holds(now_ms)]
    if people[new.delegate] is not None or _leads_back(new, holding):
        return RefusalCode.BAD_DELEGATE
    return None


def _leads_back(new: Delegation, others: Iterable[Delegation]) -> bool:
    """Whether the delegation closes a cycle from its delegate back to its owner."""
    ways: dict[str, list[str]] = {}
    for delegation in others:
        ways.setdefault(delegation.owner, []).append(delegation.delegate)
    reached, new_ones = {new.delegate}, [new.delegate]
    while new_ones:
        more = [delegate for delegate in ways.get(new_ones.pop(), ()) if delegate not in reached]
        reached.update(more)
        new_ones += more
    return new.owner in reached
