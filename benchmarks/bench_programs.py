"""What programs that wait cost the bot, and how soon they hear of a decision of another process.

python benchmarks/bench_programs.py [--quick]

The bot (embedded database) is a process of its own, and so is Slack. This process holds the polls
and writes the decisions into the same database, as a second bot does. Times run from the end of
that write to the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import aiohttp

from agents.models import call
from benchmarks.bench_clicks import SECRET, free_port, slack
from benchmarks.harness import percentile, run, seconds, table
from bot.approvals.changes import decided
from bot.records.approval import Approval, Decision, Status
from bot.records.programs import ProgramLimits, key_id
from bot.stores import Stores
from storage.documents import update
from tests.cost.counting import counting, watching
from tests.support.programs.keys import add_program
from tests.support.stores import SqliteStores
from tests.unit.bot.api.program_office import a_caller, a_request, an_office

QUICK = "--quick" in sys.argv
POLLS = 20 if QUICK else 1_000
PROGRAMS = 10
PAUSE_S = 0.02
CREATED = 5 if QUICK else 100
ASKS_ALL = {"name": "all", "when": {}, "then": {"ask": {"approve": [{"from": ["sre"]}]}}}
CALL = {"title": "Deploy", "tool": "deploy", "arguments": {"env": "production"}}


@dataclass(frozen=True, slots=True)
class Door:
    """A bot with its door for programs.

    Attributes:
        url: Address of the API.
        pid: The bot's process.
        storage: Its database, open beside it.
        keys: A key of each program.
        http: A client without a limit of connections.
    """

    url: str
    pid: int
    storage: Stores
    keys: Sequence[str]
    http: aiohttp.ClientSession

    @property
    def memory_mib(self) -> float:
        """Resident memory of the bot."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    async def create(self, key: str, name: str) -> str:
        """Create a request; its id."""
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": name}
        url = f"{self.url}/v1/requests"
        async with self.http.post(url, headers=headers, json=CALL) as answer:
            body = await answer.json()
            assert answer.status == 201, body
            return str(body["id"])

    async def poll(self, key: str, request_id: str) -> tuple[float, int, str]:
        """Wait for a decision; when the answer came, its HTTP status, and the state or code."""
        headers = {"Authorization": f"Bearer {key}"}
        url = f"{self.url}/v1/requests/{request_id}?wait=55"
        async with self.http.get(url, headers=headers) as answer:
            body = json.loads(await answer.read())
        return time.monotonic(), answer.status, body.get("code") or body["status"]


@asynccontextmanager
async def a_door() -> AsyncIterator[Door]:
    """Start the bot as a process, with a key for each program."""
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        port = free_port()
        environ = {
            **{name: value for name, value in os.environ.items() if name in {"PATH", "HOME"}},
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": SECRET,
            "SLACK_API_URL": f"{await slack(stack)}/api/",
            "COUNTERSIGN_DATA_DIR": directory,
            "COUNTERSIGN_PORT": str(free_port()),
            "COUNTERSIGN_API_PORT": str(port),
            "COUNTERSIGN_APPROVERS": "U0ADA000001",
            "COUNTERSIGN_LOG": "error,text",
        }
        bot = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "run", env=environ)
        stack.push_async_callback(bot.wait)
        stack.callback(bot.terminate)
        await _until_connected(int(environ["COUNTERSIGN_PORT"]))
        storage = SqliteStores(Path(directory))
        await storage.open_beside()
        stack.push_async_callback(storage.close)
        keys = [
            await add_program(
                storage,
                f"ci-{number}",
                team_id="T1",
                owner_id="U199",
                channels=("C1",),
                limits=ProgramLimits(create=100_000, pending=10_000),
            )
            for number in range(PROGRAMS)
        ]
        await _until_connected(port)
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=90)
        )
        await stack.enter_async_context(http)
        yield Door(f"http://127.0.0.1:{port}", bot.pid, storage, keys, http)


async def _until_connected(port: int) -> None:
    for _ in range(1200):
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the bot did not listen")


async def _copies(door: Door, key: str, count: int) -> list[str]:
    """Create a request, and store it under so many ids; nothing but people's word is due."""
    name = await door.create(key, "first")
    await asyncio.sleep(1)  # its card is posted
    first = await door.storage.approvals.get(name)
    made = []
    for number in range(count):
        copy_id = f"{name[:-6]}{number:06x}"
        copy = first.changed(approval_id=copy_id, due_ms=None)
        await door.storage.approvals.insert(copy)
        made.append(copy_id)
    return made


