"""The chaos test with programs that ask: they, the bots and the database die while people decide.

Each program is a process with several requests at once, and is killed before and after it asks,
starts, acts and reports; the next one with its key goes on with all of them. A receiver of webhooks
fails, too. At the end, each request must have one id and one end, each start one token, and each
event must have arrived, in order.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import asdict, dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import Any

from bot.api.requests import MOST_PER_PERSON
from bot.records.approval import Approval, ExecutionMode, ExecutionState, Kind, Status
from bot.records.programs import ProgramLimits, program_id
from bot.records.webhooks import WebhookEndpoint, new_secret
from bot.stores import Stores
from storage.errors import StorageError
from tests.chaos import program
from tests.chaos.play import (
    AGAIN,
    APPROVE,
    GIVE_UP,
    RAN,
    Play,
    Report,
    buttons_that_act,
)
from tests.chaos.program import HASTY_S, PLACES, ProgramPlan, is_hasty, mode_of
from tests.chaos.receiver import WildReceiver, faults_of
from tests.support.forked import fork_bot
from tests.support.ports import free_port
from tests.support.programs.keys import add_program
from tests.support.stage import buttons

EACH = MOST_PER_PERSON
"""Requests of one program, at most, as it may ask no person more at once."""
LIVES = 6
"""So many lives of each program end by a death; the one after them goes on to its end."""
FREEZES = 10
"""So many freezes, at most."""
LAST_S = 20
"""In the last seconds of hasty requests, people decide about every other one."""
OUTSIDE = "outside"
"""The place of a death by a kill from outside, wherever the program is."""


@dataclass(frozen=True, slots=True)
class Start:
    """A start of which a program saw the token.

    Attributes:
        generation: Number of the start.
        token: Its token.
        asked_ms: When the program asked for it.
        at_ms: When it had the answer.
    """

    generation: int
    token: str
    asked_ms: int
    at_ms: int

    def is_within(self, begin_ms: int, end_ms: int) -> bool:
        """Whether it was asked for, and answered, between two times."""
        return begin_ms <= self.asked_ms and self.at_ms <= end_ms


@dataclass(slots=True)
class Asked:
    """What the programs with one key have seen and done, by their journal.

    Attributes:
        mode: Of the execution.
        ids: Of their request.
        since_ms: When one first knew such an id; 0 before.
        ends: How it ended, each time that one read it.
        starts: Starts with their tokens.
        acts: The arguments with which they acted.
        execution_ids: Of these acts.
        is_over: Whether the last one came to its end.
    """

    mode: str
    ids: set[str] = field(default_factory=set)
    since_ms: int = 0
    ends: set[str] = field(default_factory=set)
    starts: list[Start] = field(default_factory=list)
    acts: list[dict[str, Any]] = field(default_factory=list)
    execution_ids: set[str] = field(default_factory=set)
    is_over: bool = False

    def add(self, line: Mapping[str, Any]) -> None:
        """Take a line of the journal."""
        match line["what"]:
            case "asked":
                self.ids.add(line["id"])
                self.since_ms = self.since_ms or line["at_ms"]
            case "decided":
                self.ends.add(line["status"])
            case "started":
                start = (line["generation"], line["token"], line["asked_ms"], line["at_ms"])
                self.starts.append(Start(*start))
            case "acted":
                self.acts.append(line["arguments"])
                self.execution_ids.add(line.get("execution_id", ""))
            case _:
                self.is_over = True


class AskingPrograms(Play):
    """One run with programs."""

    # A bot that starts asks for the members of each channel, and ends if Slack fails to say.
    per_channel = EACH

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked = [Asked(mode=mode_of(job)) for job in range(self.setting.threads)]
        self.journal = self.setting.directory / "journal"
        self.journal.touch()
        self._read = 0
        self.receiver = WildReceiver(Random(self.setting.seed))  # noqa: S311 - not for secrets
        self._ports = [free_port() for _ in range(self.setting.processes)]
        self._taken: dict[int, str] = {}
        self._keys: list[str] = []

    def _rules(self) -> dict[str, str]:
        port = self._free_slot()
        self._taken[port] = f"bot-{len(self._names)}"
        return {
            **super()._rules(),
            "COUNTERSIGN_CHANNELS": ",".join(self.channels),
            "COUNTERSIGN_API_PORT": str(port),
            "COUNTERSIGN_CALLBACK_PRIVATE": "127.0.0.0/8,::1/128",
        }

    async def _until_next_freeze(self) -> None:
        """Wait for some more decisions: each freeze, and its end, changes all cards."""
        next_one = self._passed() + self.setting.threads / FREEZES
        while self._passed() < next_one and not self._is_over.is_set():
            await self._pause(0.1, 1)

    def _free_slot(self) -> int:
        """Return the port of a bot that died, or that was not started yet."""
        dead = {bot.name for bot in self.bots if not bot.is_alive()}
        free = [port for port in self._ports if self._taken.get(port, "") in {"", *dead}]
        return free[0]

    # ---- who plays ----------------------------------------------------------------------------

    async def run(self) -> Report:
        """Play until all is done, with a receiver of webhooks."""
        await self.receiver.start()
        try:
            return await super().run()
        finally:
            await self.receiver.stop()

    async def _ask(self) -> None:
        """All programs, each with the next one in its place when it dies."""
        await self._make_keys()
        await asyncio.gather(*(self._keep_asking(number) for number in range(len(self._keys))))

    def _people(self) -> list[Coroutine[Any, Any, None]]:
        return [*super()._people(), self._kill_database()]

    def _moment(self) -> float:
        return self.random.uniform(0, self.setting.threads)

    def _passed(self) -> float:
        """How many decisions programs have read: on a slow machine, deaths come as late."""
        self._read_journal()
        return sum(bool(asked.ends) for asked in self.asked)

    async def _make_keys(self) -> None:
        count = max(2, -(-self.setting.threads // EACH))
        while len(self._keys) < count:
            try:
                async with self._beside() as storage:
                    for number in range(len(self._keys), count):
                        self._keys.append(await self._add_program(storage, f"job-{number}"))
            except StorageError:
                await asyncio.sleep(0.1)  # the first bot has not made the database yet

    async def _add_program(self, storage: Stores, name: str) -> str:
        """Store a program and its endpoint, and return its key."""
        secret, endpoint_id = new_secret(), f"whe_{name}"
        self.receiver.secrets[endpoint_id] = secret.text
        endpoint = WebhookEndpoint(
            id=endpoint_id,
            program_id=program_id(name),
            url=self.receiver.url_of(endpoint_id),
            secrets=(secret,),
            created_ms=1,
        )
        await storage.webhooks.endpoints.insert(endpoint)
        return await add_program(
            storage,
            name,
            team_id=self.sandbox.workspace.team_id,
            owner_id=self.sandbox.user_id("Rosa"),
            channels=tuple(self.channels),
            callback_hosts=(self.receiver.host,),
            limits=ProgramLimits(create=10_000, pending=1_000, waiting=1_000),
        )

    async def _keep_asking(self, number: int) -> None:
        """Start one program after the other in the place of one, until its jobs are over."""
        await asyncio.sleep(self.random.uniform(0, 0.5) * number)  # not all at once
        life = 0
        while jobs := self._open_jobs(number):
            life += 1
            log = self.setting.directory / f"program-{number}-{life}.log"
            place = self.random.choice([*PLACES, OUTSIDE]) if life <= LIVES else ""
            process = self._start_program(number, place, jobs, log)
            left_s = self.random.uniform(0, 4) if place == OUTSIDE else float("inf")
            while process.is_alive():
                await asyncio.sleep(0.05)  # another process: there is no event to wait for
                left_s -= 0.05
                if left_s < 0:
                    process.kill()
            process.join()
            self._read_journal()
            if process.exitcode == -9:
                self.report.deaths["program"] += 1
            elif process.exitcode:
                fault = log.read_text()[-500:]
                self.report.wrong.append(f"{process.name} ended with {process.exitcode}: {fault}")
                return

    def _open_jobs(self, number: int) -> list[int]:
        jobs = range(number, self.setting.threads, len(self._keys))
        left = [job for job in jobs if not self.asked[job].is_over]
        return sorted(left, key=is_hasty, reverse=True)  # else their cards may come too late

    def _start_program(
        self, number: int, place: str, jobs: list[int], log: Path
    ) -> ForkServerProcess:
        plan = ProgramPlan(
            jobs=jobs,
            channels=[self.channels[job % len(self.channels)] for job in jobs],
            urls=[f"http://127.0.0.1:{port}" for port in self._ports],
            key=self._keys[number],
            journal=str(self.journal),
            place=place,
            number=self.random.randint(1, -(-len(jobs) // 2)),
            seed=self.random.randrange(1 << 30),
        )
        environ = {program.PLAN: json.dumps(asdict(plan))}
        return fork_bot(environ, log, run=program.run, name=log.stem)

    def _read_journal(self) -> None:
        with self.journal.open("rb") as file:
            file.seek(self._read)
            for text in file:
                line = json.loads(text)
                self.asked[line["job"]].add(line)
            self._read = file.tell()

    async def _kill_database(self) -> None:
        """Kill the server of the database now and then, and start it again on its data."""
        server = self.setting.server
        if server is None:
            return
        for moment in sorted(self._moment() for _ in range(self.setting.kills)):
            while self._passed() <= moment:
                if self._all_done():
                    return
                await asyncio.sleep(0.05)  # people look now and then
            await asyncio.to_thread(server.kill)
            try:
                await asyncio.sleep(self.random.uniform(0, 2))  # the time without a database
            finally:
                await asyncio.to_thread(server.start)
            self.report.deaths["database"] += 1

    def _end_trouble(self) -> None:
        super()._end_trouble()
        self.receiver.is_wild = False

    def _wish(self, card: dict[str, Any]) -> str:
        """What people want of a card; they leave hasty requests alone, or decide at the last."""
        number = _job_of(card)
        if not is_hasty(number) or AGAIN in buttons(card):
            return super()._wish(card)
        is_late = time.time() - self.asked[number].since_ms / 1_000 > HASTY_S - LAST_S
        return APPROVE if is_late and number % 2 else "nothing"

    def _doubt_wish(self, card: dict[str, Any]) -> str:
        """Somebody looks in the other system, and says what is true."""
        if self.asked[_job_of(card)].acts:
            return RAN
        return AGAIN if self.random.random() < 0.8 else GIVE_UP

    # ---- is it over? ---------------------------------------------------------------------------

    def _all_done(self) -> bool:
        return all(asked.is_over for asked in self.asked) and not self._open_cards()

    def _is_done(self, number: int) -> bool:
        return self.asked[number].is_over

    def _shows(self, number: int) -> list[str]:
        return [str(self.asked[number]), *self._open_cards()]

    def _open_cards(self) -> list[str]:
        return [
            f"{message['ts']} {str(message.get('text'))[:80]!r}"
            for channel in self.channels
            for message in self.sandbox.messages(channel)
            if self._is_card(message) and buttons(message) and buttons_that_act(message)
        ]

    # ---- what must be true ---------------------------------------------------------------------

    async def check(self, storage: Stores) -> Report:
        """Compare what programs saw and did with the records, the audit and the cards."""
        self._read_journal()
        for number, asked in enumerate(self.asked):
            name = f"job {number} ({asked.mode})"
            if len(asked.ids) != 1:
                self._wrong(name, f"its key names {len(asked.ids)} requests")
                continue
            try:
                approval = await storage.approvals.get(next(iter(asked.ids)))
            except StorageError as error:
                self._wrong(name, f"lost: {error}")
                continue
            doubts = await self._doubts(storage, approval)
            self.report.doubts += len(doubts)
            self.report.effects += len(asked.acts)
            self.report.approvals[str(approval.status)] += 1
            self._check_request(name, asked, approval)
            self._check_starts(name, asked, approval, doubts)
            self._check_freezes(name, asked)
            self._check_webhooks(name, asked, approval)
            await self._check_record(storage, name, approval)
            for shown in (approval, *doubts):
                self._check_shown(name, shown)
        return self.report

    async def _doubts(self, storage: Stores, approval: Approval) -> list[Approval]:
        page = await storage.approvals.find(
            {"thread_id": approval.thread_id}, sort=["created_ms", "position"]
        )
        about = approval.approval_id
        return [
            doubt
            for doubt in page.documents
            if doubt.kind is Kind.DOUBT and getattr(doubt.asker, "about", "") == about
        ]

    def _check_request(self, name: str, asked: Asked, approval: Approval) -> None:
        """Not lost, and decided once."""
        if len(asked.ends) != 1:
            self._wrong(name, f"it ended as {sorted(asked.ends)}")
        if approval.status is Status.PENDING or approval.open:
            self._wrong(name, f"it is not over: {approval.status}")
        if asked.acts and approval.status is not Status.APPROVED:
            self._wrong(name, f"it ran, and is {approval.status}")
        edited = approval.decision.arguments if approval.decision is not None else None
        wanted = dict(approval.arguments if edited is None else edited)
        if any(arguments != wanted for arguments in asked.acts):
            self._wrong(name, "other arguments ran than were approved")

    def _check_starts(
        self, name: str, asked: Asked, approval: Approval, doubts: Collection[Approval]
    ) -> None:
        """One token for each start, and a second start of a call only after people said so."""
        tokens = {(start.generation, start.token) for start in asked.starts}
        generations = Counter(generation for generation, _ in tokens)
        if generations.total() > len(generations):
            self._wrong(name, f"a start has several tokens: {dict(generations)}")
        execution = approval.execution
        if execution.mode is ExecutionMode.ONCE:
            again = sum(doubt.status is Status.APPROVED for doubt in doubts)
            starts = execution.program.generation
            if starts > 1 + again:
                self._wrong(name, f"{starts} starts, and people let it run again {again} times")
            if len(asked.acts) > 1:
                self._wrong(name, f"it ran {len(asked.acts)} times")
        if len(asked.execution_ids) > 1:
            self._wrong(name, "its starts have several execution ids")
        if execution.state in {ExecutionState.STARTED, ExecutionState.DOUBT}:
            begun, known = execution.program.generation, sorted(generations)
            left = f"its execution is left {execution.state}"
            self._wrong(name, f"{left} by start {begun}; programs had the starts {known}")

    def _check_freezes(self, name: str, asked: Asked) -> None:
        """No program asked for a start, and got it, while a freeze was in force."""
        for start in asked.starts:
            if any(start.is_within(*span) for span in self.frozen):
                self._wrong(name, "a program got a start under a confirmed freeze")

    def _check_webhooks(self, name: str, asked: Asked, approval: Approval) -> None:
        """Each event arrived at least once, and they came first in their order."""
        arrived = self.receiver.arrived[approval.approval_id]
        self.report.webhooks += len(arrived)
        starts = len({start.generation for start in asked.starts})
        for fault in faults_of(arrived, approval, ends=asked.ends, starts=starts):
            self._wrong(name, fault)

    async def _check_record(self, storage: Stores, name: str, approval: Approval) -> None:
        """The audit has each act once."""
        about = approval.approval_id
        entries = await storage.audit.of_thread(approval.thread_id, limit=2_000)
        acts = Counter(str(entry.action) for entry in entries if entry.approval_id == about)
        ends = acts["decided"] + acts["expired"]
        if acts["requested"] != 1 or ends != 1:
            self._wrong(name, f"its audit has {dict(acts)}")
        if acts["started"] < min(1, approval.execution.number):
            self._wrong(name, f"it started, and its audit has {dict(acts)}")

    def _check_shown(self, name: str, approval: Approval) -> None:
        """One card, which shows the end."""
        cards = [
            message
            for channel in self.channels
            for root in self.sandbox.messages(channel)
            for message in (root, *self.sandbox.messages(channel, thread_ts=root["ts"]))
            if self._is_card(message)
            and message["metadata"]["event_payload"]["id"] == approval.approval_id
        ]
        by_ts = {card["ts"]: card for card in cards}
        if len(by_ts) != 1:
            self._wrong(name, f"{approval.kind}: there are {len(by_ts)} cards")
        elif buttons_that_act(next(iter(by_ts.values()))):
            self._wrong(name, f"{approval.kind}: its card still asks ({approval.status})")

    def _wrong(self, name: str, what: str) -> None:
        self.report.wrong.append(f"{name}: {what}")


def _job_of(card: dict[str, Any]) -> int:
    """Return the number of the job that a card is about."""
    match = re.search(r"job-(\d+)-1", str(card["blocks"]))
    assert match is not None, card
    return int(match[1])
