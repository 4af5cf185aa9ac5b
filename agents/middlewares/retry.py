"""Middlewares that retry failed models and tools, or ask another model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from agents.backoff import Backoff, Only, RetryPlan, Sleep, doubling
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import (
    AgentConfigError,
    AgentError,
    ModelError,
    ModelRefusedError,
    ToolError,
)
from agents.core.scope import Beginning, Scope, current_scope
from agents.core.tools import Tool, ToolWrapper
from agents.middlewares.base import CallNext, Middleware, ModelCall
from agents.middlewares.tools import ToolChoice, recording
from agents.models import model_fault

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
        only: Errors to retry: their types, or a predicate.

    Raises:
        AgentConfigError: `attempts` is less than 1.
    """

    def __init__(
        self,
        attempts: int = 3,
        *,
        backoff: Backoff = doubling,
        sleep: Sleep = asyncio.sleep,
        only: Only = is_temporary,
    ) -> None:
        _check_attempts("ModelRetryMiddleware", attempts)
        self._plan = RetryPlan(attempts=attempts, only=only, backoff=backoff, sleep=sleep)

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """See `Middleware.around_model`."""
        failures = 0
        while True:
            try:
                return await call_next(call)
            except Exception as error:
                failures += 1
                is_lost = call.has_shown or not is_of_model(error)
                if is_lost or not self._plan.wants(error, failures):
                    raise
                logger.warning("the model failed (%s): asked again", type(error).__name__)
            await self._plan.wait(failures)


class ModelFallbackMiddleware(Middleware):
    """Asks other models, one after the other, when the agent's model fails.

    Interrupts, cancellation and programming errors are raised at once. So is a failure after people
    have seen a part of the answer. To try each model several times, put `ModelRetryMiddleware`
    behind (inside) this middleware.

    Args:
        models: In the order in which they are asked.

    Raises:
        AgentConfigError: No model is given.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise AgentConfigError("ModelFallbackMiddleware needs a model to fall back on")
        self._models = tuple(models)

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        """See `Middleware.around_model`."""
        for model in self._models:
            try:
                return await call_next(call)
            except Exception as error:
                if call.has_shown or not is_of_model(error):
                    raise
                logger.warning("a model failed (%s): another is asked", type(error).__name__)
            call = replace(call, model=model)
        return await call_next(call)


class ToolRetryMiddleware(Middleware):
    """Retries a tool when it raises an error, and raises the last error.

    Interrupts and cancellation are raised at once, and so is an error after a part of the result
    was streamed. An approved call that has started is retried only if its tool is idempotent;
    people are then not asked again.

    Put this middleware behind (inside) `ToolErrorHandler`, which turns errors into results.

    Args:
        attempts: Maximum number of runs of a call.
        tools: Names of tools, or `*`. Their calls must be safe to repeat.
        only: Errors to retry: their types, or a predicate.
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
        only: Only = Exception,
        backoff: Backoff = doubling,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        _check_attempts("ToolRetryMiddleware", attempts)
        self._plan = RetryPlan(attempts=attempts, only=only, backoff=backoff, sleep=sleep)
        self._tools = ToolChoice("ToolRetryMiddleware", tools)

    def check_tools(self, names: Iterable[str]) -> None:
        """See `Middleware.check_tools`."""
        self._tools.check(names)

    def wrap_tool(self, tool: Tool) -> Tool:
        """See `Middleware.wrap_tool`."""
        return _RetriedTool(tool, self._plan) if self._tools.has(tool.definition) else tool


@dataclass(frozen=True, slots=True)
class _RetriedTool(ToolWrapper):
    plan: RetryPlan

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        scope = current_scope("ToolRetryMiddleware")
        begin = Beginning.of(scope)
        pieces: list[str] = []
        failures = 0
        while True:
            try:
                with recording(scope, pieces):
                    return await self.tool.call(arguments)
            except Exception as error:
                failures += 1
                wants = not pieces and self.plan.wants(error, failures)
                if not wants or not self._may_repeat(error, scope):
                    raise
                logger.warning("a tool failed (%s): run again", type(error).__name__)
            await self.plan.wait(failures)
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
