"""Execution of an approved call, as stored with its approval."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from bot.approvals.model import Approval, Kind, Status

_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})


class RunState(StrEnum):
    """State of an execution. Stored: version 1, must stay readable."""

    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    STOPPED = "stopped"  # another condition prevented the start
    DOUBT = "doubt"  # started, outcome unknown


ENDED = frozenset({RunState.RAN, RunState.FAILED, RunState.STOPPED})
"""Final states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """State and result of one execution."""

    state: RunState
    at_ms: int
    text: str = ""

    def to_text(self) -> str:
        """Serialize the execution."""
        return json.dumps({"state": str(self.state), "text": self.text, "at_ms": self.at_ms})


def run_of(approval: Approval) -> Run | None:
    """Read the execution of an approval; None if there is none."""
    if approval.status not in _LETTING_RUN or not approval.run_json:
        return None
    try:
        found = json.loads(approval.run_json)
        state, text, at_ms = RunState(found["state"]), found["text"], found["at_ms"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(text, str) or not isinstance(at_ms, int):
        return None
    return Run(state=state, text=text, at_ms=at_ms)


def lets_run(approval: Approval) -> bool:
    """Whether the approval runs something: a call, a step, or a retry."""
    match approval.kind:
        case Kind.APPROVAL:
            return approval.status is Status.APPROVED
        case Kind.QUESTION:  # the missing arguments of a call
            return approval.status is Status.ANSWERED and bool(approval.tool.strip())
        case Kind.DOUBT:
            return approval.status is Status.APPROVED


def has_ended(approval: Approval) -> bool:
    """Whether the outcome of the call is known and final."""
    run = run_of(approval)
    return run is not None and run.state in ENDED


def is_settled_doubt(approval: Approval) -> bool:
    """Whether the approval was a doubt that was settled without running the call."""
    if approval.kind is not Kind.DOUBT or approval.status is Status.PENDING:
        return False
    text = approval.decision.answer_json if approval.decision else ""
    return not text or json.loads(text).get("choice") != "again"
