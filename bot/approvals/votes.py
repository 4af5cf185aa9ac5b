"""Votes: judge by current memberships, store with the decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bot.approvals.changes import voted, with_act
from bot.approvals.disclosure import Surface
from bot.approvals.execution import can_take_back, taken_back, with_rejection
from bot.audit.acts import Act
from bot.errors import (
    ApprovalClosedError,
    DirectoryError,
    InvalidInputError,
    NotSeenError,
    OthersTurnError,
    OutdatedCardError,
    RefusalError,
    StrangerError,
    UserFacingError,
)
from bot.people.approvers import deciders_of, next_step_ms
from bot.people.break_glass import has_lost_glass
from bot.people.lookup import PATIENCE_S, PeopleLookup
from bot.policy.eligibility import REQUESTERS, Eligibility, Exclusion, PeopleSnapshot
from bot.policy.progress import ballot_of, groups_of, is_allowed_by_rule
from bot.policy.refusals import RefusalCode, VoteAttempt, VoteResult, judge_take_back, judge_vote
from bot.policy.tally import Ballot
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.questions.base import question_of
from bot.records.approval import (
    APPROVE,
    REJECT,
    STOPS,
    Approval,
    CastVote,
    Decision,
    Grounds,
    Kind,
    Status,
)
from bot.records.approval_queries import ApprovalCollection
from bot.records.terms import Terms
from storage.documents import update
from storage.errors import RecordConflictError

APPROVERS = "approvers"
"""Value of `editors`: all current approvers may edit."""
_TRIES = 20
"""Number of conflicting writes before the person must retry."""
_ANY_REASON = "…"
"""Placeholder for a reason that the person may give later."""
_NOTHING_AGAINST = frozenset(
    {
        RefusalCode.REASON_REQUIRED,
        RefusalCode.NOT_SEEN,
        RefusalCode.USED_UP,
        RefusalCode.ALREADY_VOTED,
        RefusalCode.NOT_NEEDED,
    }
)
"""Refusals that do not concern the voter's right."""
_MAYBE = frozenset({RefusalCode.NOT_APPROVER, RefusalCode.LOOKUP_FAILED})
"""Refusals that may change once further groups are looked up."""

