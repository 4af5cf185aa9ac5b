"""Exceptions of any kind, at each statement: nothing acknowledged is lost, and nobody waits. I4.

SQLite alone: the process that runs the statements is ours, and memory may end in the middle of one.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from storage.errors import StorageError, StoreUnavailableError
from tests.contract.builders import a_message, a_thread, an_approval, an_entry
from tests.contract.faults.driver import PLACES, Faults, HungDisk, Place, break_sqlite
from tests.support.stores import SqliteStores

WITHIN_S = 60
NAME = "countersign.db"


def _undecodable() -> BaseException:
    return UnicodeDecodeError("utf-8", b"\xff", 0, 1, "damaged")


ERRORS: dict[str, Callable[[], BaseException]] = {
    "memory": MemoryError,
    "runtime": lambda: RuntimeError("can't start new thread"),
    "recursion": RecursionError,
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit(1),
    "closing": GeneratorExit,
    "cancelled": asyncio.CancelledError,
    "driver": lambda: sqlite3.OperationalError("disk I/O error"),
    "misuse": lambda: sqlite3.ProgrammingError("cannot operate on a closed cursor"),
    "text": _undecodable,
}


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    break_sqlite(monkeypatch, made)
    return made


@pytest.fixture(params=["file", "memory"])
async def storage(
    request: pytest.FixtureRequest, faults: Faults, tmp_path: Path
) -> AsyncIterator[SqliteStores]:
    opened = SqliteStores(tmp_path if request.param == "file" else None)
    await opened.open()
    yield opened
    faults.arm(None)
    async with asyncio.timeout(WITHIN_S):
        await opened.close()


class Work:
    """Writes of several kinds at once, and what was acknowledged of them."""

    def __init__(self, storage: SqliteStores) -> None:
        self.storage = storage
        self.number = 0
        self.kept: set[tuple[str, str, str]] = set()

    async def approval(self, name: str) -> None:
        """One statement."""
        if await self.storage.approvals.insert(an_approval(approval_id=name)):
            self.kept.add(("approvals", "id", name))

    async def with_entries(self, name: str) -> None:
        """Two statements, one after the other."""
        await self.storage.approvals.insert(an_approval(approval_id=name))
        await self.storage.audit.append(an_entry(f"asked-{name}"))
        self.kept |= {
            ("approvals", "id", name),
            ("audit", "entry_id", f"asked-{name}"),
        }

    async def message(self, name: str) -> None:
        await self.storage.inbox.add(a_message(name))
        self.kept.add(("messages", "id", f"T1:C1:{name}"))

    async def entry(self, name: str) -> None:
        await self.storage.audit.append(an_entry(name))
        self.kept.add(("audit", "entry_id", name))

    async def look(self) -> None:
        """A look for due work, in the same group as the writes."""
        await self.storage.approvals.due(now_ms=10_000, limit=5)

    async def all_at_once(self) -> list[BaseException]:
        """Do some of each kind at once; return what failed."""
        self.number += 1
        key = f"{self.number:06}"
        jobs = [
            self.approval(f"alone-{key}"),
            self.with_entries(f"asked-{key}"),
            self.look(),
            self.message(f"{key}.000100"),
            self.entry(f"entry-{key}"),
        ]
        async with asyncio.timeout(WITHIN_S):
            results = await asyncio.gather(*jobs, return_exceptions=True)
            try:
                await self.message(f"{key}.000200")  # one statement, which is no group
            except StorageError as error:
                results.append(error)
        return [failure for failure in results if failure is not None]


def in_file(directory: Path, kept: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Those of the records that somebody else finds: what is committed, and no more."""
    with closing(sqlite3.connect(f"file:{directory / NAME}?mode=ro", uri=True)) as other:
        return {
            (table, key, name)
            for table, key, name in kept
            if other.execute(f"SELECT 1 FROM {table} WHERE {key} = ?", (name,)).fetchone()  # noqa: S608
        }


def cases(number_of_statements: int) -> Iterator[tuple[Place, int, int]]:
    for place in PLACES:
        for first in range(number_of_statements):
            yield place, first, 1
            yield place, first, 3  # memory is short for a while


@pytest.mark.parametrize("error", ERRORS)
async def test_i4_no_exception_loses_what_was_acknowledged(
    storage: SqliteStores, faults: Faults, tmp_path: Path, error: str
) -> None:
    work = Work(storage)
    await storage.threads.ensure(a_thread())
    faults.arm(None)
    assert await work.all_at_once() == []
    statements = len(faults.seen)
    assert "COMMIT" in faults.seen

    reached = 0
    for place, first, count in cases(statements):
        faults.arm(ERRORS[error], place, first, count)
        failed = await work.all_at_once()
        assert all(isinstance(failure, StorageError) for failure in failed), (place, first, failed)
        reached += faults.raised > 0
        faults.arm(None)
        assert await work.all_at_once() == [], (place, first, count)
        await storage.ping()

    if (tmp_path / NAME).exists():
        assert in_file(tmp_path, work.kept) == work.kept
    assert reached > 4 * statements  # what begins and ends a transaction has no rows


