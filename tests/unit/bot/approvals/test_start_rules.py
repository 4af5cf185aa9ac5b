"""What lets a call start, as pure rules of the stored approval."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agents.core.errors import CheckpointConflictError
from bot.approvals.execution import (
    StartFacts,
    can_take_back,
    held,
    not_begun,
    parked,
    started,
    taken_back,
    why_not,
    with_outcome,
    with_rejection,
)
from bot.config.durations import format_duration
from bot.records.approval import (
    Approval,
    CastVote,
    Decision,
    Execution,
    ExecutionMode,
    ExecutionState,
    ParkedCall,
    Status,
)
from bot.words import say
from tests.contract.builders import an_approval

AT_MS = 1_000_000
WAITS = ParkedCall(freeze="f1", by="UBEN", why="The bank is down.", since_ms=AT_MS)


def decision(status: Status = Status.APPROVED, at_ms: int = AT_MS) -> Decision:
    return Decision(status=status, by="UADA", at_ms=at_ms, digest="d")


def approved(**execution: object) -> Approval:
    changes = {"status": Status.APPROVED, "decision": decision(), "open": False}
    return an_approval(**changes, execution=Execution().changed(**execution))


def facts(after_ms: int = 1, **more: object) -> StartFacts:
    return StartFacts(now_ms=AT_MS + after_ms, runner="one", **more)  # type: ignore[arg-type]


def test_a_decision_is_as_old_as_itself_unless_a_later_one_is_needed() -> None:
    approval = approved()
    longest_ms = approval.terms.max_age_s * 1_000
    assert why_not(approval, facts(longest_ms)) == ""
    time = format_duration(timedelta(milliseconds=longest_ms))
    assert why_not(approval, facts(longest_ms + 1)) == say("reason.too_late", time=time)
    assert why_not(approval, facts(-longest_ms - 1)) != ""  # a wrong clock
    assert why_not(approval, facts(longest_ms + 1, decided_ms=AT_MS + 1)) == ""
    assert why_not(approval, facts(longest_ms + 1, repeats=True)) == ""


@pytest.mark.parametrize(
    ("state", "permits", "reason"),
    [
        (ExecutionState.READY, {}, ""),
        (ExecutionState.STARTED, {}, ""),
        (ExecutionState.ENDED, {}, "reason.has_run"),
        (ExecutionState.ENDED, {"only_checks": True}, "reason.has_run"),
        (ExecutionState.FAILED, {}, "reason.has_run"),
        (ExecutionState.FAILED, {"only_checks": True}, ""),
        (ExecutionState.LAPSED, {}, "reason.lapsed"),
        (ExecutionState.DOUBT, {}, "reason.in_doubt"),
        (ExecutionState.DOUBT, {"is_again": True}, ""),
        (ExecutionState.DOUBT, {"repeats": True}, ""),
        (ExecutionState.READY, {"is_gone": True}, "reason.gone"),
    ],
)
def test_a_state_lets_a_call_start_or_says_why_not(
    state: ExecutionState, permits: dict[str, Any], reason: str
) -> None:
    approval = approved(state=state)
    assert why_not(approval, facts(1, **permits)) == (say(reason) if reason else "")
    assert (started(approval, facts(1, **permits)) is None) == bool(reason)


def test_what_nobody_decided_does_not_start() -> None:
    rejected = an_approval(status=Status.REJECTED, decision=decision(Status.REJECTED))
    for approval in (an_approval(), an_approval(status=Status.APPROVED), rejected):
        assert why_not(approval, facts()) == say("reason.no_record")


def test_a_start_is_of_its_process_and_no_stop_cancels_it() -> None:
    approval = started(approved(), facts())
    assert approval is not None
    assert approval.execution == Execution(
        state=ExecutionState.STARTED, runner="one", started_ms=AT_MS + 1, at_ms=AT_MS + 1
    )
    begun = approval.execution
    put_back = not_begun(approval, begun=begun, before=Execution())
    assert put_back is not None
    assert put_back.execution == Execution()
    for other in (begun.changed(runner="two"), begun.changed(started_ms=AT_MS)):
        assert not_begun(approval, begun=other, before=Execution()) is None
        assert parked(approval, WAITS, begun=other, now_ms=AT_MS) is None


def test_a_start_that_led_to_nothing_leaves_the_doubt_that_was_before() -> None:
    doubt = approved(state=ExecutionState.DOUBT, number=7, fence=1, text="?")
    again = started(doubt, facts(is_again=True, fence=2))
    assert again is not None
    put_back = not_begun(again, begun=again.execution, before=doubt.execution)
    assert put_back is not None
    assert put_back.execution == doubt.execution.changed(fence=2)


@pytest.mark.parametrize("state", ExecutionState)
def test_a_process_with_an_older_lease_writes_nothing(state: ExecutionState) -> None:
    newer = approved(state=state, fence=2)
    writes: tuple[Callable[[], object], ...] = (
        lambda: started(newer, facts(fence=1)),
        lambda: held(newer, WAITS, fence=1, now_ms=5),
        lambda: with_outcome(newer, ExecutionState.LAPSED, fence=1, now_ms=5),
    )
    for write in writes:
        with pytest.raises(CheckpointConflictError):
            write()
    begun = started(approved(), facts(fence=1))
    assert begun is not None
    assert parked(newer, WAITS, begun=begun.execution, now_ms=5) is None
    assert not_begun(newer, begun=begun.execution, before=Execution()) is None


def test_a_start_keeps_how_often_the_call_may_run() -> None:
    often = {"mode": ExecutionMode.IDEMPOTENT, "is_cancellable": True}
    approval = started(approved(), facts(1, **often))
    assert approval is not None
    assert approval.execution.mode is ExecutionMode.IDEMPOTENT
    assert approval.execution.is_cancellable
    waiting = parked(approval, WAITS, begun=approval.execution, now_ms=AT_MS)
    assert waiting is not None
    assert waiting.execution == Execution(mode=ExecutionMode.IDEMPOTENT, parked=WAITS)


def test_a_parked_call_can_be_taken_back_until_it_starts() -> None:
    begun = started(approved(), facts())
    assert begun is not None
    assert parked(approved(), WAITS, begun=begun.execution, now_ms=AT_MS) is None
    waiting = parked(begun, WAITS, begun=begun.execution, now_ms=AT_MS + 2)
    assert waiting is not None
    assert (waiting.execution.state, waiting.due_ms) == (ExecutionState.READY, AT_MS + 2)
    assert can_take_back(waiting)
    revision, no = waiting.revision, decision(Status.WITHDRAWN)
    ended = taken_back(waiting, no, revision=revision)
    assert ended is not None
    assert (ended.status, ended.open, ended.due_ms) == (Status.WITHDRAWN, True, AT_MS)
    assert ended.votes == ()
    assert ended.decision is not None
    assert ended.decision.at_ms == AT_MS + 1  # the audit tells decisions apart by their times
    assert taken_back(waiting, no, revision=revision + 1) is None
    assert taken_back(begun, no, revision=begun.revision) is None
    doubt = approved(parked=WAITS.changed(may_have_run=True))
    assert not can_take_back(doubt)


def test_a_rejection_of_a_parked_call_replaces_the_vote_of_its_person() -> None:
    yes = CastVote(by="UADA", choice="approve", at_ms=1, digest="d")
    waiting = approved(parked=WAITS).changed(votes=(yes,))
    no = CastVote(by="UADA", choice="reject", at_ms=2, digest="d")
    with_no = with_rejection(waiting, no, revision=waiting.revision, now_ms=3)
    assert with_no is not None
    assert (with_no.votes, with_no.due_ms) == ((no,), 3)
    ended = taken_back(waiting, decision(Status.REJECTED), revision=waiting.revision, vote=no)
    assert ended is not None
    assert ended.votes == (no,)
    kept = taken_back(waiting, decision(Status.WITHDRAWN), revision=waiting.revision)
    assert kept is not None
    assert kept.votes == (yes,)
    assert with_rejection(waiting, no, revision=waiting.revision + 1, now_ms=3) is None
    assert with_rejection(approved(), no, revision=0, now_ms=3) is None


def test_news_of_a_call_only_goes_forward() -> None:
    running = approved(state=ExecutionState.STARTED, number=7, is_cancellable=True)
    running = running.changed(open=True)
    ended = with_outcome(
        running, ExecutionState.ENDED, fence=0, now_ms=5, text="Paid.", closes=True
    )
    assert ended is not None
    assert ended.execution == running.execution.changed(
        state=ExecutionState.ENDED, text="Paid.", at_ms=5
    )
    assert (ended.open, ended.due_ms) == (False, 5)
    going_on = with_outcome(
        running, ExecutionState.FAILED, fence=0, now_ms=5, number=8, is_cancellable=False
    )
    assert going_on is not None
    assert (going_on.execution.text, going_on.execution.number, going_on.open) == ("", 8, True)
    assert not going_on.execution.is_cancellable
    closed = with_outcome(running.changed(open=False), ExecutionState.FAILED, fence=0, now_ms=5)
    assert closed is not None
    assert not closed.open
    assert with_outcome(running, ExecutionState.STARTED, fence=0, now_ms=5) is None
    assert with_outcome(ended, ExecutionState.DOUBT, fence=0, now_ms=6) is None
    doubt = with_outcome(running, ExecutionState.DOUBT, fence=0, now_ms=5)
    assert doubt is not None
    assert with_outcome(doubt, ExecutionState.STARTED, fence=0, now_ms=6) is None
    assert with_outcome(doubt, ExecutionState.ENDED, fence=0, now_ms=6) is not None
    assert with_outcome(an_approval(), ExecutionState.ENDED, fence=0, now_ms=6) is None
