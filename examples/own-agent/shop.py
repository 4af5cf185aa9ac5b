"""An agent of a shop: it reads orders by itself, and asks people before it refunds."""

import os
from typing import Annotated

import aiohttp
from pydantic import Field
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, idempotency_key, tool

LIMIT = aiohttp.ClientTimeout(total=10)
PRETEND = "pretend"
INSTRUCTION = "You look after orders. Look an order up before you refund anything of it."


@tool
async def look_up(order: str) -> str:
    """Read an order.

    Args:
        order: Its number, such as A-1.
    """
    return await _ask_shop("GET", f"/orders/{order}")


def what_happens(order: str, amount: float, reason: str) -> str:
    """What the card says below its title."""
    return f"The customer of {order} gets {amount:.2f} € back, and a mail with the reason: {reason}"


@tool(
    title="Refund {amount} € of order {order}",
    preview=what_happens,
    gate="review",
    risk="high",
    tags=["money"],
    shown=["order"],
)
async def refund(order: str, amount: Annotated[float, Field(gt=0, le=500)], reason: str) -> str:
    """Give money back. People are asked first.

    Args:
        order: Number of the order, such as A-1.
        amount: How much, in euros.
        reason: Why; the customer reads it.
    """
    body = {"order": order, "amount": amount, "reason": reason, "key": idempotency_key()}
    return await _ask_shop("POST", "/refunds", body)


def build(model: Model) -> Agent:
    """Countersign calls this with the model of COUNTERSIGN_MODEL."""
    return ChatModelAgent(
        name="shop", model=model, instruction=INSTRUCTION, tools=[look_up, refund]
    )


async def _ask_shop(method: str, path: str, body: dict[str, object] | None = None) -> str:
    """Call the shop's API. Its token is read here: it is in no argument, and in no record."""
    url = os.environ["SHOP_URL"]
    if url == PRETEND:
        return f"{method} {path}: done. (SHOP_URL is `pretend`, so that nothing was called.)"
    headers = {"Authorization": f"Bearer {os.environ['SHOP_TOKEN']}"}
    async with (
        aiohttp.ClientSession(url, timeout=LIMIT, headers=headers) as shop,
        shop.request(method, path, json=body) as answer,
    ):
        answer.raise_for_status()
        return await answer.text()
