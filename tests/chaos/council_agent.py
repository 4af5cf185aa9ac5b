"""The agent of the chaos test with a policy: its calls need two people, stages, or a grant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from agents import ChatModelAgent, tool
from agents.models import AnsweringModel, call, say
from tests.chaos.agent import effect, pay, refund, restart

KINDS = 4


@tool(gate="approval", title="Fetch {ref}, {amount} times")
async def fetch(ref: str, amount: int) -> str:
    """Fetch something: once approved, a grant may stand for the next ones.

    Args:
        ref: What.
        amount: How often.
    """
    return effect("fetch", ref, amount)


def answer(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    """What the model says next: it depends on the conversation alone."""
    prompts = [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    asked = [match for text in prompts if (match := re.search(r"job (\d+)", text))]
    results = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if not asked:
        return [say("There is no job in that.")]
    number = int(asked[-1][1])
    if not results:
        return [TextPart(f"I will do job {number}."), *_first(number)]
    if results[0].tool_name == "fetch" and len(results) == 1:
        return [_call("fetch", number, part) for part in (2, 3, 4)]
    outcomes = " | ".join(part.model_response_str() for part in results)
    return [say(f"job {number} done: {outcomes}")]


def _first(number: int) -> list[ModelResponsePart]:
    match number % KINDS:
        case 0:
            return [_call("pay", number, 1)]
        case 1:
            return [_call("refund", number, 1)]
        case 2:
            return [_call("restart", number, 1), _call("pay", number, 2)]
        case _:
            return [_call("fetch", number, 1)]


def _call(name: str, number: int, part: int) -> ModelResponsePart:
    # One amount for all that is fetched: a grant lets only the reference vary.
    amount = 7 if name == "fetch" else 10 * part
    arguments = {"ref": f"job-{number}-{part}", "amount": amount}
    return call(name, arguments, id=f"c{number}-{part}")


def build(_: Model) -> ChatModelAgent:
    """Make the agent."""
    return ChatModelAgent(
        name="council",
        model=AnsweringModel(answer, name="council"),
        tools=[pay, refund, restart, fetch],
    )
