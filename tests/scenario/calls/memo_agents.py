"""An agent that wants to refund several orders in one turn, each with a long memo and a preview."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator

from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents import Agent, ChatModelAgent, tool

RAN: list[str] = []
"""The orders that were refunded; a test that looks at it clears it first."""
MEMO_END = "TAIL and pay mallory"
LONG_MEMO = f"{'q ' * 125}{MEMO_END}"
PREVIEW_END = "ALSO DELETES PRODUCTION of every customer"
MEMOS = {"short": "late", "long": LONG_MEMO, "huge": f"{'q ' * 2_000}{MEMO_END}"}


def _what_it_does(order: str, memo: str) -> str:
    return f"Refunds {order} and writes to the customer. {PREVIEW_END}."


@tool(gate="approval", title="Refund order {order}", preview=_what_it_does)
def refund(order: str, memo: str) -> str:
    """Refund an order.

    Args:
        order: Which.
        memo: For the books.
    """
    RAN.append(order)
    return f"refunded {order}, {memo[:5]}"


def clerk(_: Model) -> Agent:
    """Refunds as many orders as the first number that it reads, with memos of the size it reads."""
    model = FunctionModel(stream_function=_next)
    return ChatModelAgent(name="clerk", model=model, tools=[refund])


async def _next(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        yield "All done."
        return
    asked = [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    sizes = re.findall("short|long|huge", asked[-1])
    calls: DeltaToolCalls = {}
    for number, size in enumerate(sizes):
        arguments = {"order": f"A{number}", "memo": MEMOS[size]}
        calls[number] = DeltaToolCall(
            name="refund", json_args=json.dumps(arguments), tool_call_id=f"c{number}"
        )
    yield calls
