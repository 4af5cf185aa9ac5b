"""An example agent of a shop: it reads orders at once, and asks people before each refund.

refund-policy.yaml sends refunds above 100 to finance. The model is a small function, so that the
example needs no API key.
"""

from typing import Annotated, Literal

from pydantic import Field
from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say

ORDERS = {"A-1": 240.0, "A-2": 19.5}
Reason = Literal["faulty goods", "late delivery", "customer request"]


@tool(tags=["read-only"], shown=["order_id"])
def look_up_order(order_id: str) -> str:
    """Return the total of an order."""
    return f"Order {order_id} cost {ORDERS[order_id]:.2f} €."


def effect(order_id: str, amount: float, reason: Reason) -> str:
    """Say what a refund does; approvers read it on the card."""
    return f"The customer of {order_id} gets {amount:.2f} € back: {reason}."


@tool(
    title="Refund {amount} € of order {order_id}",
    preview=effect,
    gate="review",
    tags=["money"],
    shown=["order_id"],
    batch_title="{n} refunds, {amount:sum} € in total",
    batch_key="amount",
)
def refund_order(
    order_id: str,
    amount: Annotated[float, Field(gt=0, le=500)],
    reason: Reason = "customer request",
) -> str:
    """Refund an order.

    Args:
        order_id: Number of the order, such as A-1.
        amount: How much the customer gets back, in euros.
        reason: The reason; the customer reads it.
    """
    return f"{amount:.2f} € of order {order_id} are refunded."


def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
    """Look at the order that the message names, refund its total, and repeat the result."""
    last = messages[-1].parts[-1]
    if not isinstance(last, ToolReturnPart | UserPromptPart):
        return [say("Write: refund A-1")]
    text = str(last.content)
    order = next((order_id for order_id in ORDERS if order_id in text), "")
    if not order:
        return [say("Write: refund A-1, or: refund A-2")]
    if isinstance(last, UserPromptPart):
        return [call("look_up_order", {"order_id": order})]
    if last.tool_name == "look_up_order":
        return [call("refund_order", {"order_id": order, "amount": ORDERS[order]})]
    return [say(text)]


def build(model: Model) -> Agent:
    """Build the agent. Countersign calls this function once, at start."""
    return ChatModelAgent(
        name="refund_shop",
        model=AnsweringModel(answer, name="example"),
        instruction="You refund orders. Look an order up before you refund it.",
        tools=[look_up_order, refund_order],
    )
