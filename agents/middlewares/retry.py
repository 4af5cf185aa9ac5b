"""Middlewares that retry failed models and tools, but no approval requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelResponse

from agents.backoff import Backoff, Sleep, doubling
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import (
    AgentConfigError,
    AgentError,
    ModelError,
    ModelRefusedError,
    ToolError,
)
from agents.core.scope import Scope, current_scope
from agents.core.tools import Tool, ToolWrapper
from agents.middlewares.base import CallNext, Middleware, ModelCall
from agents.middlewares.tools import ToolChoice, recording
from agents.models import model_fault
from agents.runs.beginning import Beginning

logger = logging.getLogger(__name__)

_BUSY = {408, 409, 425, 429}
"""HTTP statuses of 400 to 499 after which a retry can succeed."""


def is_temporary(error: Exception) -> bool:
    """Whether a retry of the model can succeed, or the cause is unknown."""
    if model_fault(error) is not None:
        return False
    if isinstance(error, ModelHTTPError):
        return error.status_code >= 500 or error.status_code in _BUSY
    return is_of_model(error)


def is_of_model(error: Exception) -> bool:
    """Whether the model failed, not the program that calls it."""
    if isinstance(error, AgentError):
        return isinstance(error, ModelError) and not isinstance(error, ModelRefusedError)
    return not isinstance(error, UserError)


class ModelRetryMiddleware(Middleware):
    """Retries the model when it fails.

    Interrupts, cancellation and programming errors are raised at once. So is a failure after people
    have seen a part of the answer: they would read its beginning twice.

    Args:
        attempts: Maximum number of calls.
        backoff: Delay between attempts.
        sleep: Waits for a delay.
        only: Predicate of errors to retry.

    Raises:
        AgentConfigError: `attempts` is less than 1.
    """

    def __init__(
        self,
        attempts: int = 3,
        *,
        backoff: Backoff = doubling,
        sleep: Sleep = asyncio.sleep,
        only: Callable[[Exception], bool] = is_temporary,
    ) -> None:
        _check_attempts("ModelRetryMiddleware", attempts)
        self._attempts = attempts
        self._backoff = backoff
        self._sleep = sleep
        self._only = only

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """See `Middleware.around_model`."""
        failures = 0
        while True:
            try:
                return await call_next(call)
            except Exception as error:
                failures += 1
                is_over = failures >= self._attempts or call.has_shown
                if is_over or not is_of_model(error) or not self._only(error):
                    raise
                logger.warning("the model failed (%s): asked again", type(error).__name__)
            await self._sleep(self._backoff(failures).total_seconds())


class ToolRetryMiddleware(Middleware):
    """Retries a tool when it raises an error, and raises the last error.

    Interrupts and cancellation are raised at once, and so is an error after a part of the result
    was streamed. An approved call that has started is retried only if its tool is idempotent;
    people are then not asked again.

    Put this middleware behind (inside) `ToolErrorHandler`, which turns errors into results.

    Args:
        attempts: Maximum number of runs of a call.
        tools: Names of tools, or `*`. Their calls must be safe to repeat.
        only: Predicate of errors to retry.
        backoff: Delay between attempts.
        sleep: Waits for a delay.

    Raises:
        AgentConfigError: `attempts` is less than 1, or no tool is named.
    """

    def __init__(
        self,
        attempts: int = 3,
        *,
        tools: str | Iterable[str] = "*",
        only: type[Exception] | tuple[type[Exception], ...] = Exception,
        backoff: Backoff = doubling,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        _check_attempts("ToolRetryMiddleware", attempts)
        self._plan = _Plan(attempts, only, backoff, sleep)
        self._tools = ToolChoice("ToolRetryMiddleware", tools)

    def check_tools(self, names: Iterable[str]) -> None:
        """See `Middleware.check_tools`."""
        self._tools.check(names)

    def wrap_tool(self, tool: Tool) -> Tool:
        """See `Middleware.wrap_tool`."""
        return _RetriedTool(tool, self._plan) if self._tools.has(tool.definition) else tool


@dataclass(frozen=True, slots=True)
class _Plan:
    attempts: int
    only: type[Exception] | tuple[type[Exception], ...]
    backoff: Backoff
    sleep: Sleep


@dataclass(frozen=True, slots=True)
class _RetriedTool(ToolWrapper):
    plan: _Plan

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        scope = current_scope("ToolRetryMiddleware")
        begin = Beginning.of(scope)
        pieces: list[str] = []
        failures = 0
        while True:
            try:
                with recording(scope, pieces):
                    return await self.tool.call(arguments)
            except self.plan.only as error:
                failures += 1
                is_over = failures >= self.plan.attempts or bool(pieces)
                if is_over or not self._may_repeat(error, scope):
                    raise
                logger.warning("a tool failed (%s): run again", type(error).__name__)
            await self.plan.sleep(self.plan.backoff(failures).total_seconds())
            begin.restore(scope.run)

    def _may_repeat(self, error: Exception, scope: Scope) -> bool:
        if isinstance(error, AgentError) and not isinstance(error, ToolError):
            return False
        if scope.watch.raised:  # the tool caught an interrupt: the runtime refuses the call
            return False
        has_started = scope.run.journal.has_started(str(scope.address))
        return self.tool.definition.idempotent or not has_started


def _check_attempts(owner: str, attempts: int) -> None:
    if attempts < 1:
        raise AgentConfigError(f"{owner} needs at least 1 attempt, got {attempts}")
