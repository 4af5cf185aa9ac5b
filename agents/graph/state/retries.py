"""Retry policies of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agents.backoff import Backoff, Sleep, doubling
from agents.core.errors import AgentError, ModelError, ModelRefusedError, ToolError
from agents.graph.errors import GraphBuildError, NodeFailedError, NodeRefusedError

Only: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""The errors to retry: their types, or a predicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
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

    attempts: int = 3
    only: Only = Exception
    backoff: Backoff = doubling
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise GraphBuildError(f"a retry policy needs at least 1 attempt, got {self.attempts}")

    def wants(self, error: Exception, failures: int) -> bool:
        """Whether to retry a node after an error.

        Args:
            error: The error.
            failures: Number of failures, this one included.
        """
        if failures >= self.attempts or isinstance(error, NodeRefusedError | NodeFailedError):
            return False
        if isinstance(error, ModelRefusedError):
            return False
        if isinstance(error, AgentError) and not isinstance(error, ToolError | ModelError):
            return False
        if isinstance(self.only, type | tuple):
            return isinstance(error, self.only)
        return self.only(error)

    async def wait(self, failures: int) -> None:
        """Wait before the next attempt."""
        await self.sleep(self.backoff(failures).total_seconds())
