"""Retry policies of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from agents.backoff import RetryPlan
from agents.core.errors import AgentError, ModelError, ModelRefusedError, ToolError
from agents.graph.errors import GraphBuildError, NodeFailedError, NodeRefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy(RetryPlan):
    """Retries a node when it raises an error, and raises the last error.

    Interrupts, refusals, and programming errors such as an invalid update are never retried.
    Answers of the node and results of `task` are kept, and parallel nodes are not affected. A node
    that people approved at a breakpoint is also retried: with the policy, its author says that this
    is safe. The policy of a sub-graph does not retry its approved or answered nodes.

    Attributes:
        attempts: Maximum number of runs without an answer in between.
        only: Errors to retry.
        backoff: Delay after the first, second, … failure.
        sleep: Waits for a number of seconds.

    Raises:
        GraphBuildError: `attempts` is less than 1.
    """

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise GraphBuildError(f"a retry policy needs at least 1 attempt, got {self.attempts}")

    def wants(self, error: Exception, failures: int) -> bool:
        """See `RetryPlan.wants`. Refusals and programming errors are never retried."""
        if isinstance(error, NodeRefusedError | NodeFailedError | ModelRefusedError):
            return False
        if isinstance(error, AgentError) and not isinstance(error, ToolError | ModelError):
            return False
        # Not `super()`: a dataclass with slots is another class than the one that is written here.
        return RetryPlan.wants(self, error, failures)
