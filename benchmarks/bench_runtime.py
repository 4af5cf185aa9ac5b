"""The runtime alone: what an interrupt and its resume cost.

python benchmarks/bench_runtime.py [--quick]
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from agents import (
    ApprovalInfo,
    ChatModelAgent,
    InterruptContext,
    InterruptEvent,
    MemoryCheckpointStore,
    MemoryMessageLog,
    ResumeParams,
    Runner,
    ScriptedModel,
    tool,
)
from agents.models import call, say
from benchmarks.harness import Counted, CountedLog, CountedStore, seconds, table
from storage.mongo import MongoStorage
from storage.sqlite import SqliteStorage
from tests.mongo import spawn_mongo_server

QUICK = "--quick" in sys.argv
AT_ONCE = 100


@tool(gate="approval", title="Pay {amount}")
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much.
    """
    return f"paid {amount}"


def agent(calls: int = 1) -> ChatModelAgent:
    """An agent whose model calls the gated tool, then says that it is done."""
    turn = [call("pay", {"amount": number}, id=f"c{number}") for number in range(calls)]
    return ChatModelAgent(name="payer", model=ScriptedModel([turn, say("Done.")]), tools=[pay])


def runner(counted: Counted, calls: int = 1) -> Runner:
    """A runner as the bot has it: every step is kept."""
    return Runner(
        agent(calls),
        checkpoint_store=CountedStore(counted),
        message_log=CountedLog(counted),
        durability="step",
    )


async def ask(runs: Runner, checkpoint_id: str, log: tuple[str, int]) -> Sequence[InterruptContext]:
    """Run to the interrupt."""
    last = None
    async for event in runs.query("Pay, please.", checkpoint_id=checkpoint_id, log=log):
        last = event
    assert isinstance(last, InterruptEvent)
    return last.contexts


async def answer(runs: Runner, checkpoint_id: str, contexts: Sequence[InterruptContext]) -> None:
    """Approve some of what waits."""
    targets = {c.id: c.info.approve() for c in contexts if isinstance(c.info, ApprovalInfo)}
    async for _ in runs.resume_with_params(checkpoint_id, ResumeParams(targets=targets)):
        pass


async def round_trip(counted: Counted, log_id: str, turn: int = 1) -> None:
    """One interrupt and its resume: a fresh runner for each, as after a restart."""
    checkpoint_id = f"{log_id}#{turn}"
    contexts = await ask(runner(counted), checkpoint_id, (log_id, turn))
    fresh = Runner(
        ChatModelAgent(name="payer", model=ScriptedModel([say("Done.")]), tools=[pay]),
        checkpoint_store=CountedStore(counted),
        message_log=CountedLog(counted),
        durability="step",
    )
    await answer(fresh, checkpoint_id, contexts)


@asynccontextmanager
async def stores() -> AsyncIterator[dict[str, Counted]]:
    """Every store: in memory, embedded, and over MongoDB's wire protocol with both drivers."""
    async with AsyncExitStack() as stack:
        found = {"in memory": Counted(MemoryCheckpointStore(), MemoryMessageLog())}
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        sqlite = SqliteStorage(Path(directory))
        await sqlite.open()
        stack.push_async_callback(sqlite.close)
        found["SQLite file"] = Counted(sqlite.checkpoints, sqlite.log)
        server = spawn_mongo_server(Path(directory) / "server")
        stack.callback(server.stop)
        drivers: tuple[Literal["motor", "pymongo"], ...] = ("motor", "pymongo")
        for driver in drivers:
            mongo = MongoStorage(server.uri, driver=driver, database=f"bench_{driver}")
            await mongo.open()
            stack.push_async_callback(mongo.close)
            found[f"wire protocol, {driver}"] = Counted(mongo.checkpoints, mongo.log)
        yield found


async def history() -> None:
    """Cost against the length of the thread."""
    rows = []
    base = 0.0
    for length in (10, 100, 1_000):
        counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
        turns = length // 4  # four messages each: question, call, result, answer
        for turn in range(1, turns + 1):
            await round_trip(counted, "t", turn)
        numbers = itertools.count(turns + 1)
        asked: list[tuple[int, int]] = []

        async def once(
            counted: Counted = counted,
            numbers: itertools.count[int] = numbers,
            asked: list[tuple[int, int]] = asked,
        ) -> None:
            turn = next(numbers)
            counted.reset()
            await ask(runner(counted), f"t#{turn}", ("t", turn))
            asked.append((counted.commands, counted.written))

        took = await seconds(once)
        counted.reset()
        await round_trip(counted, "t", next(numbers))
        base = base or took
        rows.append(
            (
                length,
                f"{asked[-1][1]} B",
                f"{counted.written} B",
                counted.commands,
                f"{took * 1e3:.2f} ms",
                f"{took / base:.2f}",
            )
        )
    head = ("messages", "written to interrupt", "with resume", "commands", "time", "against 10")
    table("An interrupt in a thread of so many messages (in memory)", head, rows)


async def speed() -> None:
    """Round trips per second, one by one and many at once."""
    rows = []
    async with stores() as found:
        for name, counted in found.items():

            async def many(counted: Counted = counted) -> None:
                ids = [uuid.uuid4().hex for _ in range(AT_ONCE)]
                await asyncio.gather(*(round_trip(counted, log_id) for log_id in ids))

            async def one_by_one(counted: Counted = counted) -> None:
                for _ in range(20):
                    await round_trip(counted, uuid.uuid4().hex)

            counted.reset()
            await round_trip(counted, uuid.uuid4().hex)
            commands, written = counted.commands, counted.written
            alone = 20 / await seconds(one_by_one, repeat=3)
            together = AT_ONCE / await seconds(many, repeat=3)
            rows.append((name, f"{alone:.0f}/s", f"{together:.0f}/s", commands, f"{written} B"))
    head = ("store", "one by one", f"{AT_ONCE} at once", "commands", "written")
    table("Interrupt and resume: round trips per second", head, rows)


async def batches() -> None:
    """Many gated calls of one answer."""
    rows = []
    for calls in (1, 10, 100):

        async def one_by_one(calls: int = calls) -> None:
            counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
            runs = runner(counted, calls)
            for context in await ask(runs, "b", ("b", 1)):
                await answer(runs, "b", [context])
            assert not await runs.pending("b")

        async def together(calls: int = calls) -> None:
            counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
            runs = runner(counted, calls)
            await answer(runs, "b", await ask(runs, "b", ("b", 1)))

        singly, all_at_once = await seconds(one_by_one, repeat=3), await seconds(together, repeat=3)
        rows.append((calls, f"{singly * 1e3:.1f} ms", f"{all_at_once * 1e3:.1f} ms", 2))
    head = ("gated calls of one answer", "decided one by one", "all at once", "model calls")
    table("Many calls of one turn (in memory)", head, rows)


async def main() -> None:
    """Run all of them."""
    await history()
    await batches()
    await speed()


if __name__ == "__main__":
    asyncio.run(main())
