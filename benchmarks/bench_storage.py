"""What the size of the database costs, and what a process needs.

python benchmarks/bench_storage.py [--quick]
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import aiohttp

from agents.models import Turn, call, say
from benchmarks.bench_clicks import free_port, slack
from benchmarks.bench_runtime import round_trip
from benchmarks.harness import Counted, run, seconds, table
from bot.records.approval import Approval, StoredCard
from bot.records.approval_queries import count_pending
from bot.stores import Stores
from storage.errors import StoreUnavailableError
from tests.contract.builders import a_thread, an_approval
from tests.support.mongo import spawn_mongo_server
from tests.support.stores import MongoStores, SqliteStores
from tests.unit.bot.office import BOT, Office

QUICK = "--quick" in sys.argv
PENDING, STARTS = (1_000, 1) if QUICK else (10_000, 3)
NOW = 1_800_000_000_000


def pending(count: int, *, due: int) -> Iterator[Approval]:
    """Approvals that wait for people; some of them are due."""
    for number in range(count):
        name = uuid.uuid4().hex
        approval = an_approval(
            approval_id=f"apr_{name}",
            interrupt_id=name,
            thread_id=f"T1:C1:{name}",
            card=StoredCard(revision=1),
            expires_ms=NOW + 10_000_000,
            due_ms=NOW - number if number < due else NOW + 1_000_000 + number,
        )
        yield approval.with_card_ts("1.1")


async def add_all(storage: Stores, approvals: Iterator[Approval]) -> None:
    """Put many approvals into a database."""
    waiting = list(approvals)
    for at in range(0, len(waiting), 500):
        await asyncio.gather(
            *(storage.approvals.insert(approval) for approval in waiting[at : at + 500])
        )


@asynccontextmanager
async def databases(directory: Path) -> AsyncIterator[dict[str, Stores]]:
    """A file, and a database over the wire."""
    async with AsyncExitStack() as stack:
        sqlite = SqliteStores(directory / "sqlite")
        await sqlite.open()
        stack.push_async_callback(sqlite.close)
        server = spawn_mongo_server(directory / "mongo")
        stack.callback(server.stop)
        mongo = MongoStores(
            server.uri, driver="pymongo", database="bench", timeout=timedelta(seconds=20)
        )
        await mongo.open()
        stack.push_async_callback(mongo.close)
        yield {"SQLite file": sqlite, "nx-27017 by pymongo": mongo}


async def sweep() -> None:
    """Looking for due work among many that wait."""
    rows = []
    sizes = (100, 1_000) if QUICK else (1_000, 10_000, 100_000)
    with tempfile.TemporaryDirectory() as directory:
        async with databases(Path(directory)) as storage_by_name:
            for name, storage in storage_by_name.items():
                held, base = 0, 0.0
                for size in sizes:
                    if "nx" in name and size > 10_000:
                        continue  # the test double takes minutes to be filled
                    await add_all(storage, pending(size - held, due=0 if held else 10))
                    held = size

                    async def once(storage: Stores = storage) -> None:
                        due = await storage.approvals.due(now_ms=NOW, limit=50)
                        assert len(due) == 10
                        await storage.threads.due(now_ms=NOW, limit=50)

                    took = await seconds(once, repeat=15)
                    base = base or took
                    counting = await _counting(storage)
                    cells = (f"{took * 1e3:.2f} ms", f"{took / base:.2f}", counting)
                    rows.append((name, f"{size:,}", *cells, await _opening(storage)))
    head = ("database", "pending", "sweep with 10 due", "against 1,000", "count_pending", "open")
    table("By how many wait", head, rows)


async def _counting(storage: Stores) -> str:
    try:
        return f"{await seconds(partial(count_pending, storage.approvals), repeat=5) * 1e3:.2f} ms"
    except StoreUnavailableError as error:
        return f"{error}"


async def _opening(storage: Stores) -> str:
    """How long a file takes to be opened; it stays open."""
    if not isinstance(storage, SqliteStores):
        return ""
    times = []
    for _ in range(3):
        await storage.close()
        begin = time.perf_counter()
        await storage.open()
        times.append(time.perf_counter() - begin)
    return f"{statistics.median(times) * 1e3:.1f} ms"


async def many_threads() -> None:
    """A database with 10,000 threads against an empty one."""
    count = 100 if QUICK else 10_000
    with tempfile.TemporaryDirectory() as directory:
        storage = SqliteStores(Path(directory))
        await storage.open()
        counted = Counted(storage.checkpoints, storage.log)

        async def once() -> None:
            for _ in range(10):
                await round_trip(counted, uuid.uuid4().hex)

        empty = await seconds(once)
        for at in range(0, count, 100):
            await asyncio.gather(*(round_trip(counted, f"old-{at + n}") for n in range(100)))
            await asyncio.gather(
                *(storage.threads.ensure(a_thread(thread_id=f"T1:C1:{at + n}")) for n in range(100))
            )
        full = await seconds(once)
        await storage.close()
    rows = [("empty", f"{empty * 100:.2f} ms", "1.00")]
    rows.append((f"{count:,} threads", f"{full * 100:.2f} ms", f"{full / empty:.2f}"))
    table("Interrupt and resume, by the size of the database (SQLite)", ("", "time", ""), rows)


async def one_thread() -> None:
    """40 approvals in one thread, one after the other, through the bot's use cases."""
    count = 40
    turns = [turn for n in range(count) for turn in (_pay(n), say(f"Paid {n}."))]
    with tempfile.TemporaryDirectory() as directory:
        storage = SqliteStores(Path(directory))
        await storage.open()
        office = Office(storage, turns)
        times = []
        for number in range(count):
            begin = time.perf_counter()
            await office.hear(f"<@{BOT}> pay Ben", ts=f"1800000000.{number + 1:06d}")
            await office.decide(await office.the_approval())
            times.append(time.perf_counter() - begin)
        assert len(office.ran) == count
        await storage.close()
    first, last = statistics.median(times[: count // 5]), statistics.median(times[-count // 5 :])
    rows = [
        ("first fifth", f"{first * 1e3:.2f} ms", "1.00"),
        ("last fifth", f"{last * 1e3:.2f} ms", f"{last / first:.2f}"),
    ]
    table(f"{count} approvals in one thread: message, card, decision, answer", ("", "", ""), rows)


def _pay(number: int) -> Turn:
    return call("pay", {"to": "Ben", "amount": number + 1}, id=f"c{number}")


async def memory() -> None:
    """What many pending approvals cost a process that holds nothing."""
    code = (
        "import asyncio, resource, sys\n"
        "from pathlib import Path\n"
        "from benchmarks.bench_storage import add_all, pending\n"
        "from tests.support.stores import SqliteStores\n"
        "async def main():\n"
        "    storage = SqliteStores(Path(sys.argv[1]))\n"
        "    await storage.open()\n"
        "    for _ in range(20):\n"
        "        await storage.approvals.due(now_ms=1_800_000_000_000, limit=50)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "    await storage.close()\n"
        "asyncio.run(main())\n"
    )
    sizes = []
    with tempfile.TemporaryDirectory() as directory:
        for count in (0, PENDING):
            path = Path(directory) / str(count)
            storage = SqliteStores(path)
            await storage.open()
            await add_all(storage, pending(count, due=10))
            await storage.close()
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", code, str(path)],
                capture_output=True,
                check=True,
                text=True,
            )
            sizes.append(int(done.stdout) * (1 if sys.platform == "darwin" else 1024))
    rows = [
        ("none", f"{sizes[0] / 2**20:.1f} MiB"),
        (f"{PENDING:,}", f"{sizes[1] / 2**20:.1f} MiB"),
        ("difference", f"{(sizes[1] - sizes[0]) / 2**20:.1f} MiB"),
    ]
    table("Memory of a process that sweeps, by pending approvals", ("pending", "peak"), rows)


async def start_up() -> None:
    """From the command to the first `/readyz`, what the process holds then; and short commands."""
    times: list[float] = []
    held: list[float] = []
    async with AsyncExitStack() as stack:
        api = await slack(stack)
        for _ in range(STARTS):
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            port = free_port()
            environ = {
                "PATH": "/usr/bin",
                "SLACK_BOT_TOKEN": "xoxb-1",
                "SLACK_SIGNING_SECRET": "0123456789abcdef0123456789abcdef",
                "SLACK_API_URL": f"{api}/api/",
                "COUNTERSIGN_APPROVERS": "U0ADA000001",
                "COUNTERSIGN_PORT": str(port),
                "COUNTERSIGN_DATA_DIR": directory,
                "COUNTERSIGN_LOG": "error",
            }
            begin = time.perf_counter()
            bot = await asyncio.to_thread(
                subprocess.Popen, [sys.executable, "-m", "bot", "run"], env=environ
            )
            await _ready(port)
            times.append(time.perf_counter() - begin)
            held.append(_resident(bot.pid))
            bot.terminate()
            await asyncio.to_thread(bot.wait)
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        storage = SqliteStores(Path(directory))
        await storage.open()
        await storage.close()
        rows = [("`countersign run` to `/readyz`", f"{statistics.median(times):.2f} s", "")]
        rows.append(("its memory when ready", f"{statistics.median(held) / 2**20:.0f} MiB", ""))
        backups = [["backup", f"{directory}/{n}", "--data-dir", directory] for n in range(3)]
        for commands in ([["--help"]] * 3, backups):
            laps = [await asyncio.to_thread(_command, words) for words in commands]
            wall, cpu = (min(lap[at] for lap in laps) for at in (0, 1))
            rows.append((f"`countersign {commands[0][0]}`", f"{wall:.2f} s", f"{cpu:.2f} s"))
    table("Processes", ("", "median; least of 3", "processor time"), rows)


def _resident(pid: int) -> float:
    """Memory of another process, in bytes; 0 where the system does not tell it in files."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024.0 for line in lines if line.startswith("VmRSS"))


def _command(words: list[str]) -> tuple[float, float]:
    """Seconds on the clock and of processor time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bot", *words], check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _ready(port: int) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(600):
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.02)
    raise TimeoutError("the bot did not start")


async def main() -> None:
    """Run all of them."""
    await sweep()
    await many_threads()
    await one_thread()
    await memory()
    await start_up()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nPeak memory of this benchmark: {peak / 1024:.0f} MiB")


if __name__ == "__main__":
    run(main)
