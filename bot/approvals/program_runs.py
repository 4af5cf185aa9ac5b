"""The run of an approved call by a program: its rules, as pure functions of the stored approval.

A program starts its call with one write, and tells the result. If it tells none until its
deadline, nobody knows what happened, and people are asked.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

from bot.approvals.changes import shown
from bot.approvals.execution import StartFacts, has_yes, why_not
from bot.records.approval import (
    Approval,
    Execution,
    ExecutionMode,
    ExecutionState,
    Kind,
    ProgramRun,
    Status,
)
from bot.records.origin import ProgramCall

_RUNNING = frozenset({ExecutionState.STARTED, ExecutionState.DOUBT})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A start that a program wants.

    Attributes:
        attempt: SHA-256 of the attempt, in hexadecimal.
        token: SHA-256 of the token of the start, in hexadecimal.
        run_timeout_ms: Longest time to the result.
    """

    attempt: str
    token: str
    run_timeout_ms: int


def is_begun(approval: Approval) -> bool:
    """Whether the call was started, and may not be started again by another attempt."""
    execution = approval.execution
    if execution.state is ExecutionState.READY or execution.state is ExecutionState.LAPSED:
        return False
    repeats = execution.mode is ExecutionMode.IDEMPOTENT and execution.state in _RUNNING
    return not repeats


def is_replayed(approval: Approval, attempt: str) -> bool:
    """Whether this attempt has started the call, so that it gets the same answer."""
    execution = approval.execution
    return execution.state is ExecutionState.STARTED and execution.program.attempt == attempt


def begun(approval: Approval, facts: StartFacts, new: NewRun) -> Approval | None:
    """Return the approval with the start of its call, before the program acts."""
    if approval.kind is not Kind.APPROVAL or is_begun(approval) or why_not(approval, facts):
        return None
    before = approval.execution
    run = ProgramRun(
        generation=before.program.generation + 1,
        attempt=new.attempt,
        token=new.token,
        deadline_ms=facts.now_ms + new.run_timeout_ms,
        rerun_ms=before.program.rerun_ms,
        rerun_by=before.program.rerun_by,
    )
    execution = Execution(
        mode=before.mode,
        state=ExecutionState.STARTED,
        runner=facts.runner,
        started_ms=facts.now_ms,
        at_ms=facts.now_ms,
        program=run,
    )
    return approval.changed(execution=execution)


def numbered(approval: Approval, number: int, *, attempt: str, now_ms: int) -> Approval | None:
    """Return the approval whose start has its number, so that its card shows it."""
    execution = approval.execution
    if not is_replayed(approval, attempt) or execution.number:
        return None
    return shown(approval, execution=execution.changed(number=number), now_ms=now_ms)


def not_run(approval: Approval, *, attempt: str) -> Approval | None:
    """Return the approval without a start that got no number, because a freeze covers it.

    A later start of an idempotent call stays: the call may have run before.
    """
    execution, before = approval.execution, approval.execution.program
    may_have_run = execution.mode is ExecutionMode.IDEMPOTENT and before.generation > 1
    if not is_replayed(approval, attempt) or execution.number or may_have_run:
        return None
    run = ProgramRun(
        generation=before.generation - 1, rerun_ms=before.rerun_ms, rerun_by=before.rerun_by
    )
    return approval.changed(execution=Execution(mode=execution.mode, program=run))


def is_of_another_start(approval: Approval, proof: str | None) -> bool:
    """Whether a result may tell of an earlier start than that of the call that runs.

    Without proof, a result counts if the call was started once. So a program that has lost its
    token in a crash can tell what its log says.

    Args:
        approval: The approval.
        proof: SHA-256 of the token that came with the result, in hexadecimal; None without one.
    """
    run = approval.execution.program
    if approval.execution.state not in _RUNNING:
        return False
    is_proven = proof is not None and hmac.compare_digest(run.token, proof)
    needs_proof = run.generation > 1 or bool(proof is not None and run.token)
    return needs_proof and not is_proven


def reported(
    approval: Approval, state: ExecutionState, *, text: str, now_ms: int, is_not_run: bool = False
) -> Approval | None:
    """Return the approval with the result that its program tells; None after another end."""
    execution = approval.execution
    if execution.state not in _RUNNING:
        return None
    run = execution.program.changed(is_not_run=is_not_run, token="", deadline_ms=0)
    ended = execution.changed(state=state, at_ms=now_ms, text=text, program=run)
    return shown(approval, execution=ended, open=False, now_ms=now_ms)


def prolonged(
    approval: Approval, *, text: str, now_ms: int, run_timeout_ms: int
) -> Approval | None:
    """Return the approval whose program still runs, with more time and the newest text."""
    execution = approval.execution
    if execution.state is not ExecutionState.STARTED:
        return None
    run = execution.program.changed(deadline_ms=now_ms + run_timeout_ms)
    changed = execution.changed(program=run, text=text or execution.text)
    return shown(approval, execution=changed, now_ms=now_ms)