Gone = Callable[[Approval, Sequence[CastVote]], Awaitable[None]]
"""Called before votes are removed, with the record and the votes.

Replaced votes of the same voter are not included.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOutcome:
    """A judged vote.

    Attributes:
        approval: As read: the judgement is about this revision.
        result: The judgement.
        snapshot: The people as looked up.
        why_denied: Why the policy now denies the call; empty if it does not.
    """

    approval: Approval
    result: VoteResult
    snapshot: PeopleSnapshot
    why_denied: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """Judges and stores votes.

    Args:
        approvals: Stored approvals.
        lookup: Looks people up.
        policy: The policy in force.
        clock: The time now.
        unseen: Returns hidden parts that a person has not opened, or None.
        gone: Called before votes are removed.
    """

    approvals: ApprovalCollection
    lookup: PeopleLookup
    policy: CurrentPolicy
    clock: Clock
    unseen: Callable[[Approval, str, Surface], NotSeenError | None]
    gone: Gone

    async def check(
        self,
        approval: Approval,
        actor: Actor,
        *,
        choice: str = REJECT,
        is_denied: bool | None = None,
    ) -> None:
        """Refuse a person who could not vote like this. An earlier vote is no reason.

        Args:
            approval: The approval.
            actor: The person.
            choice: The vote.
            is_denied: Whether the policy denies the call; None if unknown.

        Raises:
            RefusalError: With the reason. A requester withdraws instead of rejecting.
            DirectoryError: A look-up failed.
        """
        attempt = self._attempt(approval, actor, choice)
        outcome = await self._judged(approval, actor, attempt, is_denied=is_denied)
        refusal = outcome.result.refusal
        rights = Eligibility(approval.terms, outcome.snapshot)
        is_own = rights.exclusion(actor.user_id) is Exclusion.OWN_REQUEST
        if is_own and (refusal is None or refusal is RefusalCode.NOT_APPROVER):
            refusal = RefusalCode.OWN_REQUEST
        if refusal is not None and refusal not in _NOTHING_AGAINST:
            raise self._error(outcome, refusal)

    async def check_free(self, approval: Approval, actor: Actor) -> None:
        """Raise unless the person's vote could count, ignoring a missing reason.

        Raises:
            RefusalError: With the reason.
            DirectoryError: A look-up failed.
        """
        attempt = self._attempt(approval, actor, note=_ANY_REASON)
        outcome = await self._judged(approval, actor, attempt, is_denied=False)
        if outcome.result.refusal is not None:
            raise self._error(outcome, outcome.result.refusal)

    async def right_of(self, approval: Approval, actor: Actor) -> CastVote:
        """Return the vote that a person could cast now, with its right and group.

        Raises:
            RefusalError: The vote would not count.
            DirectoryError: A look-up failed.
        """
        attempt = self._attempt(approval, actor, note=_ANY_REASON)
        outcome = await self._judged(approval, actor, attempt)
        refusal, vote = outcome.result.refusal, outcome.result.vote
        if refusal is not None or vote is None:
            raise self._error(outcome, refusal or RefusalCode.NOT_APPROVER)
        return vote

    async def check_editor(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not edit an approval's call.

        A call that the policy now denies may still be edited: the edited call is judged instead.

        Raises:
            RefusalError: With the reason.
            DirectoryError: A look-up failed.
        """
        terms = approval.terms
        snapshot = await self.lookup.snapshot_of(
            approval, terms, people=[actor], groups=_editing_groups(terms)
        )
        problem = snapshot.people.get(actor.user_id)
        if problem is not None:
            raise _refused(RefusalCode(problem.value))
        may = _may_edit(terms, snapshot, actor.user_id)
        if may is None or actor.user_id not in snapshot.people:
            raise DirectoryError("an edit", again=snapshot.again)
        if may:
            return
        if not _approvers_edit(terms) or actor.user_id in snapshot.counted:
            raise _refused(RefusalCode.NOT_EDITOR)
        try:
            await self.check(approval, actor, choice=APPROVE, is_denied=False)
        except RefusalError as error:
            if error.code != RefusalCode.OWN_EDIT:  # an editor may edit again
                raise _refused(RefusalCode.NOT_EDITOR, detail=str(error)) from error

    async def cast(
        self, approval: Approval, decision: Decision, actor: Actor, surface: Surface
    ) -> Approval:
        """Record a vote and, when the quorum is met, the decision.

        Returns:
            The approval: decided or pending.

        Raises:
            UserFacingError: The vote does not count. Votes of people who lost the right are still
                removed.
        """
        if decision.arguments is not None:  # an edit is another call and voids all votes
            raise InvalidInputError("this form")
        choice, answer = question_of(approval).choice(decision)
        for _ in range(_TRIES):
            unseen = None
            if choice not in STOPS:
                unseen = self.unseen(approval, actor.user_id, surface)
            attempt = VoteAttempt(
                by=actor.user_id,
                choice=choice,
                at_ms=decision.at_ms,
                digest=approval.digest,
                note=decision.reason,
                result=answer,
                is_open=self._is_open(approval),
                has_seen=unseen is None,
            )
            outcome = await self._judged(approval, actor, attempt)
            try:
                result, stored = outcome.result, outcome.approval
                if result.refusal is None or result.gone:
                    # A refused vote stores only the removal of other votes.
                    stored = await self._write(outcome, decision)
            except RecordConflictError:
                approval = await self._read_again(approval)
                continue
            if outcome.result.refusal is RefusalCode.NOT_SEEN and unseen is not None:
                raise unseen
            if outcome.result.refusal is not None:
                raise self._error(outcome, outcome.result.refusal)
            return stored
        raise OutdatedCardError(approval.approval_id)

    async def reject_parked(self, approval: Approval, decision: Decision, actor: Actor) -> Approval:
        """Record a rejection of an approved call that a freeze keeps from starting.

        Returns:
            The approval: rejected, or still approved if the rule requires more rejections.

        Raises:
            UserFacingError: The vote does not count, or the call has started.
        """
        for _ in range(_TRIES):
            attempt = self._attempt(approval, actor, REJECT, note=decision.reason)
            outcome = await self._judged(approval, actor, attempt, is_denied=False)
            result, vote, revision = outcome.result, outcome.result.vote, approval.revision
            if vote is None:
                raise self._error(outcome, result.refusal or RefusalCode.NOT_APPROVER)
            write: Callable[[Approval], Approval | None]
            if result.decision is not None and result.decision[0] in STOPS:
                reason = _joint_reason(result.ballot, result.decision)
                last = decision.changed(reason=reason)
                write = partial(taken_back, decision=last, revision=revision, vote=vote)
            elif any(vote.persons & other.persons for other in approval.votes):
                # One vote less would leave an approval that nobody has given.
                raise self._error(outcome, RefusalCode.ALREADY_VOTED)
            else:
                write = partial(with_rejection, vote=vote, revision=revision, now_ms=self.clock())
            name = approval.approval_id
            stored = await update(self.approvals, name, write, writes_due=True)
            if stored is not None:
                return stored
            approval = await self.approvals.get(name)
        raise OutdatedCardError(approval.approval_id)

    async def take_back(self, approval: Approval, actor: Actor) -> Approval:
        """Remove a person's own vote, and return the approval as stored.

        Raises:
            UserFacingError: There is no such vote, or the approval is decided.
        """
        for _ in range(_TRIES):
            ballot = ballot_of(approval)
            groups = groups_of(ballot, is_begun=True)
            attempt = self._attempt(approval, actor)
            snapshot = await self.lookup.snapshot_of(
                approval, ballot.terms, people=_voters(ballot, actor), groups=groups
            )
            result = judge_take_back(ballot, attempt, snapshot)
            outcome = VoteOutcome(approval=approval, result=result, snapshot=snapshot)
            if result.refusal is not None or result.vote is None:
                raise self._error(outcome, result.refusal or RefusalCode.NO_VOTE)
            now, vote = self.clock(), result.vote
            noted = with_act(approval, Act.TAKEN_BACK, by=vote.by, at_ms=now, vote=vote)
            try:
                return await self._write(replace(outcome, approval=noted), None)
            except RecordConflictError:
                approval = await self._read_again(approval)
        raise OutdatedCardError(approval.approval_id)

    async def gone_since(self, approval: Approval) -> bool:
        """Whether a counted voter of an approved call has since lost the right.

        Raises:
            DirectoryError: A look-up failed.
        """
        decision = approval.decision
        if decision is not None and decision.emergency:
            return await has_lost_glass(self.lookup, approval, decision.by)
        ballot = _decided(approval)
        people = _voters(ballot)
        groups = groups_of(ballot, is_begun=True)
        snapshot = await self.lookup.snapshot_of(
            approval, ballot.terms, people=people, groups=groups
        )
        if not snapshot.knows(people=(person.user_id for person in people), groups=groups):
            raise DirectoryError("the start of a call", again=snapshot.again)
        recount = ballot.recounted(snapshot)
        return bool(recount.dropped or recount.void)

    async def count_editor(
        self, changed: Approval, actor: Actor, decision: Decision, *, shown: str
    ) -> Approval:
        """Count an edit as the editor's vote, if the rule permits that.

        Args:
            changed: The approval after the edit, without votes. The current escalation decides who
                may vote; it is reset afterwards.
            actor: The editor.
            decision: The editor's approval of the edited call.
            shown: Digest of the call that they were shown and edited.

        Returns:
            The approval with or without that vote; decided if the quorum is met.

        Raises:
            DirectoryError: A look-up failed.
        """
        attempt = VoteAttempt(
            by=actor.user_id,
            choice=APPROVE,
            at_ms=decision.at_ms,
            digest=changed.digest,
            note=decision.reason,
        )
        outcome = await self._judged(changed, actor, attempt, is_denied=False, shown=shown)
        if outcome.result.refusal is RefusalCode.LOOKUP_FAILED:
            raise DirectoryError("an edit", again=outcome.snapshot.again)
        if outcome.result.refusal is not None:
            return changed
        return counted(changed, outcome.result, decision)

    async def _judged(
        self,
        approval: Approval,
        actor: Actor,
        attempt: VoteAttempt,
        *,
        is_denied: bool | None = None,
        shown: str = "",
    ) -> VoteOutcome:
        """Judge a vote with few look-ups; with all if these are not sufficient.

        Args:
            approval: The approval.
            actor: The voter.
            attempt: The vote.
            is_denied: Whether the policy denies the call; None if unknown.
            shown: Of an edit, the digest of the call before.
        """
        ballot, loop = ballot_of(approval), asyncio.get_running_loop()
        people, deadline = _voters(ballot, actor), loop.time() + PATIENCE_S
        is_stop = attempt.choice in STOPS
        steps = len(ballot.terms.escalate)
        first = groups_of(ballot, is_begun=not is_stop)
        everything = groups_of(ballot, steps=steps)
        snapshot, why = await asyncio.gather(
            self.lookup.snapshot_of(approval, ballot.terms, people=people, groups=first),
            self.why_denied(approval, is_stop=is_stop) if is_denied is None else _nothing(),
        )
        attempt = replace(attempt, is_denied=bool(why))
        result = judge_vote(ballot, attempt, snapshot)
        is_known = snapshot.knows(people=(person.user_id for person in people), groups=first)
        if result.refusal in _MAYBE and is_known and everything > first:
            snapshot = await self.lookup.snapshot_of(
                approval,
                ballot.terms,
                people=people,
                groups=everything,
                patience_s=deadline - loop.time(),
                handed=snapshot.delegations,
            )
            result = judge_vote(ballot, attempt, snapshot)
        result = self._with_grounds(result, ballot, snapshot, actor, shown or attempt.digest)
        return VoteOutcome(approval=approval, result=result, snapshot=snapshot, why_denied=why)

    def _with_grounds(
        self, result: VoteResult, ballot: Ballot, snapshot: PeopleSnapshot, actor: Actor, shown: str
    ) -> VoteResult:
        """Store with a vote the evidence on which it counts."""
        vote, person = result.vote, snapshot.persons.get(actor.user_id)
        if vote is None or person is None:
            return result
        grounds = Grounds(
            payload=actor.payload,
            name=person.name,
            team=person.team_id,
            read_ms=snapshot.read_ms,
            shown=shown,
            file=self.policy.file_hash,
        )
        grounded = vote.changed(groups=_groups_of(vote, ballot, snapshot), grounds=grounds)
        votes = tuple(grounded if other == vote else other for other in result.ballot.votes)
        return replace(result, vote=grounded, ballot=replace(result.ballot, votes=votes))

    async def why_denied(self, approval: Approval, *, is_stop: bool = False) -> str:
        """Return why the policy now denies the call; a doubt can still be settled.

        Raises:
            DirectoryError: The evaluation failed. It is not needed for a rejection.
        """
        if approval.kind is not Kind.APPROVAL:
            return ""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.policy.denied(approval)
        except (DirectoryError, TimeoutError) as error:
            if is_stop:
                return ""
            raise DirectoryError(
                "the policy in force", again=getattr(error, "again", None)
            ) from error

    async def _write(self, outcome: VoteOutcome, decision: Decision | None) -> Approval:
        approval, gone, now = outcome.approval, outcome.result.gone, self.clock()
        changed = counted(approval, outcome.result, decision)
        if gone or not {*approval.votes} <= {*changed.votes}:
            # Only the audit keeps a vote that is removed or replaced.
            await self.gone(approval, gone)
        write = partial(voted, judged=changed, now_ms=now)
        stored = await update(self.approvals, approval.approval_id, write, writes_due=True)
        if stored is None:
            raise RecordConflictError("approval", approval.approval_id)
        return stored

    async def _read_again(self, approval: Approval) -> Approval:
        """Read a record again that changed since it was read.

        Raises:
            ApprovalClosedError: It is decided.
            OutdatedCardError: Its subject changed.
        """
        newest = await self.approvals.get(approval.approval_id)
        if not self._is_open(newest):
            raise ApprovalClosedError(newest)
        if newest.digest != approval.digest:
            raise OutdatedCardError(newest.approval_id)
        return newest

    def _attempt(
        self, approval: Approval, actor: Actor, choice: str = APPROVE, *, note: str = ""
    ) -> VoteAttempt:
        """Return the vote that the person would cast now."""
        return VoteAttempt(
            by=actor.user_id,
            choice=choice,
            at_ms=self.clock(),
            digest=approval.digest,
            note=note,
            is_open=self._is_open(approval) or (choice in STOPS and can_take_back(approval)),
        )

    def _is_open(self, approval: Approval) -> bool:
        return approval.status is Status.PENDING and self.clock() < approval.expires_ms

    def _error(self, outcome: VoteOutcome, refusal: RefusalCode) -> UserFacingError:
        match refusal:
            case RefusalCode.CLOSED:
                return ApprovalClosedError(outcome.approval)
            case RefusalCode.OUTDATED:
                return OutdatedCardError(outcome.approval.approval_id)
            case RefusalCode.LOOKUP_FAILED:
                return DirectoryError("a vote", again=outcome.snapshot.again)
            case RefusalCode.NOT_APPROVER:
                who = deciders_of(outcome.approval, self.clock(), outcome.snapshot)
                return StrangerError(refusal.value, refusal.words, deciders=who)
            case RefusalCode.NOT_YOUR_TURN | RefusalCode.ALREADY_VOTED | RefusalCode.NOT_NEEDED:
                return self._others(outcome, refusal)
            case _:
                return _refused(refusal, detail=outcome.why_denied)

    def _others(self, outcome: VoteOutcome, refusal: RefusalCode) -> RefusalError:
        """Add to a refusal who can decide now, and when this person can."""
        approval, terms = outcome.approval, outcome.approval.terms
        is_backup = refusal is RefusalCode.NOT_YOUR_TURN and len(terms.stages) == 1
        return OthersTurnError(
            refusal.value,
            _OTHERS[refusal],
            deciders=deciders_of(approval, self.clock(), outcome.snapshot),
            turn_ms=next_step_ms(approval) if is_backup and len(terms.escalate) == 1 else None,
        )