@pytest.mark.parametrize("error", ["memory", "exit", "driver"])
async def test_a_transaction_that_stays_open_is_seen_by_readiness(
    storage: SqliteStores, faults: Faults, error: str
) -> None:
    """As long as a transaction cannot be ended, nothing is acknowledged, and a probe fails."""
    work = Work(storage)
    faults.arm(ERRORS[error], "before", 2, 10_000)  # nor can it be rolled back
    await work.all_at_once()
    kept = set(work.kept)

    with pytest.raises(StorageError):
        await storage.ping()
    assert await work.all_at_once() != []
    assert work.kept == kept

    faults.arm(None)
    await storage.ping()
    assert await work.all_at_once() == []


@pytest.mark.parametrize("error", ["memory", "driver"])
async def test_opening_ends_by_an_error_of_ours_and_can_be_repeated(
    faults: Faults, tmp_path: Path, error: str
) -> None:
    storage = SqliteStores(tmp_path / "first")
    await storage.open()
    await storage.close()
    statements = len(faults.seen)

    for place in PLACES:
        for first in range(statements):
            storage = SqliteStores(tmp_path / f"{place}-{first}")
            faults.arm(ERRORS[error], place, first)
            async with asyncio.timeout(WITHIN_S):
                try:
                    await storage.open()
                except StorageError:
                    pass
                finally:
                    await storage.close()
            faults.arm(None)
            again = SqliteStores(tmp_path / f"{place}-{first}")
            await again.open()
            assert await Work(again).all_at_once() == []
            await again.close()


WITH_LITTLE_MEMORY = """
import asyncio, resource, sys
from datetime import timedelta
from pathlib import Path
from storage.errors import StorageError, StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.contract.builders import a_decision, an_approval, an_entry

BIG = 100_000_000

async def main():
    storage = SqliteStores(Path(sys.argv[1]))
    await storage.open()
    await storage.approvals.insert(an_approval(approval_id="poisoned", due_ms=1))
    large = f"json_set(body, '$.preview', printf('%.*c', {BIG}, 'x'))"
    await storage._database.fetch_unlimited(f"UPDATE approvals SET body = {large}")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(sys.argv[2]) * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    results = await asyncio.wait_for(
        asyncio.gather(
            storage.approvals.due(now_ms=10, limit=9),
            storage.approvals.insert(an_approval(approval_id="a")),
            storage.audit.append(an_entry("a")),
            return_exceptions=True,
        ),
        30,
    )
    failed = [one for one in results if isinstance(one, BaseException)]
    assert all(isinstance(one, StorageError) for one in failed), failed
    print("failed", len(failed), flush=True)
    for name in "bcd":
        await storage.approvals.insert(an_approval(approval_id=name))
        await storage.audit.append(an_entry(name))
        await storage.approvals.insert(an_approval(approval_id=f"{name}-alone"))
        print("acknowledged", name, flush=True)
        print("acknowledged", f"{name}-alone", flush=True)
    await storage.ping()
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("megabytes", [150, 260, 380])
async def test_i4_a_process_without_memory_loses_nothing(tmp_path: Path, megabytes: int) -> None:
    """A record that does not fit into memory is read in the same group as others are written."""
    bot = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WITH_LITTLE_MEMORY,
        str(tmp_path),
        str(megabytes),
        cwd=Path(__file__).parents[3],
        stdout=asyncio.subprocess.PIPE,
    )
    assert bot.stdout is not None
    lines: list[str] = []
    try:
        async with asyncio.timeout(60):
            while line := (await bot.stdout.readline()).decode().strip():
                lines.append(line)
                if line == "ready":
                    break
    finally:
        if bot.returncode is None:
            bot.kill()
        await bot.wait()

    assert "ready" in lines
    kept = {
        ("approvals", "id", line.split()[1]) for line in lines if line.startswith("acknowledged")
    }
    assert len(kept) == 6
    assert in_file(tmp_path, kept) == kept


async def test_a_disk_that_hangs_keeps_nobody_waiting(faults: Faults, tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path, timeout=timedelta(milliseconds=300))
    await storage.open()
    disk = HungDisk()
    faults.arm(disk)
    try:
        async with asyncio.timeout(WITHIN_S):
            for attempt in (storage.ping(), storage.ping(), Work(storage).approval("lost")):
                with pytest.raises(StoreUnavailableError, match="no answer within"):
                    await attempt
    finally:
        disk.come_back()
    faults.arm(None)

    assert await Work(storage).all_at_once() == []
    # What had not begun when its caller gave up never begins: the click was answered with no.
    lost = {("approvals", "id", "lost")}
    assert in_file(tmp_path, lost) == set()
    await storage.close()
