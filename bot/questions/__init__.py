"""Kinds of questions, one file per kind: the interrupt, its card, its form, and its answer.

Importing this package, or any of its modules, registers all built-in kinds.
"""

from bot.questions import (
    call,
    choice,
    doubt,
    feedback,
    fields,
    human,
    limit,
    step,
    texts,
    unknown,
)

__all__ = [
    "call",
    "choice",
    "doubt",
    "feedback",
    "fields",
    "human",
    "limit",
    "step",
    "texts",
    "unknown",
]
