"""An agent that wants to refund several orders in one turn."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponsePart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say
from tests.scenario.agents import has_results, newest_words

RAN: list[str] = []
"""The orders that were refunded; a test that looks at it clears it first."""
EFFECTS = "COUNTERSIGN_TEST_REFUNDS"
"""Names a file that gets a line for each refund, where several processes refund."""
AMOUNTS = ("20.00", "12.50", "120.50", "9.90", "31.00")


@tool(
    gate="review",
    title="Refund {amount} {currency}, order {order}",
    tags=["money"],
    shown=["order"],
    batch_title="{n} refunds, {amount:sum} {currency} in total",
    batch_key="amount",
)
def refund(order: str, amount: Decimal, currency: str = "EUR") -> str:
    """Refund an order.

    Args:
        order: Which.
        amount: How much.
        currency: Of which money.
    """
    RAN.append(order)
    if path := os.environ.get(EFFECTS):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{order}\n")
    if order == "1251":
        raise ValueError("the shop does not answer")
    return f"refunded {amount} {currency}"


def clerk(_: Model) -> Agent:
    """Refunds as many orders as the first number that it reads, all in one turn."""
    model = AnsweringModel(_answer, name="clerk")
    return ChatModelAgent(name="clerk", model=model, tools=[refund])


def _answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    if has_results(messages):
        return [say("All done.")]
    count = int((re.findall(r"\d+", newest_words(messages)) or ["5"])[0])
    calls: list[ModelResponsePart] = []
    for number in range(count):
        amount = AMOUNTS[number] if count <= len(AMOUNTS) else f"{number + 1}.00"
        order = str((1234, 1240, 1251, 1262, 1270)[number % 5] + number // 5 * 100)
        calls.append(call("refund", {"order": order, "amount": amount}, id=f"c{number}"))
    return calls
