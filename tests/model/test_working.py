"""Every order of work, deaths and clicks on one approval, until nobody looks at it any more."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals import changes, execution
from bot.approvals.changes import decided, released
from bot.approvals.execution import with_outcome
from bot.records.approval import (
    Approval,
    ApprovalMessage,
    Execution,
    ExecutionState,
    Status,
)
from tests.model.explore import Violation, explore
from tests.model.working import START, WorkingWorld, moves

WORLD = WorkingWorld(approval=START)
MOST = 300_000


def test_no_order_of_work_and_deaths_breaks_an_invariant() -> None:
    assert explore(WORLD, moves, most=MOST) > 1_000


def never_due(approval: Approval, *args: Any, **more: Any) -> Approval | None:
    """Decide, and leave it to chance when somebody looks at the approval."""
    new = decided(approval, *args, **more)
    return new and new.changed(due_ms=approval.due_ms)


def released_blindly(approval: Approval, *, revision: int, **more: Any) -> Approval:
    """Give an approval back as done, whatever happened meanwhile."""
    return released(approval, revision=approval.shown_revision, **more)


def without_deadline(approval: Approval, *, due_ms: int | None, **more: Any) -> Approval:
    """Give a pending approval back, and never look at it again."""
    return released(approval, due_ms=None, **more)


def without_intent(approval: Approval, _: ApprovalMessage) -> Approval:
    """Begin a post, and put nothing on record."""
    return approval


def over_what_is_known(approval: Approval, state: ExecutionState, **more: Any) -> Approval | None:
    """Tell what became of a call, whatever was told of it."""
    return with_outcome(approval.changed(execution=Execution()), state, **more)


def rejected_too(approval: Approval) -> bool:
    """Let what people have rejected run."""
    return approval.status in {Status.APPROVED, Status.REJECTED}


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "the card was posted twice": (Approval, "with_message", without_intent),
    "the card shows an old state": (changes, "released", released_blindly),
    "nobody waits for the deadline": (changes, "released", without_deadline),
    "the end of a call was changed": (execution, "with_outcome", over_what_is_known),
    "a call ran that nobody approved": (execution, "has_yes", rejected_too),
    "the thread was not told the decision": (changes, "decided", never_due),
}
"""By invariant: a function of the product, and the faulty one that is put in its place."""


@pytest.mark.parametrize("invariant", FAULTS)
def test_each_invariant_falls_by_a_planted_fault(
    invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, faulty = FAULTS[invariant]
    monkeypatch.setattr(where, name, faulty)
    with pytest.raises(Violation) as caught:
        explore(WORLD, moves, most=MOST)
    assert caught.value.wrong == invariant
