"""Middleware that changes what the model reads, by plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pydantic_ai.messages import ModelMessage, ModelRequest

from agents.middlewares.base import Middleware

MessagesFunction: TypeAlias = Callable[
    [list[ModelMessage]], list[ModelMessage] | Awaitable[list[ModelMessage]]
]
ResultsFunction: TypeAlias = Callable[[ModelRequest], ModelRequest | Awaitable[ModelRequest]]


class HistoryProcessor(Middleware):
    """Changes what the model reads, by plain functions.

    Args:
        before_model: Receives all messages before each model call and returns those that the model
            reads. The stored messages stay unchanged.
        after_tools: Receives the results of a batch of calls and returns those that the model
            reads. The change is stored.
    """

    def __init__(
        self,
        before_model: MessagesFunction | None = None,
        *,
        after_tools: ResultsFunction | None = None,
    ) -> None:
        self._before_model = before_model
        self._after_tools = after_tools

    async def before_model(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """See `Middleware.before_model`."""
        if self._before_model is None:
            return messages
        found = self._before_model(messages)
        return await found if inspect.isawaitable(found) else found

    async def after_tools(self, message: ModelRequest) -> ModelRequest:
        """See `Middleware.after_tools`."""
        if self._after_tools is None:
            return message
        found = self._after_tools(message)
        return await found if inspect.isawaitable(found) else found