_OTHERS = {
    RefusalCode.NOT_YOUR_TURN: "refuse.not_yet",
    RefusalCode.ALREADY_VOTED: "refuse.voted_already",
    RefusalCode.NOT_NEEDED: "refuse.not_needed",
}


def _refused(code: RefusalCode, *, detail: str = "") -> RefusalError:
    return RefusalError(code.value, code.words, detail=detail)


def _approvers_edit(terms: Terms) -> bool:
    """Whether all current approvers may edit."""
    return terms.edit == "yes" or (terms.edit == "by" and APPROVERS in terms.editors)


def _editing_groups(terms: Terms) -> tuple[str, ...]:
    """Return the groups that may edit."""
    if terms.edit != "by":
        return ()
    return tuple(name for name in terms.editors if name not in {APPROVERS, REQUESTERS})


def _may_edit(terms: Terms, snapshot: PeopleSnapshot, user_id: str) -> bool | None:
    """Whether a person may edit without being an approver; None if unknown."""
    if terms.edit == "by" and REQUESTERS in terms.editors and user_id in snapshot.requesters:
        return True
    return snapshot.is_among(_editing_groups(terms), user_id)


def _decided(approval: Approval) -> Ballot:
    """Return the deciding votes; without any, one of the person who decided."""
    ballot, decision = ballot_of(approval), approval.decision
    if ballot.votes or decision is None or is_allowed_by_rule(approval):
        return ballot
    choice, answer = question_of(approval).choice(decision)
    vote = CastVote(
        by=decision.by, choice=choice, result=answer, at_ms=decision.at_ms, digest=ballot.digest
    )
    return replace(ballot, votes=(vote,))


