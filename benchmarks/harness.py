"""What all benchmarks use: a store that counts, medians, tables."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pymongo import monitoring

from agents.core.checkpoint import AmendingStore, CheckpointStatus, MessageLog, StoredCheckpoint
from tests.support.mongo import MongoServer
from tests.support.mongo_listener import LISTENER

_JUDGED = {"--quick", "--count-only"}
"""Options of a benchmark whose times count little, so that its commands are judged as in tests."""


def run(main: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a benchmark.

    Raises:
        AssertionError: With `--quick` or `--count-only`, MongoDB would refuse one of its commands.
    """
    is_judged = not _JUDGED.isdisjoint(sys.argv)
    if is_judged:
        monitoring.register(LISTENER)
    asyncio.run(main())
    if is_judged:
        LISTENER.check()


@dataclass
class Counted:
    """A checkpoint store and a message log that count what goes through them.

    Attributes:
        store: Where checkpoints really go.
        log: Where turns really go.
        commands: Calls of either.
        written: Bytes of text that were written.
    """

    store: AmendingStore
    log: MessageLog
    commands: int = 0
    written: int = 0
    calls: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """Begin to count anew."""
        self.commands = self.written = 0
        self.calls = {}

    def note(self, name: str, *texts: str) -> None:
        """Count a call and what it writes."""
        self.commands += 1
        self.calls[name] = self.calls.get(name, 0) + 1
        self.written += sum(len(text.encode()) for text in texts)


class CountedStore:
    """The checkpoint store of a `Counted`."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        self._counted.note("load")
        return await self._counted.store.load(checkpoint_id)

    async def save(
        self, checkpoint_id: str, data: str, *, status: CheckpointStatus, expected_version: int
    ) -> int:
        self._counted.note("save", data)
        return await self._counted.store.save(
            checkpoint_id, data, status=status, expected_version=expected_version
        )

    async def claim(self, checkpoint_id: str, claim: str, *, expected_version: int) -> int:
        self._counted.note("claim", claim)
        return await self._counted.store.claim(
            checkpoint_id, claim, expected_version=expected_version
        )

    async def amend(self, checkpoint_id: str, change: str, *, expected_version: int) -> int:
        self._counted.note("amend", change)
        return await self._counted.store.amend(
            checkpoint_id, change, expected_version=expected_version
        )

    async def append(self, checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        self._counted.note("append", entry)
        await self._counted.store.append(checkpoint_id, entry, base=base, index=index)

    async def close(self, checkpoint_id: str, *, expected_version: int) -> None:
        self._counted.note("close")
        await self._counted.store.close(checkpoint_id, expected_version=expected_version)


class CountedLog:
    """The message log of a `Counted`."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    async def append(self, log_id: str, turn: int, data: str) -> None:
        self._counted.note("log append", data)
        await self._counted.log.append(log_id, turn, data)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        self._counted.note("log load")
        return await self._counted.log.load(log_id, before_turn=before_turn)


class Effort:
    """Time on the clock, and processor time of this process and of a server's; runs from the start.

    Attributes:
        wall_s: Seconds on the clock, when it has ended.
        cpu_s: Seconds of processor time, when it has ended.
    """

    def __init__(self, server: MongoServer | None = None) -> None:
        self._pid = server.pid if server is not None else None
        self.wall_s, self.cpu_s = -time.perf_counter(), -self._cpu()

    def end(self) -> None:
        """Stop both clocks."""
        self.wall_s += time.perf_counter()
        self.cpu_s += self._cpu()

    def _cpu(self) -> float:
        return time.process_time() + (_cpu_of(self._pid) if self._pid else 0.0)


def _cpu_of(pid: int) -> float:
    """Processor time of another process; 0 where the system does not tell it in files."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def seconds(work: Callable[[], Awaitable[object]], *, repeat: int = 5) -> float:
    """The median time of some work, in seconds; one run before does not count."""
    await work()
    times = []
    for _ in range(repeat):
        gc.collect()
        begin = time.perf_counter()
        await work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def percentile(values: Sequence[float], part: float) -> float:
    """The value below which a part (0 to 1) of all values lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    print(f"\n### {title}\n")
    for number, row in enumerate(cells):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
