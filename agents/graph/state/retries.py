"""Retry policies: whether a node that failed runs again, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from agents.backoff import Backoff, Sleep, doubling
from agents.core.errors import AgentError, ModelError, ModelRefusedError, ToolError
from agents.graph.errors import GraphBuildError, NodeFailedError, NodeRefusedError

Only: TypeAlias = type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]
"""The errors that are worth another attempt: their types, or a function that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Lets a node run again when it raises an error; the last error counts.

    A question to people is never retried, nor is their no, nor a mistake of the program, such as an
    update that does not fit. Answers that the node has stay with it, and so does what it did in
    `once`. Nodes beside it are not touched. A node that people let run at a breakpoint is retried
    as well: its author says with the policy that it bears that. The policy of a sub-graph says
    nothing of the nodes in it that people let run, or that got their answers.

    Attributes:
        attempts: How often the node runs at most, without an answer in between.
        only: Which errors are worth another attempt.
        backoff: How long to wait after the first, second, … failure.
        sleep: Waits for so many seconds.

    Raises:
        GraphBuildError: There are no attempts.
    """

    attempts: int = 3
    only: Only = Exception
    backoff: Backoff = doubling
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise GraphBuildError(f"a retry policy needs at least 1 attempt, got {self.attempts}")

    def wants(self, error: Exception, failures: int) -> bool:
        """Whether a node runs again after an error.

        Args:
            error: What it raised.
            failures: How often it has failed, with this time.
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
