"""Agents that pay, for scenarios about people; named by COUNTERSIGN_AGENT as in `agents`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents import Agent, ChatModelAgent, tool

RAN: list[tuple[str, int]] = []
"""What was paid; a test that looks at it clears it first."""
HEARD: list[str] = []
"""What the agent was told of its calls, in order."""
GATES: list[asyncio.Event] = []
"""A payment waits for these after it was made."""


@tool(title="Pay {amount} to {to}", gate="review")
async def pay(to: str, amount: int) -> str:
    """Pay.

    Args:
        to: Who gets it.
        amount: How much.
    """
    RAN.append((to, amount))
    for gate in GATES:
        await gate.wait()
    return f"paid {amount} to {to}"


def _returned(messages: list[ModelMessage]) -> list[str]:
    """Give what the calls of the newest turn came to, in order."""
    contents: list[str] = []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                contents = []
            elif isinstance(part, ToolReturnPart):
                contents.append(str(part.content))
    return contents


def _pays(*payments: tuple[str, int]) -> Callable[[Model], Agent]:
    """Make an agent that makes these payments, one after the other, in each turn."""

    async def answer(
        messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        HEARD[:] = _returned(messages)
        if len(HEARD) == len(payments):
            yield "All done."
            return
        to, amount = payments[len(HEARD)]
        arguments = json.dumps({"to": to, "amount": amount})
        call_id = f"c{len(messages)}"
        yield {0: DeltaToolCall(name="pay", json_args=arguments, tool_call_id=call_id)}

    return lambda _: ChatModelAgent(
        name="clerk", model=FunctionModel(stream_function=answer), tools=[pay]
    )


once = _pays(("acme", 10))
twice = _pays(("acme", 10), ("mallory", 9000))


def write_policy(folder: Path, text: str) -> str:
    """Write a policy file, and give its path."""
    path = folder / "policy.yaml"
    path.write_text(text)
    return str(path)
