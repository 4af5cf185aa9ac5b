"""One program that asks, in a process of its own, and ends by SIGKILL as planned.

Each of its jobs has an idempotency key, and nothing else that outlives the process. It writes what
it saw and did to a journal, which only the test reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

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


def mode_of(job: int) -> str:
    """Return the mode of execution of a job."""
    return MODES[job % len(MODES)]


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """What one process does.

    Attributes:
        jobs: Numbers of its jobs.
        channels: Slack id of the channel of each job.
        urls: Addresses of the bots.
        key: Key of the program.
        journal: Path of the file that the test reads.
        places: Where the process dies in each job, of `PLACES`; empty for nowhere.
        seed: Of everything that is random.
    """

    jobs: Sequence[int]
    channels: Sequence[str]
    urls: Sequence[str]
    key: str
    journal: str
    places: Sequence[str]
    seed: int = 0


@dataclass
class Job:
    """One job of a process, from its first line to its end."""

    number: int
    channel: str
    place: str
    plan: ProgramPlan
    random: Random
    is_over: bool = False

    async def do(self) -> None:
        """Ask, wait, start, act and report; begin again when no bot answers."""
        while not self.is_over:
            url = self.random.choice(self.plan.urls)
            try:
                async with AsyncCountersign(url, self.plan.key, patience=5) as client:
                    await self._do_with(client)
            except (Unreachable, ApiError, StillPending):
                await asyncio.sleep(0.2)  # the next bot may live
        self._note("over")

    async def _do_with(self, client: AsyncCountersign) -> None:
        request = await self._create(client)
        self._note("asked", id=request.id)
        self._die_at("asked")
        while True:
            self._die_within("waiting")
            request = await client.wait(request)
            self._note("decided", status=request.status)
            if request.status != "approved" or request.execution.state in ENDED:
                self.is_over = True
                return
            if await self._act(client, request):
                self.is_over = True
                return
            await asyncio.sleep(0.2)  # people have to say what became of it, or lift a freeze
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
        self._die_within("starting")
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
        self._die_at("started")
        self._note("acted", arguments=arguments, execution_id=run.execution_id)
        self._die_at("acted")
        try:
            await client.report(request.id, "ran", "3 pods", token=run.token)
        except ApiError as error:  # people may have said what became of it
            if error.code != "result-known":
                raise
        self._die_at("reported")
        return True

    def _note(self, what: str, **facts: Any) -> None:
        """Append a line to the journal, in one write: lines of several processes do not mix."""
        line = json.dumps({"job": self.number, "what": what, "at_ms": _now_ms(), **facts})
        file = os.open(self.plan.journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{line}\n".encode())
        os.close(file)

    def _die_at(self, place: str) -> None:
        if place == self.place:
            _die()

    def _die_within(self, place: str) -> None:
        if place == self.place:
            seconds = self.random.uniform(0, LONGEST_S[place])
            asyncio.get_running_loop().call_later(seconds, _die)


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
    async with asyncio.TaskGroup() as group:
        for job, channel, place in zip(plan.jobs, plan.channels, plan.places, strict=True):
            random = Random(f"{plan.seed} {job}")  # noqa: S311 - not for secrets
            group.create_task(Job(job, channel, place, plan, random).do())


def run() -> None:
    """Be a program; the entry of a process of its own."""
    asyncio.run(main())
