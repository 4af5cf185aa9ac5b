"""Every order of clicks, edits, delegations, escalation and expiry on one small approval."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals import changes
from bot.approvals.changes import edited
from bot.approvals.editing import with_call
from bot.approvals.votes import counted
from bot.policy import refusals, tally
from bot.policy.eligibility import Eligibility, PeopleSnapshot
from bot.policy.refusals import VoteResult
from bot.policy.tally import Ballot
from bot.records.approval import REJECT, Approval, Decision, Status
from tests.model import voting
from tests.model.explore import Violation, explore
from tests.model.voting import (
    ADA,
    BEN,
    CLEO,
    DAN,
    LIA,
    ROSA,
    TAKE_BACK,
    Click,
    VotingWorld,
    asked,
    the_terms,
)

MOST = 300_000


def clicks(*people: str, on_edited: bool | None = None) -> frozenset[Click]:
    """Return clicks of these people on the first call, on the edited call, or (None) on both."""
    calls = (False, True) if on_edited is None else (on_edited,)
    return frozenset(Click(by, on_edited=is_edited) for by in people for is_edited in calls)


WORLDS = {
    "an edit": VotingWorld(
        approval=asked(the_terms()),
        clicks=clicks(ADA) | clicks(BEN, on_edited=False) | clicks(CLEO, on_edited=True),
        editor=CLEO,
    ),
    "an edit while the last vote is judged": VotingWorld(
        approval=asked(the_terms(1, exclude=("requesters", "editors"))),
        clicks=clicks(ADA),
        editor=CLEO,
    ),
    "an edit by somebody who then cannot approve": VotingWorld(
        approval=asked(the_terms(exclude=("requesters", "editors"))),
        clicks=clicks(ADA, CLEO),
        editor=CLEO,
    ),
    "a rejection, and a vote that is taken back": VotingWorld(
        approval=asked(the_terms()),
        clicks=clicks(ADA, BEN, on_edited=False) | {Click(ADA, TAKE_BACK), Click(CLEO, REJECT)},
        withdraws=True,
    ),
    "a delegation, and somebody who leaves": VotingWorld(
        approval=asked(the_terms()),
        clicks=clicks(ADA, BEN, DAN, on_edited=False),
        delegates=ADA,
        leaver=BEN,
    ),
    "an escalation": VotingWorld(
        approval=asked(the_terms()),
        clicks=clicks(ADA, DAN, LIA, ROSA, on_edited=False),
        withdraws=True,
    ),
    "two stages": VotingWorld(
        approval=asked(the_terms(1, 1)),
        clicks=clicks(ADA, BEN, on_edited=False) | {Click(ADA, TAKE_BACK)},
        leaver=ADA,
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_no_order_of_moves_breaks_an_invariant(name: str) -> None:
    assert explore(WORLDS[name], voting.moves, most=MOST) > 100


def blindly(approval: Approval, judged: Approval, **_: Any) -> Approval | None:
    """Write what was judged over what others wrote meanwhile."""
    if approval.status is not Status.PENDING:
        return None
    names = ("votes", "status", "decision", "stage")
    made = {name: getattr(judged, name) for name in names}
    return approval.changed(**made, shown_revision=approval.shown_revision + 1)


def over_votes(
    approval: Approval, judged: Approval, *, unedited: Approval, now_ms: int
) -> Approval | None:
    """Write an edit over votes that came since it was judged."""
    return edited(
        approval.changed(revision=unedited.revision), judged, unedited=unedited, now_ms=now_ms
    )


def decided_again(approval: Approval, decision: Decision, **_: Any) -> Approval | None:
    """Decide what is decided already."""
    is_in_time = decision.status is Status.EXPIRED or decision.at_ms < approval.expires_ms
    return approval.changed(status=decision.status, decision=decision) if is_in_time else None


def with_votes_kept(approval: Approval, *rest: Any, **more: Any) -> Approval:
    """Edit a call, and keep the votes for what it was."""
    return with_call(approval, *rest, **more).changed(votes=approval.votes)


def by_the_first_vote(ballot: Ballot, _: PeopleSnapshot) -> tuple[str, str] | None:
    """Decide by one vote."""
    return next((vote.aim for vote in ballot.votes), None)


def without_deciding(approval: Approval, result: VoteResult, _: Decision | None) -> Approval:
    """Count votes that decide, and leave the approval pending."""
    return counted(approval, result, None)


def however_late(approval: Approval, judged: Approval, _: int) -> bool:
    """Look at no deadline."""
    return approval.revision == judged.revision and approval.status is Status.PENDING


Plant = tuple[object, str, object]
FAULTS: dict[str, tuple[str, list[Plant]]] = {
    "a counted vote is gone": ("an edit", [(changes, "voted", blindly)]),
    "a vote is void, and nobody knows": ("an edit", [(changes, "edited", over_votes)]),
    "a decision was changed": ("an escalation", [(changes, "decided", decided_again)]),
    "it was decided after its deadline": (
        "an edit",
        [(changes, "_is_as_judged", however_late)],
    ),
    "what was decided is not what the card shows": (
        "an edit while the last vote is judged",
        [(changes, "voted", blindly)],
    ),
    "a vote counts for another call": (
        "an edit by somebody who then cannot approve",
        [(voting, "with_call", with_votes_kept)],
    ),
    "enough votes decide nothing": ("two stages", [(voting, "counted", without_deciding)]),
    "too few people approved": ("an edit", [(Ballot, "decision", by_the_first_vote)]),
    "one person counts twice": (
        "a delegation, and somebody who leaves",
        [(refusals._Voter, "_against", lambda *_: None), (tally, "_alone", list)],
    ),
    "somebody who is excluded approved": (
        "an escalation",
        [(Eligibility, "exclusion", lambda *_: None)],
    ),
    "somebody approved before the escalation": (
        "an escalation",
        [(Eligibility, "groups", lambda *_: ("sre", "leads"))],
    ),
    "somebody approved without a right": (
        "a delegation, and somebody who leaves",
        [(Eligibility, "fits", lambda *_: True)],
    ),
}
"""By invariant: a world, and functions of the product with what is put in their place."""


@pytest.mark.parametrize("invariant", FAULTS)
def test_each_invariant_falls_by_a_planted_fault(
    invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, plants = FAULTS[invariant]
    for where, function, faulty in plants:
        monkeypatch.setattr(where, function, faulty)
    with pytest.raises(Violation) as caught:
        explore(WORLDS[name], voting.moves, most=MOST)
    assert caught.value.wrong == invariant
