"""The bot's own turn: message, card, click, tool, text; and what of it reaches the database.

python benchmarks/bench_turn.py [--quick] [--count-only] [--list] [--delay 3ms]

`--count-only` counts and times nothing. `--list` prints one approval's commands in order, each with
the method of the store that sent it, and who called that; beside a name of SQLite stand all calls
that ran then and may have sent it. `--delay` holds each reply of the MongoDB server.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.delay import delayed
from benchmarks.harness import Effort, percentile, run, table
from tests.cost.counting import Count, counting
from tests.cost.stage import PAID, Kind, TurnStage, a_turn_stage, make_database
from tests.support.mongo import MongoServer, spawn_mongo_server
from tests.support.stage import Stage, a_stage

QUICK = "--quick" in sys.argv
COUNT_ONLY = "--count-only" in sys.argv
LIST = "--list" in sys.argv
TURNS = 5 if QUICK else 60
AT_ONCE = 5 if QUICK else 100
LAPS = 1 if QUICK else 3
NAMES: dict[Kind, str] = {
    "sqlite": "SQLite file",
    "memory": "SQLite in memory",
    "pymongo": "wire protocol, PyMongo",
    "motor": "wire protocol, motor",
}
OVER: Sequence[Kind] = ("sqlite", "pymongo", "motor")


@asynccontextmanager
async def a_bot(kind: Kind, server: MongoServer) -> AsyncIterator[TurnStage]:
    """A bot on a new database of some kind, warm after a few turns."""
    with tempfile.TemporaryDirectory() as directory:
        storage = make_database(kind, Path(directory), server)
        async with a_turn_stage(storage) as stage:
            for _ in range(1 if COUNT_ONLY else 5):
                await stage.turn()
            yield stage


async def one_approval(server: MongoServer) -> None:
    """What one approval brings to the database; in a chain each command waits for the last."""
    rows = []
    for kind in OVER:
        async with a_bot(kind, server) as stage:
            with counting() as count:
                await stage.turn()
        rows.append((NAMES[kind], *_counted(count)))
        if LIST:
            print(f"\n# {NAMES[kind]}: {count.total} commands, {count.writes} writes")
            print(*count.lines(), sep="\n")
            print(*(f"{number:4} {name}" for name, number in count.by_call().items()), sep="\n")
    head = ("database", "commands", "writes", "longest chain", "waits for the disk", "written")
    table("One approval in the bot: message, card, click, tool, text", head, rows)


def _counted(count: Count) -> tuple[object, ...]:
    chain, waits = count.chain or "", count.transactions or ""
    return count.total, count.writes, chain, waits, f"{count.written:,} B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast approvals are.

    Attributes:
        times: Seconds of each, one by one.
        alone: All of them.
        together: Of `laps` times `AT_ONCE` at once.
        laps: How often so many were made at once.
    """

    times: Sequence[float]
    alone: Effort
    together: Effort
    laps: int

    @property
    def alone_per_s(self) -> float:
        """How many a second, one by one."""
        return len(self.times) / self.alone.wall_s

    @property
    def together_per_s(self) -> float:
        """How many a second, at once."""
        return self.laps * AT_ONCE / self.together.wall_s


async def pace_of(kind: Kind, server: MongoServer, *, laps: int = LAPS) -> Pace:
    """One approval after the other, then many at once, each in a thread of its own.

    More laps make a fuller database, which `nx` reads more slowly: compare paces of equal laps.
    """
    over = server if kind in {"pymongo", "motor"} else None
    times: list[float] = []
    async with a_bot(kind, server) as stage:
        alone = Effort(over)
        for _ in range(TURNS):
            begin = time.perf_counter()
            await stage.turn()
            times.append(time.perf_counter() - begin)
        alone.end()
        together = Effort(over)
        for _ in range(laps):
            await _all_at_once(stage)
        together.end()
    return Pace(times=times, alone=alone, together=together, laps=laps)


async def round_trips(server: MongoServer) -> None:
    """How fast approvals are, by database."""
    rows = []
    kinds: Sequence[Kind] = ("memory", *OVER)
    for kind in kinds:
        pace = await pace_of(kind, server)
        p50, p99 = (percentile(pace.times, share) * 1e3 for share in (0.5, 0.99))
        rows.append(
            (
                NAMES[kind],
                f"{pace.alone_per_s:.1f}/s",
                f"{p50:.0f} / {p99:.0f} ms",
                f"{pace.alone.cpu_s / TURNS * 1e3:.1f} ms",
                f"{pace.together_per_s:.1f}/s",
                f"{pace.together.cpu_s / pace.laps / AT_ONCE * 1e3:.1f} ms",
            )
        )
    head = ("database", "one by one", "p50 / p99", "CPU", f"{AT_ONCE} at once", "CPU")
    table("Approvals in the bot; CPU is of the bot and of the server together", head, rows)


