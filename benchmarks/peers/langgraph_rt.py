"""A peer: LangGraph's approval (interrupt and resume), over the same server as ours.

PYTHON -m venv peers && peers/bin/pip install langgraph langgraph-checkpoint-mongodb langchain
peers/bin/python benchmarks/peers/langgraph_rt.py URI    (URI: mongodb://…, or `memory`)

It is a program of its own, for another interpreter: Countersign does not depend on LangGraph. The
agent is LangChain's with its HumanInTheLoopMiddleware and a model that costs nothing; durability is
the default. `bench_turn.py` runs it when PEERS names that interpreter. Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.mongodb import MongoDBSaver
from langgraph.types import Command
from pymongo import MongoClient, monitoring

TURNS, AT_ONCE, LAPS = 60, 100, 10
PAID: list[int] = []
SENT: list[str] = []


class Listener(monitoring.CommandListener):
    """Counts commands."""

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        SENT.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


class Payer(BaseChatModel):
    """Makes one gated call, then says so."""

    @property
    def _llm_type(self) -> str:
        return "payer"

    def bind_tools(self, tools: Any, **_: Any) -> Payer:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(content="Done: all is paid.")
        else:
            call = {"name": "pay", "args": {"amount": 1}, "id": uuid.uuid4().hex}
            message = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def pay(amount: int) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


@contextmanager
def saver(uri: str) -> Iterator[Any]:
    """The store of checkpoints."""
    if uri == "memory":
        yield InMemorySaver()
        return
    client: MongoClient[dict[str, Any]] = MongoClient(uri, event_listeners=[Listener()])
    yield MongoDBSaver(client, db_name=f"peer_{uuid.uuid4().hex}")
    client.close()


async def round_trip(agent: Any) -> None:
    """One approval: a message, the interrupt, the answer, the tool, the text."""
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    question = {"messages": [{"role": "user", "content": "Pay, please."}]}
    await agent.ainvoke(question, config)
    answer = {"decisions": [{"type": "approve"}]}
    await agent.ainvoke(Command(resume=answer), config)


async def lap(agent: Any) -> tuple[float, float, float]:
    """One by one and many at once: seconds on the clock, of the processor, and at once."""
    begin, busy = time.perf_counter(), time.process_time()
    for _ in range(TURNS):
        await round_trip(agent)
    alone, cpu = time.perf_counter() - begin, time.process_time() - busy
    begin = time.perf_counter()
    await asyncio.gather(*(round_trip(agent) for _ in range(AT_ONCE)))
    return alone, cpu, time.perf_counter() - begin


async def main(uri: str) -> None:
    """Measure, and print the result."""
    with saver(uri) as store:
        gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
        agent = create_agent(Payer(), [pay], middleware=[gate], checkpointer=store)
        for _ in range(3):
            await round_trip(agent)
        SENT.clear()
        await round_trip(agent)
        commands = len(SENT)
        laps = [await lap(agent) for _ in range(LAPS if uri == "memory" else 1)]
        alone, cpu, together = map(min, zip(*laps, strict=True))
        expected = 4 + len(laps) * (TURNS + AT_ONCE)
        assert len(PAID) == expected, "the tool ran more or less than once each"
    result = {
        "commands": commands,
        "alone_per_s": TURNS / alone,
        "cpu_ms": cpu / TURNS * 1e3,
        "together_per_s": AT_ONCE / together,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
