"""I5, 11.7: every order of starts, deaths, freezes and liftings of one approved call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.approvals import execution
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
    for name, new in _journal(replace(world, fence=runner.fence), runner):
        yield name, replace(new, fence=world.fence)


def forgotten(approval: Approval, state: ExecutionState, **more: Any) -> Approval | None:
    """Take a call in doubt for one that is ready."""
    new = with_outcome(approval, state, **more)
    is_doubt = new is not None and state is ExecutionState.DOUBT
    return approval if is_doubt else new


def unchecked(*_: object) -> None:
    """Let a process write whose lease has ended."""


_journal = starting._journal
YOUNG = replace(WORLD, ages=False)
FAULTS: dict[str, tuple[Any, str, Any, StartingWorld]] = {
    "a call got its number under a confirmed freeze": (rules, "covering", blind, WORLD),
    "a call ran twice": (starting, "_journal", from_anybody, replace(YOUNG, freezes=0)),
    "a call was lost": (parked, "may_go_on", never, WORLD),
    "a call that began has lapsed": (execution, "_check_lease", unchecked, WORLD),
    "a call that began can be taken back": (execution, "_check_lease", unchecked, YOUNG),
}
"""By invariant: a function, the faulty one that is put in its place, and the first world."""


@pytest.mark.parametrize("invariant", FAULTS)
def test_each_invariant_falls_by_a_planted_fault(
    invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, faulty, world = FAULTS[invariant]
    monkeypatch.setattr(where, name, faulty)
    with pytest.raises(Violation) as caught:
        explore(world, moves, most=MOST)
    assert caught.value.wrong == invariant
