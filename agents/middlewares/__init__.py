"""Middlewares: what stands around the model and the tools of a chat model agent."""

from agents.middlewares.base import CallNext, Middleware, ModelCall, TextStream
from agents.middlewares.failover import FailoverModel
from agents.middlewares.gates import (
    GateMiddleware,
    PolicyMiddleware,
    approval_middleware,
    policy_middleware,
    review_middleware,
)
from agents.middlewares.history import HistoryModifier
from agents.middlewares.retry import RetryModel, RetryTools
from agents.middlewares.safe import SafeTools
from agents.middlewares.wrapper import ToolWrapper

__all__ = [
    "CallNext",
    "FailoverModel",
    "GateMiddleware",
    "HistoryModifier",
    "Middleware",
    "ModelCall",
    "PolicyMiddleware",
    "RetryModel",
    "RetryTools",
    "SafeTools",
    "TextStream",
    "ToolWrapper",
    "approval_middleware",
    "policy_middleware",
    "review_middleware",
]
