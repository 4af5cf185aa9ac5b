"""The runtime alone: what an interrupt and its resume cost.

python benchmarks/bench_runtime.py [--quick] [--count-only]

Commands are what reaches the database; in memory, calls of the checkpoint store and of the log.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
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
from benchmarks.harness import Counted, CountedLog, CountedStore, run, seconds, table
from tests.cost.counting import counting, watching
from tests.support.mongo import spawn_mongo_server
from tests.support.stores import MongoStores, SqliteStores

QUICK = "--quick" in sys.argv
COUNT_ONLY = "--count-only" in sys.argv
AT_ONCE = 100
REPEAT = 1 if QUICK else 3
Durability = Literal["step", "interrupt"]


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


def runner(counted: Counted, calls: int = 1, durability: Durability = "step") -> Runner:
    """A runner as the bot has it: every step is kept, unless said otherwise."""
    return Runner(
        agent(calls),
        checkpoint_store=CountedStore(counted),
        message_log=CountedLog(counted),
        durability=durability,
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


async def round_trip(
    counted: Counted, log_id: str, turn: int = 1, durability: Durability = "step"
) -> None:
    """One interrupt and its resume: a fresh runner for each, as after a restart."""
    checkpoint_id = f"{log_id}#{turn}"
    contexts = await ask(runner(counted, 1, durability), checkpoint_id, (log_id, turn))
    fresh = Runner(
        ChatModelAgent(name="payer", model=ScriptedModel([say("Done.")]), tools=[pay]),
        checkpoint_store=CountedStore(counted),
        message_log=CountedLog(counted),
        durability=durability,
    )
    await answer(fresh, checkpoint_id, contexts)


@asynccontextmanager
async def stores() -> AsyncIterator[dict[str, Counted]]:
    """Every store: in memory, embedded, and over MongoDB's wire protocol with both drivers."""
    async with AsyncExitStack() as stack:
        stack.enter_context(watching())
        by_name = {"in memory": Counted(MemoryCheckpointStore(), MemoryMessageLog())}
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        sqlite = SqliteStores(Path(directory))
        await sqlite.open()
        stack.push_async_callback(sqlite.close)
        by_name["SQLite file"] = Counted(sqlite.checkpoints, sqlite.log)
        server = spawn_mongo_server(Path(directory) / "server")
        stack.callback(server.stop)
        drivers: tuple[Literal["motor", "pymongo"], ...] = ("motor", "pymongo")
        for driver in drivers:
            mongo = MongoStores(
                server.uri, driver=driver, database=f"bench_{driver}", timeout=timedelta(seconds=20)
            )
            await mongo.open()
            stack.push_async_callback(mongo.close)
            by_name[f"wire protocol, {driver}"] = Counted(mongo.checkpoints, mongo.log)
        yield by_name


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

        took = await seconds(once, repeat=2 if QUICK else 5)
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
    durabilities: tuple[Durability, ...] = ("step", "interrupt")
    async with stores() as by_name:
        for name, counted in by_name.items():
            for durability in durabilities:
                commands, written = await _cost(counted, durability)
                rates = () if COUNT_ONLY else await rates_of(partial(trip, counted, durability))
                shown = [f"{rate:.0f}/s" for rate in rates] or ["", ""]
                rows.append((name, durability, commands, f"{written:,} B", *shown))
    head = ("store", "durability", "commands", "written", "one by one", f"{AT_ONCE} at once")
    table("Interrupt and resume, with a message log: round trips per second", head, rows)


async def _cost(counted: Counted, durability: Durability) -> tuple[int, int]:
    """Commands of one round trip that reach the database, and bytes; else calls of the stores."""
    counted.reset()
    with counting() as count:
        await round_trip(counted, uuid.uuid4().hex, 1, durability)
    if count.total:
        return count.total, count.written
    return counted.commands, counted.written


async def trip(counted: Counted, durability: Durability) -> None:
    """A round trip in a thread of its own."""
    await round_trip(counted, uuid.uuid4().hex, 1, durability)


async def rates_of(once: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Round trips per second, one by one and many at once."""

    async def many() -> None:
        await asyncio.gather(*(once() for _ in range(AT_ONCE)))

    async def one_by_one() -> None:
        for _ in range(20):
            await once()

    alone = 20 / await seconds(one_by_one, repeat=REPEAT)
    together = AT_ONCE / await seconds(many, repeat=REPEAT)
    return alone, together


async def batches() -> None:
    """Many gated calls of one answer."""
    rows = []
    for calls in (1, 10, 100):
        bytes_of: list[int] = []

        async def one_by_one(calls: int = calls, bytes_of: list[int] = bytes_of) -> None:
            counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
            runs = runner(counted, calls)
            contexts = await ask(runs, "b", ("b", 1))
            counted.reset()
            for context in contexts:
                await answer(runs, "b", [context])
            bytes_of.append(counted.written)
            assert not await runs.pending("b")

        async def together(calls: int = calls) -> None:
            counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
            runs = runner(counted, calls)
            await answer(runs, "b", await ask(runs, "b", ("b", 1)))

        if COUNT_ONLY:
            await one_by_one()
            times = ["", ""]
        else:
            laps = [await seconds(work, repeat=REPEAT) for work in (one_by_one, together)]
            times = [f"{lap * 1e3:.1f} ms" for lap in laps]
        rows.append((calls, times[0], f"{bytes_of[-1]:,} B", times[1], 2))
    head = (
        "gated calls of one answer",
        "decided one by one",
        "written",
        "all at once",
        "model calls",
    )
    table("Many gated calls of one answer (in memory)", head, rows)


async def cold() -> None:
    """A thread that this process has not read yet, and again when it has."""
    rows: list[tuple[int, float, float]] = []
    tries = 3 if QUICK else 7
    for length in (10, 1_000):
        counted = Counted(MemoryCheckpointStore(), MemoryMessageLog())
        turns = length // 4
        await round_trip(counted, "pattern")
        (entry,) = await counted.log.load("pattern", before_turn=2)
        times: dict[str, list[float]] = {"cold": [], "warm": []}
        for number in range(tries):
            log_id = f"t{number}"
            for turn in range(1, turns + 1):  # written by somebody else, and each text is new
                text = entry.replace("Pay, please.", f"Pay, please, {uuid.uuid4().hex}.")
                await counted.log.append(log_id, turn, text)
            for state, taken in times.items():
                runs = runner(counted)
                gc.collect()
                begin = time.process_time()
                await ask(runs, f"{log_id}#{state}", (log_id, turns + 1))
                taken.append(time.process_time() - begin)
        rows.append((length, min(times["cold"]), min(times["warm"])))
    (_, cold_s, warm_s), (_, long_cold_s, long_warm_s) = rows
    shown = [
        (f"{length:,}", f"{first * 1e3:.1f} ms", f"{again * 1e3:.1f} ms")
        for length, first, again in rows
    ]
    shown.append(("ratio", f"{long_cold_s / cold_s:.1f}", f"{long_warm_s / warm_s:.1f}"))
    head = ("messages", "cold", "warm")
    table("Processor time to an interrupt, by the length of the thread (in memory)", head, shown)


async def main() -> None:
    """Run all of them."""
    await batches()
    await speed()
    if not COUNT_ONLY:
        await history()
        await cold()


if __name__ == "__main__":
    run(main)
