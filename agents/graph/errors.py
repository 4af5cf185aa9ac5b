"""Errors of graphs.

AgentError
  AgentConfigError
    GraphBuildError              the graph is built wrongly: nothing ran
    OutsideRunError
      OutsideNodeError           a function for nodes was called elsewhere
    NoCheckpointStoreError
      NoCheckpointerError        a graph without a store, or a call without a thread id
  CheckpointError
    CheckpointBusyError
      ThreadBusyError            another run uses the thread, or its process died
  ResumeError
    AgentChangedError
      GraphMismatchError         the thread belongs to a graph with another name
      StateChangedError          the stored state does not fit its schema
    UnknownInterruptError
      AlreadyAnsweredError       the question was answered before
    AmbiguousTargetError
      SeveralPendingError        one value, but several questions
    QuestionChangedError         a node asks another question than the answered one
  ToolError
    NodeRefusedError             people refused a node, or its question expired
    NodeFailedError              an approved node has failed before and is not run again
  StateUpdateError               an unknown key, a wrong type, two writers
  GotoError                      the target is not a node
  StepLimitError
    GraphStepLimitError          too many steps in one call
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    AgentError,
    AmbiguousTargetError,
    CheckpointBusyError,
    NoCheckpointStoreError,
    OutsideRunError,
    ResumeError,
    StepLimitError,
    ToolError,
    UnknownInterruptError,
)
from agents.core.observers import ToolOutcome


class GraphBuildError(AgentConfigError):
    """The graph is built wrongly. The error is raised before any node runs."""


class OutsideNodeError(OutsideRunError):
    """A function for nodes was called outside of a node."""

    def __init__(self, what: str) -> None:
        AgentError.__init__(
            self,
            f"{what} works only directly in a node of a graph; in a tool, an agent or an address "
            "segment, ask with interrupt() or stateful_interrupt()",
        )
        self.what = what


class NoCheckpointerError(NoCheckpointStoreError):
    """The graph has no store, so a thread cannot be read or resumed."""

    def __init__(self, graph: str, what: str) -> None:
        AgentError.__init__(
            self,
            f"{what} of graph {graph!r} needs a store and a thread id: "
            "`compile(checkpoint_store=…)`, then `thread_id=…`; nothing ran",
        )
        self.graph = graph


class StateUpdateError(AgentError):
    """An update does not fit the graph's state. Nothing was written."""

    def __init__(self, who: str, fault: str) -> None:
        super().__init__(f"the update of {who} was not written: {fault}")
        self.who = who
        self.fault = fault


class GotoError(AgentError):
    """The target of `goto` is not a node. Nothing was written."""

    def __init__(self, who: str, target: object, allowed: Sequence[str]) -> None:
        known = ", ".join(allowed) or "none"
        super().__init__(f"{who} leads to {target!r}; it may lead to: {known}")
        self.who = who
        self.target = target
        self.allowed = tuple(allowed)


class AlreadyAnsweredError(UnknownInterruptError):
    """The question was answered before. The first answer counts."""

    reason = "already_answered"

    def __init__(self, target: str, pending: Sequence[str] = ()) -> None:
        super().__init__(target, pending)
        summary = f"interrupt {target!r} is already answered, the first answer counts"
        self.args = (f"{summary}; pending are: {', '.join(pending) or 'none'}",)


class SeveralPendingError(AmbiguousTargetError):
    """One answer was given, but several questions are pending."""

    def __init__(self, pending: Sequence[str]) -> None:
        super().__init__("resume", pending)
        summary = f"{len(self.pending)} questions are pending ({', '.join(self.pending)})"
        self.args = (f"{summary}, so one value says too little; use `resume_map={{id: value}}`",)


class QuestionChangedError(ResumeError):
    """A node asks another question than the one that people answered.

    The answer was not used.

    Attributes:
        node: Name of the node.
        index: Number of the interrupt in its node, from 0.
        target: Interrupt whose answer was not used; empty if other work was stored.
    """

    def __init__(
        self, node: str, index: int, detail: str, *, target: str = "", is_asked_anew: bool = False
    ) -> None:
        rest = (
            "the old question is withdrawn, the answer to it was not used, and people are asked "
            "anew. A node that asks the same each time avoids that"
            if is_asked_anew
            else "a node must ask the same questions, in the same order, each time it runs; "
            "nothing was written, and it still waits"
        )
        super().__init__(f"question {index + 1} of node {node!r} {detail}; {rest}")
        self.node = node
        self.index = index
        self.target = target


class NodeRefusedError(ToolError):
    """People refused a breakpoint, or the interrupt expired. The node did not run.

    Attributes:
        graph: Name of the ended graph.
        node: Name of the node.
        why: People's answer.
        outcome: rejected, expired, cancelled, or failed if people did not know whether the node had
            run.
        message: A sentence for people in a conversation.
    """

    def __init__(
        self,
        graph: str,
        node: str,
        why: str,
        *,
        outcome: ToolOutcome = ToolOutcome.REJECTED,
        message: str = "",
    ) -> None:
        super().__init__(f"graph {graph!r} ended at node {node!r}: {why}; nothing more ran")
        self.graph = graph
        self.node = node
        self.why = why
        self.outcome = outcome
        self.message = message or f"Stopped at “{node}”: {why}."


class NodeFailedError(ToolError):
    """A node that people approved has failed before. It does not run again."""

    def __init__(self, node: str, error: str) -> None:
        super().__init__(
            f"node {node!r} failed after people had let it run: {error}; it does not run again by "
            "itself. Begin anew, or give it a retry policy"
        )
        self.node = node
        self.error = error


class ThreadBusyError(CheckpointBusyError):
    """Another run uses this thread, or its process died."""

    def __init__(self, thread_id: str) -> None:
        super().__init__(thread_id)
        message = (
            f"thread {thread_id!r} is being worked on; wait for it. If its process is gone, or "
            f"gave up on the call, `recover({thread_id!r})` goes on; given a CancelToken that is "
            "cancelled, it stops before the next step. Then the thread can be changed, ended with "
            "`cancel`, or given an input again"
        )
        self.args = (message,)


class GraphMismatchError(AgentChangedError):
    """The thread belongs to a graph with another name."""

    def __init__(self, thread_id: str, was: str, now: str) -> None:
        super().__init__(f"thread {thread_id!r}", f"the graph {was!r}", f"the graph {now!r}")
        message = (
            f"thread {thread_id!r} is of the graph {was!r}, and this is the graph {now!r}; start "
            "the version that began it, or end it with `cancel` and begin another thread"
        )
        self.args = (message,)


class StateChangedError(AgentChangedError):
    """The stored state does not fit its schema. Nothing ran."""

    def __init__(self, address: str, fault: str) -> None:
        super().__init__(address, "another schema of its state", "this one")
        message = (
            f"the stored state of {address} does not fit its schema: {fault}; start the version "
            "that wrote it, write the key anew with `update_state`, or cancel"
        )
        self.args = (message,)


class GraphStepLimitError(StepLimitError):
    """The graph took more steps than one call allows. The next call continues."""

    def __init__(self, graph: str, limit: int) -> None:
        AgentError.__init__(
            self,
            f"graph {graph!r} took {limit} steps in one call and is not at its end; give it more, "
            "with `invoke(step_limit=…)` or `compile(step_limit=…)`, or end the loop",
        )
        self.agent_name = graph
        self.limit = limit
