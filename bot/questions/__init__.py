"""Kinds of questions, one file a kind: from the interrupt, its card, its form, and its answer.

To import anything here makes all our kinds known.
"""

from bot.questions import call, choice, doubt, feedback, fields, human, step, texts, unknown

__all__ = ["call", "choice", "doubt", "feedback", "fields", "human", "step", "texts", "unknown"]
