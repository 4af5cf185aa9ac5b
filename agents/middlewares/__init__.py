"""Middlewares: hooks around the model and the tools of a chat model agent."""

from agents.core.tools import ToolWrapper
from agents.middlewares.base import CallNext, HistoryProcessor, Middleware, ModelCall, TextStream
from agents.middlewares.gates import (
    GateMiddleware,
    PolicyMiddleware,
    approval_middleware,
    policy_middleware,
    review_middleware,
)
from agents.middlewares.retry import (
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    ToolRetryMiddleware,
)
from agents.middlewares.tools import ToolErrorHandler

__all__ = [
    "CallNext",
    "GateMiddleware",
    "HistoryProcessor",
    "Middleware",
    "ModelCall",
    "ModelFallbackMiddleware",
    "ModelRetryMiddleware",
    "PolicyMiddleware",
    "TextStream",
    "ToolErrorHandler",
    "ToolRetryMiddleware",
    "ToolWrapper",
    "approval_middleware",
    "policy_middleware",
    "review_middleware",
]
