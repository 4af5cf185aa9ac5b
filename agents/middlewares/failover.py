"""Middleware that asks other models when the agent's model fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model

from agents.core.errors import AgentConfigError
from agents.middlewares.base import CallNext, Middleware, ModelCall
from agents.middlewares.retry import is_of_model

logger = logging.getLogger(__name__)


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
