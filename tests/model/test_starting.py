"""I5, 11.7: every order of starts, deaths, freezes and liftings of one approved call."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.execution import with_outcome
from bot.freezes import rules
from bot.freezes.rules import CallScope
from bot.records.approval import Approval, ExecutionState
from bot.records.switch import Freeze, SwitchRecord
from bot.threads import parked
from tests.model import starting
from tests.model.explore import Violation, explore
from tests.model.starting import APPROVED, Runner, StartingWorld, moves

WORLD = StartingWorld(approval=APPROVED)
MOST = 300_000


def test_no_order_breaks_an_invariant() -> None:
    assert explore(WORLD, moves, most=MOST) > 1_000


def blind(_: SwitchRecord, __: CallScope, **___: Any) -> Freeze | None:
    """Cover nothing by any freeze."""
    return None


def never(_: str, __: object) -> bool:
    """Wake no parked thread."""
    return False


def from_anybody(world: StartingWorld, runner: Runner) -> Any:
    """Take the entry of a process whose lease has ended."""
    return _journal(world.__class__(**{**vars(world), "fence": runner.fence}), runner)


def forgotten(approval: Approval, state: ExecutionState, **more: Any) -> Approval | None:
    """Take a call in doubt for one that is ready."""
    new = with_outcome(approval, state, **more)
    is_doubt = new is not None and state is ExecutionState.DOUBT
    return approval if is_doubt else new


_journal = starting._journal
FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a call got its number under a confirmed freeze": (rules, "covering", blind),
    "a call ran twice": (starting, "_journal", from_anybody),
    "a call was lost": (parked, "may_go_on", never),
}
"""By invariant: a function, and the faulty one that is put in its place."""


@pytest.mark.parametrize("invariant", FAULTS)
def test_each_invariant_falls_by_a_planted_fault(
    invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, faulty = FAULTS[invariant]
    monkeypatch.setattr(where, name, faulty)
    with pytest.raises(Violation) as caught:
        explore(WORLD, moves, most=MOST)
    assert caught.value.wrong == invariant
