"""A small world of people who decide about one call: votes, edits, rights that change, time.

Ada, Ben and Cleo may approve, and two of them must. Rosa asked for the call: she is in their group
and cannot approve. Dan decides only for whoever delegates to him, Lia only after the escalation.

A click is two moves: the approval is read and judged, and later what was judged is written.
Anything may happen between them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import NamedTuple

from bot.approvals import changes
from bot.approvals.editing import with_call
from bot.approvals.votes import counted
from bot.policy.eligibility import Delegation, PeopleSnapshot
from bot.policy.progress import ballot_of
from bot.policy.refusals import VoteAttempt, VoteResult, judge_take_back, judge_vote
from bot.ports.threads import CheckedCall
from bot.questions.form import edited_digest
from bot.questions.record import Rules
from bot.records.approval import APPROVE, REJECT, Approval, CastVote, Decision, Status
from bot.records.terms import Escalation, Group, Requirement, Stage, Terms
from tests.contract.builders import an_approval

ADA, BEN, CLEO, DAN, LIA, ROSA = "UADA", "UBEN", "UCLEO", "UDAN", "ULIA", "UROSA"
PEOPLE = (ADA, BEN, CLEO, DAN, LIA, ROSA)
START_MS, ESCALATES_MS, EXPIRES_MS = 1_000, 5_000, 9_000
STATUS = {APPROVE: Status.APPROVED, REJECT: Status.REJECTED}
TAKE_BACK = "take back"
RULES = Rules(
    approvers=("channel",),
    self_approval=False,
    remind_after=timedelta(seconds=4),
    expire_after=timedelta(seconds=8),
)
ASKED: dict[str, object] = {"service": "payments"}
EDITED = CheckedCall(arguments={"service": "billing"})


class Click(NamedTuple):
    """A click that somebody makes once, on a card that shows the first or the edited call."""

    by: str
    choice: str = APPROVE
    on_edited: bool = False


class Edit(NamedTuple):
    """An edit between its two moves: the approval as read, and what the edit makes of it."""

    by: str
    read: Approval
    made: Approval


class Judged(NamedTuple):
    """A click between its two moves: the approval as read, and what the click makes of it."""

    click: Click
    read: Approval
    made: Approval
    vote: CastVote | None


def the_terms(*counts: int, exclude: tuple[str, ...] = ("requesters",)) -> Terms:
    """Return terms with a stage for each count: so many people must approve; else two in one."""
    names = tuple(f"sre{number}" for number, _ in enumerate(counts or (2,)))
    stages = tuple(
        Stage(name=name, approve=(Requirement(name=name, groups=("sre",), count=count),))
        for name, count in zip(names, counts or (2,), strict=True)
    )
    return Terms(
        rules=("r",),
        stages=stages,
        groups={"sre": Group(users=(ADA,)), "leads": Group(users=(LIA,))},
        exclude=exclude,
        edit="yes",
        escalate=(Escalation(after_s=4, add=("leads",), requirements=names),),
    )


def asked(terms: Terms) -> Approval:
    """Return the approval as people were asked."""
    approval = an_approval(
        requester_id=ROSA,
        terms=terms,
        expires_ms=EXPIRES_MS,
        due_ms=START_MS,
    )
    return approval.changed(digest=edited_digest(approval, ASKED))


@dataclass(frozen=True, kw_only=True)
class VotingWorld:
    """The stored approval, the people, and the moves that are left.

    Attributes:
        approval: As it is stored.
        now_ms: The time.
        clicks: Clicks that are still to come.
        judged: Clicks that were read and not yet written.
        editor: Who may edit once; empty when nobody will.
        edit: The edit that was judged and not yet written.
        delegates: Who may delegate to Dan; empty when nobody will, or somebody has.
        leaver: Who may leave the group; empty when nobody will, or somebody has.
        withdraws: Whether Rosa may withdraw.
        delegations: Those in effect.
        members: The group, now.
        acknowledged: Votes that people were told were counted, and that nothing has ended since.
        broken: The invariant that a move broke; empty for none.
    """

    approval: Approval
    now_ms: int = START_MS
    clicks: frozenset[Click] = frozenset()
    judged: tuple[Judged, ...] = ()
    editor: str = ""
    edit: Edit | None = None
    delegates: str = ""
    leaver: str = ""
    withdraws: bool = False
    delegations: tuple[Delegation, ...] = ()
    members: frozenset[str] = frozenset({ADA, BEN, CLEO, ROSA})
    acknowledged: frozenset[tuple[str, str]] = frozenset()
    broken: str = field(default="")

    def key(self) -> Hashable:
        """Return what tells this world from others."""
        judged = frozenset(
            (entry.click, body_of(entry.read), body_of(entry.made)) for entry in self.judged
        )
        edit = None if self.edit is None else (body_of(self.edit.read), body_of(self.edit.made))
        return (
            body_of(self.approval), self.now_ms, self.clicks, judged, self.editor, edit,
            self.delegates, self.leaver, self.withdraws, self.delegations, self.members,
            self.acknowledged, self.broken,
        )  # fmt: skip

    def wrong(self) -> str:
        """Return which invariant does not hold; empty when all hold."""
        if self.broken:
            return self.broken
        approval = self.approval
        ballot = ballot_of(approval)
        made = {(vote.by, vote.digest) for vote in ballot.votes}
        if not self.acknowledged <= made and approval.status is Status.PENDING:
            return "a counted vote is gone"
        if any(vote.digest != approval.digest for vote in ballot.votes):
            return "a vote counts for another call"
        if approval.status is Status.PENDING and ballot.decision(self.people) is not None:
            return "enough votes decide nothing"
        return ""

    @property
    def people(self) -> PeopleSnapshot:
        """The people as a look-up finds them now."""
        return snapshot(self.members, self.delegations, self.approval.edits.editors)


@cache
def snapshot(
    members: frozenset[str], delegations: tuple[Delegation, ...], editors: tuple[str, ...]
) -> PeopleSnapshot:
    """Return what a look-up finds."""
    return PeopleSnapshot(
        people=dict.fromkeys(PEOPLE),
        members={"sre": members, "leads": frozenset({LIA})},
        requesters=frozenset({ROSA}),
        editors=frozenset(editors),
        delegations=delegations,
    )


_bodies: dict[int, tuple[Approval, str]] = {}
"""Texts of approvals by their identity; worlds share approvals, and writing takes long."""


def body_of(approval: Approval) -> str:
    """Return an approval as text, without what says nothing about who decided what."""
    known = _bodies.get(id(approval))
    if known is not None:
        return known[1]
    edits = approval.edits.changed(last=None)
    body = approval.changed(edits=edits, revision=0).model_dump_json(exclude_defaults=True)
    _bodies[id(approval)] = approval, body  # keeps the approval, so its id is not used again
    return body


def moves(world: VotingWorld) -> Iterator[tuple[str, VotingWorld]]:
    """Return all that can happen next."""
    for click in world.clicks:
        yield f"{_words(click)}: read", _read(world, click)
    for judged in world.judged:
        yield f"{_words(judged.click)}: written", _write(world, judged)
    if world.editor:
        yield f"{world.editor} edits: judged", _judge_edit(world, world.editor)
    if world.edit is not None:
        yield f"{world.edit.by} edits: written", _write_edit(world, world.edit)
    if world.delegates:
        given = Delegation(owner=world.delegates, delegate=DAN, until_ms=2 * EXPIRES_MS)
        yield (
            f"{world.delegates} delegates to {DAN}",
            replace(world, delegates="", delegations=(given,)),
        )
    if world.leaver:
        yield (
            f"{world.leaver} leaves the group",
            replace(world, leaver="", members=world.members - {world.leaver}),
        )
    if world.withdraws:
        decision = Decision(
            status=Status.WITHDRAWN, by=ROSA, at_ms=world.now_ms, digest=world.approval.digest
        )
        new = changes.decided(world.approval, decision, digest=world.approval.digest)
        yield f"{ROSA} withdraws", stored(replace(world, withdraws=False), new)
    yield from _time(world)


def _time(world: VotingWorld) -> Iterator[tuple[str, VotingWorld]]:
    approval = world.approval
    if world.now_ms < ESCALATES_MS:
        yield "time passes to the escalation", replace(world, now_ms=ESCALATES_MS)
    elif world.now_ms < EXPIRES_MS:
        yield "time passes to the deadline", replace(world, now_ms=EXPIRES_MS)
    if world.now_ms >= EXPIRES_MS:
        decision = Decision(status=Status.EXPIRED, by="", at_ms=world.now_ms)
        yield (
            "it expires",
            stored(world, changes.decided(approval, decision, digest=approval.digest)),
        )
    if (
        world.now_ms >= ESCALATES_MS
        and not approval.escalation.steps
        and approval.status is Status.PENDING
    ):
        judged = approval.changed(escalation=approval.escalation.changed(steps=1))
        new = changes.escalated(approval, judged, now_ms=world.now_ms, redraws=True)
        yield "it escalates", stored(world, new)


def _read(world: VotingWorld, click: Click) -> VotingWorld:
    """Judge a click by the approval as it is. What is refused changes nothing."""
    world = replace(world, clicks=world.clicks - {click})
    approval = world.approval
    shown = edited_digest(approval, EDITED.arguments if click.on_edited else ASKED)
    attempt = VoteAttempt(
        by=click.by,
        choice=REJECT if click.choice == REJECT else APPROVE,
        at_ms=world.now_ms,
        digest=shown,
        is_open=approval.status is Status.PENDING and world.now_ms < approval.expires_ms,
    )
    judge = judge_take_back if click.choice == TAKE_BACK else judge_vote
    result = judge(ballot_of(approval), attempt, world.people)
    if result.refusal is not None and not result.gone:
        return world
    made = _made(world, approval, result, click, shown)
    return replace(world, judged=(*world.judged, Judged(click, approval, made, result.vote)))


def _made(
    world: VotingWorld, approval: Approval, result: VoteResult, click: Click, shown: str
) -> Approval:
    decision = None
    if click.choice != TAKE_BACK:
        decision = Decision(
            status=STATUS[click.choice], by=click.by, at_ms=world.now_ms, digest=shown
        )
    return counted(approval, result, decision)


def _write(world: VotingWorld, judged: Judged) -> VotingWorld:
    """Write what was judged; a click that others came before is read again."""
    click, read, made, vote = judged
    world = replace(world, judged=tuple(other for other in world.judged if other is not judged))
    new = changes.voted(world.approval, made, now_ms=world.now_ms)
    if new is None:
        is_open = world.approval.status is Status.PENDING
        again = is_open and world.now_ms < EXPIRES_MS and world.approval.digest == read.digest
        return replace(world, clicks=world.clicks | {click}) if again else world
    world = stored(world, new)
    kept = {(cast.by, cast.digest) for cast in ballot_of(new).votes}
    counts = frozenset() if vote is None or click.choice == TAKE_BACK else {(vote.by, vote.digest)}
    # What a judgement removes is removed for a reason, which `judge_vote` has tests of its own for.
    gone = {(cast.by, cast.digest) for cast in ballot_of(read).votes} - kept
    return replace(world, acknowledged=(world.acknowledged - gone) | counts)


def _judge_edit(world: VotingWorld, by: str) -> VotingWorld:
    """The editor changes the arguments; the edit counts as a vote if the terms permit it."""
    approval = world.approval
    world = replace(world, editor="")
    if approval.status is not Status.PENDING or world.now_ms >= EXPIRES_MS:
        return world
    made = with_call(approval, EDITED, None, RULES, by=by, now_ms=world.now_ms)
    attempt = VoteAttempt(by=by, choice=APPROVE, at_ms=world.now_ms, digest=made.digest)
    result = judge_vote(
        ballot_of(made), attempt, snapshot(world.members, world.delegations, made.edits.editors)
    )
    if result.refusal is None:
        decision = Decision(status=Status.APPROVED, by=by, at_ms=world.now_ms, digest=made.digest)
        made = counted(made, result, decision)
    return replace(world, edit=Edit(by, approval, made))


def _write_edit(world: VotingWorld, edit: Edit) -> VotingWorld:
    """Write an edit; one that others came before is judged again."""
    approval = world.approval
    world = replace(world, edit=None)
    new = changes.edited(approval, edit.made, unedited=edit.read, now_ms=world.now_ms)
    if new is None:
        return replace(world, editor=edit.by)
    votes = {(vote.by, vote.digest) for vote in ballot_of(new).votes}
    voters = {by for by, _ in world.acknowledged}
    world = replace(stored(world, new), acknowledged=frozenset(votes))
    is_noted = voters <= {vote.by for vote in edit.read.votes} and voters <= set(new.edits.voided)
    return world if is_noted else replace(world, broken="a vote is void, and nobody knows")


def stored(world: VotingWorld, new: Approval | None) -> VotingWorld:
    """Store a change, and look what must not have happened by it."""
    old = world.approval
    if new is None:
        return world
    new = new.changed(revision=old.revision + 1)
    return replace(world, approval=new, broken=_broken(world, old, new))


def _broken(world: VotingWorld, old: Approval, new: Approval) -> str:
    """Return the invariant that a change breaks; empty when it breaks none."""
    decision = new.decision
    if old.decision is not None:
        return "" if decision == old.decision else "a decision was changed"
    if decision is None or decision.status is Status.EXPIRED:
        return ""
    if world.now_ms >= EXPIRES_MS:
        return "it was decided after its deadline"
    if decision.digest != new.digest:
        return "what was decided is not what the card shows"
    return _of_approvers(world, new) if decision.status is Status.APPROVED else ""


def _of_approvers(world: VotingWorld, new: Approval) -> str:
    ballot = ballot_of(new)
    votes = [vote for vote in ballot.votes if vote.choice == APPROVE]
    persons = [person for vote in votes for person in vote.persons]
    needed = sum(slot.count for stage in ballot.terms.stages for slot in stage.approve)
    are_editors_excluded = "editors" in ballot.terms.exclude
    faults = {
        "one person counts twice": len(votes) != len({vote.right.owner for vote in votes})
        or any(vote.by in other.persons for vote in votes for other in votes if vote != other),
        "too few people approved": len(votes) < needed,
        "somebody who is excluded approved": ROSA in persons
        or (are_editors_excluded and new.edits.by in persons),
        "somebody approved before the escalation": LIA in persons and not new.escalation.steps,
        "somebody approved without a right": DAN in persons and not world.delegations,
    }
    return next((what for what, is_so in faults.items() if is_so), "")


def _words(click: Click) -> str:
    shows = "the edited call" if click.on_edited else "the call"
    return f"{click.by} clicks {click.choice} on {shows}"