def doubt_id(approval: Approval) -> str:
    """Return the id of the question about the newest start of a call."""
    text = f"{approval.approval_id}:doubt:{approval.execution.program.generation}"
    return f"apr_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def in_doubt(approval: Approval, *, now_ms: int, asked: str, generation: int) -> Approval | None:
    """Return the approval whose outcome nobody knows, with the question to people about it.

    None if another start runs by now. The token stays: its program may still prove a result.
    """
    execution = approval.execution
    is_same = execution.program.generation == generation
    if execution.state is not ExecutionState.STARTED or not is_same:
        return None
    run = execution.program.changed(deadline_ms=0, asked=asked)
    doubt = execution.changed(state=ExecutionState.DOUBT, at_ms=now_ms, program=run)
    return shown(approval, execution=doubt, now_ms=now_ms)


def settled(approval: Approval, doubt: Approval, *, text: str, now_ms: int) -> Approval | None:
    """Return the approval whose outcome people have told; None if it is known already.

    Args:
        approval: The approval of the call.
        doubt: The decided question about its outcome.
        text: What people say about it.
        now_ms: The time now.
    """
    execution = approval.execution
    is_asked = execution.program.asked == doubt.approval_id
    if execution.state is ExecutionState.STARTED:  # who asked died before it marked the doubt
        is_later = execution.started_ms <= doubt.created_ms
        is_asked = is_later and doubt_id(approval) == doubt.approval_id
    if execution.state not in _RUNNING or not is_asked:
        return None
    choice = doubt.answered("choice")
    if choice == "again" and doubt.status is Status.APPROVED and approval.decision is not None:
        run = ProgramRun(
            generation=execution.program.generation,
            rerun_ms=doubt.decision.at_ms if doubt.decision is not None else now_ms,
            rerun_by=doubt.approval_id,
        )
        ready = Execution(mode=execution.mode, program=run)
        return shown(approval, execution=ready, now_ms=now_ms)
    state = ExecutionState.ENDED if choice == "ran" else ExecutionState.FAILED
    ended = execution.changed(state=state, at_ms=now_ms, text=text)
    return shown(approval, execution=ended, now_ms=now_ms)


def delivered(approval: Approval) -> Approval | None:
    """Return the approval whose result the program has handed over."""
    run = approval.execution.program
    if run.is_delivered:
        return None
    execution = approval.execution.changed(program=run.changed(is_delivered=True))
    return approval.changed(execution=execution)


def consumed(approval: Approval, token: str) -> Approval | None:
    """Return the approval whose token a third service has used; None if it was used before."""
    run, state = approval.execution.program, approval.execution.state
    if state is not ExecutionState.STARTED or run.token != token or run.is_consumed:
        return None
    execution = approval.execution.changed(program=run.changed(is_consumed=True))
    return approval.changed(execution=execution)


def due_ms_of_run(approval: Approval) -> int | None:
    """Return when a program's call ends by itself: its result, or its start, is too late.

    None for a call of an agent, and for one that waits for nothing.
    """
    execution, decision = approval.execution, approval.decision
    if not isinstance(approval.asker, ProgramCall) or approval.kind is not Kind.APPROVAL:
        return None
    if execution.state is ExecutionState.STARTED:
        return execution.program.deadline_ms or None
    waits = execution.state is ExecutionState.READY and execution.mode is not ExecutionMode.NONE
    if not waits or decision is None or not has_yes(approval):
        return None
    return decided_ms(approval) + approval.terms.max_age_s * 1_000 + 1


def decided_ms(approval: Approval) -> int:
    """Return when people last let a program's call run; 0 before they decide."""
    decision = approval.decision
    return max(decision.at_ms, approval.execution.program.rerun_ms) if decision is not None else 0


def lapsed(approval: Approval, *, text: str, now_ms: int) -> Approval | None:
    """Return the approval whose call was not started in time."""
    due_ms = due_ms_of_run(approval)
    if approval.execution.state is not ExecutionState.READY or due_ms is None or now_ms < due_ms:
        return None
    execution = approval.execution.changed(state=ExecutionState.LAPSED, at_ms=now_ms, text=text)
    return shown(approval, execution=execution, now_ms=now_ms)


def cut_off(approval: Approval, *, text: str, now_ms: int) -> Approval | None:
    """Return a program's approved call after a restore: its start since the backup is unknown.

    A call that was not started starts no more. The token of a started one is void, and people are
    asked about its outcome at once.

    Args:
        approval: The approval.
        text: The reason why the call does not start.
        now_ms: The time of the restore.
    """
    execution = approval.execution
    if not isinstance(approval.asker, ProgramCall) or not has_yes(approval):
        return None
    if execution.state is ExecutionState.STARTED:
        run = execution.program.changed(token="", deadline_ms=now_ms)
        return shown(approval, execution=execution.changed(program=run), now_ms=now_ms)
    if execution.state is not ExecutionState.READY:
        return None
    ended = execution.changed(state=ExecutionState.LAPSED, at_ms=now_ms, text=text)
    return shown(approval, execution=ended, now_ms=now_ms)
