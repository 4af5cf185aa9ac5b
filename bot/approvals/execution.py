"""The run of a call that people let run, as its approval keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from storage.records import Approval, Kind, Status

_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})


class RunState(StrEnum):
    """The state of the call. Stored: version 1, must stay readable."""

    RUNNING = "running"
    RAN = "ran"
    FAILED = "failed"
    STOPPED = "stopped"  # something else kept it from starting
    DOUBT = "doubt"  # it started, and nobody knows whether it ran


ENDED = frozenset({RunState.RAN, RunState.FAILED, RunState.STOPPED})
"""The states that no later news changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run of a call: how far it came, and what came of it."""

    state: RunState
    at_ms: int
    text: str = ""

    def to_text(self) -> str:
        """Write it as a record keeps it."""
        return json.dumps({"state": str(self.state), "text": self.text, "at_ms": self.at_ms})


def run_of(approval: Approval) -> Run | None:
    """Read what became of the call; None when nothing is known, or nothing was let run."""
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
    """Whether people let something run with this: a call, a step, or a call once more."""
    match approval.kind:
        case Kind.APPROVAL:
            return approval.status is Status.APPROVED
        case Kind.QUESTION:  # what was missing of a call
            return approval.status is Status.ANSWERED and bool(approval.tool.strip())
        case Kind.DOUBT:
            return approval.status is Status.APPROVED


def has_ended(approval: Approval) -> bool:
    """Whether it is known what became of the call, for good."""
    run = run_of(approval)
    return run is not None and run.state in ENDED


def is_settled_doubt(approval: Approval) -> bool:
    """Whether it was a call in doubt, and nothing runs by what became of that."""
    if approval.kind is not Kind.DOUBT or approval.status is Status.PENDING:
        return False
    text = approval.decision.answer_json if approval.decision else ""
    return not text or json.loads(text).get("choice") != "again"
