"""A graph of LangGraph that asks people in Slack before it acts: `python langgraph_gate.py`.

It needs `COUNTERSIGN_URL` and `COUNTERSIGN_KEY`, and
`pip install './countersign_client[langgraph]'`.
"""

import asyncio
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver  # one in a file survives a restart
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from countersign_client import AsyncCountersign, NotApproved, NotStarted, text_for_model
from countersign_client.adapters.langgraph import run


class Refund(TypedDict, total=False):
    order: int
    amount: float
    receipt: str


def review(state: Refund) -> Any:
    return interrupt({"order": state["order"], "amount": state["amount"]})  # what people approved


def refund(state: Refund) -> Refund:
    return {"receipt": f"Refunded {state['amount']:.2f} of order {state['order']}."}


graph = StateGraph(Refund)
graph.add_node("review", review)
graph.add_node("refund", refund)
graph.add_edge(START, "review")
graph.add_edge("review", "refund")
graph.add_edge("refund", END)
app = graph.compile(checkpointer=InMemorySaver())


async def main() -> None:
    config = {"configurable": {"thread_id": "refund-12"}}
    async with AsyncCountersign() as client:
        try:
            order = {"order": 12, "amount": 40.0}
            done = await run(app, order, config, client=client, tool="refund")
            print(done["receipt"])
        except (NotApproved, NotStarted) as refusal:
            print(text_for_model(refusal))


if __name__ == "__main__":
    asyncio.run(main())
