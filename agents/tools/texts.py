"""What the model is told when a call did not simply run: other words for other facts."""

from __future__ import annotations

import json

from agents.codec import Json
from agents.tools.infos import Cancelled, Expired


def edited_text(arguments: dict[str, Json], result: str) -> str:
    """A person changed the arguments, and it ran."""
    told = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    return f"A person changed the arguments to {told}. The tool ran with these. Result: {result}"


def rejected_text(tool_name: str, reason: str | None) -> str:
    """A person said no."""
    told = f"Reason: {reason.strip()}" if reason and reason.strip() else "No reason was given."
    return (
        f"Rejected by a person; the call to {tool_name!r} did not run. {told}\n"
        "Do not try the same call again or work around it."
    )


def expired_text(tool_name: str, answer: Expired) -> str:
    """Nobody said anything."""
    waited = f" ({answer.waited})" if answer.waited else ""
    return (
        f"Nobody answered in time{waited}; the call to {tool_name!r} did not run. "
        "This is not a rejection."
    )


def cancelled_text(tool_name: str, answer: Cancelled) -> str:
    """The request was called off."""
    told = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    return (
        f"The request was cancelled; the call to {tool_name!r} did not run. "
        f"This is not a rejection.{told}"
    )


def unanswered_text(answer: Expired | Cancelled) -> str:
    """Questions to which no answer came."""
    if isinstance(answer, Expired):
        waited = f" ({answer.waited})" if answer.waited else ""
        return f"Nobody answered in time{waited}; the questions are open. This is not a rejection."
    told = f" Reason: {answer.reason.strip()}" if answer.reason.strip() else ""
    return f"The request was cancelled; the questions are open. This is not a rejection.{told}"
