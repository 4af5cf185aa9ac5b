"""One program that asks, in a process of its own, and ends by SIGKILL as planned.

All of its jobs die with it. Each has an idempotency key, and nothing else that outlives the
process. It writes what it saw and did to a journal, which only the test reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx

from countersign_client import (
    AlreadyStarted,
    ApiError,
    AsyncCountersign,
    DecisionLapsed,
    NotStarted,
    Request,
    StillPending,
    Unreachable,
)

PLAN = "CHAOS_PROGRAM"
"""The variable with the plan of a process, as JSON."""
MODES = ("once", "once", "idempotent", "none")
KINDS = ("approval", "edit", "approval")
PLACES = ("asked", "waiting", "starting", "started", "acted", "reported")
"""Where programs die: after these, or in the middle of `waiting` and `starting`."""
ENDED = frozenset({"ran", "failed", "not_run", "lapsed"})
LONGEST_S = {"waiting": 2.0, "starting": 0.05}
"""Longest time in the middle of something until a program dies there, in seconds."""
HASTY_S = 60
"""Seconds after which a hasty request expires; the API takes no shorter time."""


def mode_of(job: int) -> str:
    """Return the mode of execution of a job."""
    return MODES[job % len(MODES)]


def is_hasty(job: int) -> bool:
    """Whether a job asks for a decision within `HASTY_S`."""
    return job % 11 == 10


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """What one process does.

    Attributes:
        jobs: Numbers of its jobs.
        channels: Slack id of the channel of each job.
        urls: Addresses of the bots.
        key: Key of the program.
        journal: Path of the file that the test reads.
        place: Where the process dies, of `PLACES`; empty for nowhere.
        number: The how-many-th time that one of its jobs reaches this place.
        seed: Of everything that is random.
    """

    jobs: Sequence[int]
    channels: Sequence[str]
    urls: Sequence[str]
    key: str
    journal: str
    place: str = ""
    number: int = 1
    seed: int = 0


@dataclass
class Life:
    """What the jobs of a process share: when it dies, and a client for each bot."""

    plan: ProgramPlan
    clients: Sequence[AsyncCountersign]
    random: Random
    reached: Counter[str] = field(default_factory=Counter)

    def at(self, place: str) -> None:
        """Reach a place; does not return when the process dies there."""
        if self._ends(place):
            _die()

    def within(self, place: str) -> None:
        """Begin something in the middle of which the process may die."""
        if self._ends(place):
            seconds = self.random.uniform(0, LONGEST_S[place])
            asyncio.get_running_loop().call_later(seconds, _die)

    def _ends(self, place: str) -> bool:
        self.reached[place] += 1
        return (place, self.reached[place]) == (self.plan.place, self.plan.number)


@dataclass
class Job:
    """One job of a process, from its first line to its end."""

    number: int
    channel: str
    life: Life
    is_over: bool = False

    async def do(self) -> None:
        """Ask, wait, start, act and report; begin again when no bot answers."""
        while not self.is_over:
            try:
                await self._do_with(self.life.random.choice(self.life.clients))
            except (Unreachable, ApiError, StillPending):
                await asyncio.sleep(0.2)  # the next bot may live
        self._note("over")

    async def _do_with(self, client: AsyncCountersign) -> None:
        request = await self._create(client)
        self._note("asked", id=request.id)
        self.life.at("asked")
        while True:
            self.life.within("waiting")
            request = await client.wait(request)
            self._note("decided", status=request.status)
            if request.status != "approved" or request.execution.state in ENDED:
                self.is_over = True
                return
            if await self._act(client, request):
                self.is_over = True
                return
            # People have to say what became of it, or lift a freeze.
            await asyncio.sleep(self.life.random.uniform(0.2, 1.5))
            request = await client.get(request.id)

    async def _create(self, client: AsyncCountersign) -> Request:
        return await client.create(
            f"Do job-{self.number}-1",
            key=f"job-{self.number}",
            kind=KINDS[self.number % len(KINDS)],
            tool="pay",
            arguments={"ref": f"job-{self.number}-1", "amount": 10},
            execution=mode_of(self.number),  # type: ignore[arg-type]
            channel=self.channel,
            expires_in=HASTY_S if is_hasty(self.number) else None,
        )

    async def _act(self, client: AsyncCountersign, request: Request) -> bool:
        """Start, act and report; return whether nothing is left to do."""
        decision = request.decision
        assert decision is not None
        arguments = dict(decision.arguments or {})
        if mode_of(self.number) == "none":
            if decision.usable:
                self._note("acted", arguments=arguments)
            return decision.usable
        asked_ms = _now_ms()
        self.life.within("starting")
        try:
            run = await client.start(request, tool="pay", arguments=arguments)
        except AlreadyStarted:
            now = await client.get(request.id)
            if now.execution.state == "started":
                await client.report(request.id, "unknown", "Began after a crash")
            return now.execution.state in ENDED
        except NotStarted as refusal:
            return isinstance(refusal, DecisionLapsed)
        self._note("started", generation=run.generation, token=run.token, asked_ms=asked_ms)
        self.life.at("started")
        self._note("acted", arguments=arguments, execution_id=run.execution_id)
        self.life.at("acted")
        try:
            await client.report(request.id, "ran", "3 pods", token=run.token)
        except ApiError as error:
            if error.code != "result-known":
                raise
            # People have said what became of it; or the start of a process that has died came after
            # ours, and nobody reports it: an idempotent call then starts once more.
            now = await client.get(request.id)
            return now.execution.state in ENDED
        self.life.at("reported")
        return True

    def _note(self, what: str, **facts: Any) -> None:
        """Append a line to the journal, in one write: lines of several processes do not mix."""
        line = json.dumps({"job": self.number, "what": what, "at_ms": _now_ms(), **facts})
        file = os.open(self.life.plan.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{line}\n".encode())
        os.close(file)


def read_journal(path: Path) -> list[Mapping[str, Any]]:
    """Return the lines of a journal, oldest first."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def main() -> None:
    """Do all jobs at once."""
    plan = ProgramPlan(**json.loads(os.environ[PLAN]))
    # One for all jobs, and without certificates, which take 30 ms to load: bots are on loopback.
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx.AsyncClient(verify=bare) as http, asyncio.TaskGroup() as group:
        clients = [AsyncCountersign(url, plan.key, patience=5, http=http) for url in plan.urls]
        life = Life(plan, clients, Random(plan.seed))  # noqa: S311 - not for secrets
        for job, channel in zip(plan.jobs, plan.channels, strict=True):
            group.create_task(Job(job, channel, life).do())


def run() -> None:
    """Be a program; the entry of a process of its own."""
    asyncio.run(main())