def _voters(ballot: Ballot, *actors: Actor) -> list[Actor]:
    """Return the people who vote now and those whose votes are checked again."""
    known = {actor.user_id for actor in actors}
    others = {user_id for vote in ballot.votes for user_id in vote.persons} - known
    return [*actors, *(Actor(user_id=user_id, team_id="") for user_id in sorted(others))]


def _groups_of(vote: CastVote, ballot: Ballot, snapshot: PeopleSnapshot) -> tuple[str, ...]:
    """Return the names of the groups through which a vote counts."""
    rights = Eligibility(ballot.terms, snapshot)
    stages = (
        ballot.stages if vote.is_stop else ballot.stages[0 if ballot.is_doubt else vote.stage :][:1]
    )
    names = dict.fromkeys(
        name
        for stage in stages
        for requirement in stage.approve
        for name in rights.groups(requirement, vote.steps)
        if vote.right.owner in snapshot.members.get(name, ())
    )
    return tuple(names)


def counted(approval: Approval, result: VoteResult, decision: Decision | None) -> Approval:
    """Return an approval with its judged votes and, if they decide it, the decision.

    Args:
        approval: The approval that was judged.
        result: The judgement.
        decision: The voter's decision, without the notes of others; None to take a vote back.
    """
    ballot, claim = result.ballot, approval.claim
    if result.vote is not None:  # a vote ends the claim
        claim = claim.ended(result.vote.at_ms)
    changed = approval.changed(votes=ballot.votes, stage=ballot.stage, claim=claim)
    if result.decision is None or decision is None:
        return changed
    reason = _joint_reason(ballot, result.decision)
    return changed.changed(status=decision.status, decision=decision.changed(reason=reason))


def _joint_reason(ballot: Ballot, aim: tuple[str, str]) -> str:
    """Join the notes of all deciding votes, in order."""
    is_stop = aim[0] in STOPS
    made = [vote for vote in ballot.votes if (vote.is_stop if is_stop else vote.aim == aim)]
    return "; ".join(dict.fromkeys(vote.note for vote in made if vote.note))


async def _nothing() -> str:
    return ""