def _approved(approval: Approval) -> Approval | None:
    """An approval as another bot leaves it, which does itself what is due then."""
    now = time.time_ns() // 1_000_000
    decision = Decision(status=Status.APPROVED, by="U0ADA000001", at_ms=now, digest=approval.digest)
    changed = decided(approval, decision, digest=approval.digest)
    return changed.changed(due_ms=None) if changed is not None else None


async def waiting(requests: int) -> tuple[object, ...]:
    """Hold all polls about so many requests, and decide these one by one."""
    async with a_door() as door:
        each = max(1, requests // PROGRAMS)
        places = [
            (key, name)
            for key in door.keys[: min(PROGRAMS, requests)]
            for name in await _copies(door, key, each)
        ]
        before = door.memory_mib
        polls: dict[asyncio.Task[tuple[float, int, str]], str] = {}
        for _, (key, name) in zip(range(POLLS), cycle(places), strict=False):
            polls[asyncio.create_task(door.poll(key, name))] = name
            await asyncio.sleep(0.002)  # a burst would wait for the system's queue of connections
        await asyncio.sleep(2)  # until all are held
        assert not any(poll.done() for poll in polls)
        held, idle = door.memory_mib, _cpu_s(door.pid)
        await asyncio.sleep(2)
        idle = (_cpu_s(door.pid) - idle) / 2
        written, busy = {}, _cpu_s(door.pid)
        for _, name in places:
            assert await update(door.storage.approvals, name, _approved) is not None
            written[name] = time.monotonic()
            await asyncio.sleep(PAUSE_S if requests == POLLS else 0.5)
        answers = await asyncio.gather(*polls)
        busy = _cpu_s(door.pid) - busy
        assert {answer[1:] for answer in answers} == {(200, "approved")}
        times = [at - written[name] for (at, *_), name in zip(answers, polls.values(), strict=True)]
        return (
            f"{POLLS} polls of {requests} requests",
            f"{held:.0f} MiB, {(held - before) * 1024 / POLLS:.1f} KiB each",
            f"{idle:.0%}",
            f"{busy * 1e3 / POLLS:.1f} ms",
            *(f"{percentile(times, part) * 1e3:.0f} ms" for part in (0.5, 0.95)),
            f"{max(times) * 1e3:.0f} ms",
            f"{door.memory_mib:.0f} MiB",
        )


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def revoked() -> None:
    """How long a poll is held whose key is revoked beside the bot."""
    async with a_door() as door:
        key = door.keys[0]
        name = await door.create(key, "k")
        poll = asyncio.create_task(door.poll(key, name))
        await asyncio.sleep(1)
        begin = time.monotonic()
        now = time.time_ns() // 1_000_000
        await door.storage.programs.revoke(key_id(key) or "", at_ms=now)
        end, status, code = await poll
        row = (f"{end - begin:.1f} s", f"{status} {code}")
        table("A held poll whose key is revoked by another process", ("ends after", "with"), [row])


async def creation() -> None:
    """A request of a program and of an agent, each with its posted card, in one process."""
    with tempfile.TemporaryDirectory() as directory, watching():
        storage = SqliteStores(Path(directory))
        await storage.open()
        turns = [call("pay", {"to": "Bo", "amount": 5}, id=str(n)) for n in range(2 + CREATED)]
        office = an_office(storage, ASKS_ALL, turns_of_model=turns)
        numbers = iter(range(10**6))

        async def by_agent() -> None:
            ts = f"1800000{next(numbers):03d}.000001"
            await office.hear("<@UBOT> pay", ts=ts, thread_ts=ts)

        async def by_program() -> None:
            number = next(numbers)
            # Each has a program of its own: a person has few undecided requests of one program.
            caller = a_caller(id=f"prg_{number}", name=f"ci-{number}")
            await a_request(office, caller, key=str(number))

        rows: list[tuple[object, ...]] = []
        for name, create in (("an agent, with its turn", by_agent), ("a program", by_program)):
            with counting() as count:
                await create()
            times = await seconds(create, repeat=CREATED)
            asked = await storage.approvals.count({"status": Status.PENDING.value})
            assert asked == (len(rows) + 1) * (2 + CREATED), f"{asked} requests wait for people"
            rows.append((name, count.total, count.writes, f"{times * 1e3:.1f} ms"))
        await storage.close()
    table("A request until its card is posted", ("of", "commands", "writes", "median"), rows)


async def main() -> None:
    """All tables."""
    head = (
        "what",
        "memory held",
        "processor, idle",
        "for each answer",
        "p50",
        "p95",
        "slowest",
        "memory after",
    )
    rows = [await waiting(POLLS), await waiting(PROGRAMS)]
    table("Polls that wait for a decision of another process", head, rows)
    await creation()
    if not QUICK:
        await revoked()


if __name__ == "__main__":
    run(main)
