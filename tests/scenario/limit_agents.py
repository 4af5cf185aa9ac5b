"""An agent of a file of agents that looks as often as a message says, for scenarios of limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say


@tool(idempotent=True, tags=["read-only"])
def look(number: int) -> str:
    """Look once."""
    return f"saw {number}"


@tool(gate="approval", title="Copy {table}", timeout=timedelta(milliseconds=50))
async def copy(table: str) -> str:
    """Copy a table, which never ends."""
    await asyncio.Event().wait()
    return table


def _answer(messages: list[ModelMessage]) -> Iterable[ModelResponsePart]:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    places = [
        place
        for place, message in enumerate(requests)
        if any(isinstance(part, UserPromptPart) for part in message.parts)
    ]
    turn = [part for message in requests[places[-1] :] for part in message.parts]
    words = next(str(part.content) for part in turn if isinstance(part, UserPromptPart)).split()
    if "copy" in words:
        returns = [part for part in turn if isinstance(part, ToolReturnPart)]
        return [say(str(returns[-1].content)) if returns else call("copy", {"table": words[-1]})]
    seen = sum(isinstance(part, ToolReturnPart) for part in turn)
    if seen < int(words[-1]):
        return [call("look", {"number": seen + 1})]
    return [say(f"Looked {seen} times.")]


def watcher(_: Model) -> Agent:
    """Look as often as the last word of a message says."""
    model = AnsweringModel(_answer, name="watching")
    return ChatModelAgent(name="watcher", model=model, tools=[look, copy], max_iterations=50)