async def _all_at_once(stage: TurnStage) -> None:
    await asyncio.gather(*(stage.write() for _ in range(AT_ONCE)))
    await stage.settled()
    cards = stage.buttons()
    assert len(cards) == AT_ONCE
    await stage.approve_all()


async def many_calls(server: MongoServer) -> None:
    """Many gated calls of one answer: until their cards are there, and until all are decided."""
    rows = []
    kinds: Sequence[Kind] = ("sqlite", "pymongo")
    sizes = (10,) if QUICK else (10, AT_ONCE)
    for kind in kinds:
        for calls in sizes:
            cells = await _decided(kind, server, calls)
            rows.append((NAMES[kind], calls, *cells))
    head = ("database", "calls", "surface", "commands", "decided one by one", "commands a click")
    table(
        "Many gated calls of one answer, in the bot",
        (*head, "decided at once", "commands a click", "clicks in vain"),
        rows,
    )


async def _decided(kind: Kind, server: MongoServer, calls: int) -> tuple[str, ...]:
    async with a_bot(kind, server) as stage:
        begin = time.perf_counter()
        with counting() as surfaced:
            await stage.ask(calls)
        surface_s = time.perf_counter() - begin
        cards = stage.buttons()
        assert len(cards) == calls
        begin = time.perf_counter()
        with counting() as singly:
            for card in cards:
                await stage.click(*card)
                await stage.settled()
        singly_s = time.perf_counter() - begin
        await stage.approve_all()
        await stage.ask(calls)
        begin = time.perf_counter()
        with counting() as together:
            clicks = await stage.approve_all()
        together_s = time.perf_counter() - begin
    return (
        _seconds(surface_s),
        f"{surfaced.total:,}",
        _seconds(singly_s),
        f"{singly.total / calls:.1f}",
        _seconds(together_s),
        f"{together.total / calls:.1f}",
        f"{clicks - calls:,}",
    )


async def batches(server: MongoServer) -> None:
    """Calls of one answer that share a card: until it is there, and approved together."""
    rows = []
    kinds: Sequence[Kind] = ("sqlite", "pymongo")
    for kind in kinds:
        for calls in (8,) if QUICK else (8, AT_ONCE):
            async with a_bot(kind, server) as stage:
                with counting() as surfaced:
                    await stage.ask(calls, is_together=True)
                before = len(PAID)
                with counting() as approved:
                    await stage.approve_together()
                assert len(PAID) == before + calls
            each = f"{approved.total / calls:.1f}"
            rows.append((NAMES[kind], calls, f"{surfaced.total:,}", f"{approved.total:,}", each))
    head = ("database", "calls", "commands to surface", "to approve all", "a call")
    table("Calls that share a card", head, rows)


def _seconds(value: float) -> str:
    return "" if COUNT_ONLY else f"{value:.2f} s"


def _are_done(stage: Stage, count: int) -> bool:
    """Whether so many of the agent's texts say that it is done."""
    return sum(text.startswith("Done.") for text in stage.texts()) == count


async def lone_approver() -> None:
    """From the only person's click to the text that follows the tool, in the demo over HTTP."""
    times = []
    with tempfile.TemporaryDirectory() as directory:
        async with a_stage(Path(directory), "http") as stage:
            for number in range(1, (3 if QUICK else 16)):
                await stage.say("Rosa", f"@countersign deploy payments 1.4.{number} to production")
                card = await stage.card(number=number, word="countersign:approve")
                stage.clock.forward(seconds=60)
                begin = time.perf_counter()
                await stage.click("Ada", card, "countersign:approve")
                await stage.sandbox.until(partial(_are_done, stage, number), timeout=10)
                times.append(time.perf_counter() - begin)
    rows = [(f"{median(times) * 1e3:.0f} ms", f"{min(times) * 1e3:.0f} ms")]
    table("One person's click until the text after the tool (demo)", ("median", "least"), rows)


async def main() -> None:
    """Run all of them."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        server = spawn_mongo_server(Path(directory))
        stack.callback(server.stop)
        stack.enter_context(delayed(server))
        await one_approval(server)
        if LIST:
            return
        await many_calls(server)
        await batches(server)
        if not COUNT_ONLY:
            await round_trips(server)
            await lone_approver()


if __name__ == "__main__":
    run(main)
