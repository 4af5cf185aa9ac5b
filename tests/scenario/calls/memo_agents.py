"""An agent that wants to refund several orders in one turn, each with a long memo and a preview."""

from __future__ import annotations

import re

from pydantic_ai.messages import ModelMessage, ModelResponsePart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say
from tests.scenario.agents import has_results, newest_words

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
    model = AnsweringModel(_answer, name="clerk")
    return ChatModelAgent(name="clerk", model=model, tools=[refund])


def _answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    if has_results(messages):
        return [say("All done.")]
    sizes = re.findall("short|long|huge", newest_words(messages))
    return [
        call("refund", {"order": f"A{number}", "memo": MEMOS[size]}, id=f"c{number}")
        for number, size in enumerate(sizes)
    ]
