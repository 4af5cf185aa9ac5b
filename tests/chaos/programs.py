"""The chaos test with programs that ask: they, the bots and the database fail while people decide.

Each program has an idempotency key for its call, and nothing else that outlives it. It dies before
and after it asks, starts, acts and reports; the next one with its key goes on. At the end, each
request must have one id and one end, and each start one token.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from bot.records.approval import Approval, ExecutionMode, ExecutionState, Kind, Status
from bot.records.programs import (
    ProgramKeyRecord,
    ProgramLimits,
    ProgramRecord,
    ProgramScope,
    key_digest,
    key_id,
    new_key,
    program_id,
)
from bot.records.webhooks import new_secret
from bot.stores import Stores
from countersign_client import (
    AlreadyStarted,
    ApiError,
    AsyncCountersign,
    AsyncRun,
    DecisionLapsed,
    NotStarted,
    Request,
    Unreachable,
)
from storage.errors import StorageError
from tests.chaos.play import AGAIN, GIVE_UP, RAN, Play, Report, buttons_that_act
from tests.support.ports import free_port
from tests.support.stage import buttons

EACH = 5
"""Requests of one program."""
MODES = ("once", "once", "idempotent", "none")
KINDS = ("approval", "edit", "approval")
PLACES = ("asked", "waiting", "starting", "started", "acted", "reported")
"""Where programs die: after these, or in the middle of them."""
ENDED = frozenset({"ran", "failed", "not_run", "lapsed"})
LIVES = 40
"""So often a program is begun; the last lives of all are over in time."""


class DeadProgramError(Exception):
    """A program ends at once; nothing that it knew is left."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a program did.

    Attributes:
        generation: Of the start; 0 where there is none.
        token: Of the start.
        execution_id: Of the start.
        arguments: With what.
    """

    generation: int
    token: str
    execution_id: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class Asked:
    """What the programs with one key have seen and done, as nobody but the test knows.

    Attributes:
        mode: Of the execution.
        ids: Of their request.
        ends: How it ended, each time that one read it.
        tokens: Of each generation.
        acts: What they did.
        lives: How many programs there were.
        is_over: Whether the last one came to its end.
    """

    mode: str
    ids: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    tokens: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    acts: list[Act] = field(default_factory=list)
    lives: int = 0
    is_over: bool = False


class AskingPrograms(Play):
    """One run with programs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked = [
            Asked(mode=MODES[number % len(MODES)]) for number in range(self.setting.threads)
        ]
        self._ports = [free_port() for _ in range(self.setting.processes)]
        self._taken: dict[int, str] = {}
        self._keys: list[str] = []

    def _rules(self) -> dict[str, str]:
        port = self._free_slot()
        self._taken[port] = f"bot-{len(self._names)}"
        return {**super()._rules(), "COUNTERSIGN_API_PORT": str(port)}

    def _free_slot(self) -> int:
        """Return the port of a bot that died, or that was not started yet."""
        dead = {bot.name for bot in self.bots if not bot.is_alive()}
        free = [port for port in self._ports if self._taken.get(port, "") in {"", *dead}]
        return free[0]

    # ---- who plays ----------------------------------------------------------------------------

    async def _ask(self) -> None:
        """All programs, each with the next one in its place when it dies."""
        await self._make_keys()
        await asyncio.gather(*(self._ask_until_over(n) for n in range(self.setting.threads)))

    async def _make_keys(self) -> None:
        while not self._keys:
            try:
                async with self._beside() as storage:
                    for number in range(-(-self.setting.threads // EACH)):
                        self._keys.append(await self._a_key(storage, f"job-{number}"))
            except StorageError:
                await asyncio.sleep(0.1)  # the first bot has not made the database yet

    async def _a_key(self, storage: Stores, name: str) -> str:
        now, key = time.time_ns() // 1_000_000, new_key()
        program = ProgramRecord(
            id=program_id(name),
            team_id=self.sandbox.workspace.team_id,
            name=name,
            owner_id=self.sandbox.user_id("Rosa"),
            salt=secrets.token_hex(32),
            scopes=(ProgramScope.WRITE, ProgramScope.READ),
            tools=("*",),
            channels=tuple(self.channels),
            callback_secrets=(new_secret(),),
            limits=ProgramLimits(create=10_000, pending=1_000, waiting=1_000),
            created_ms=now,
        )
        await storage.programs.add(program)
        record = ProgramKeyRecord(
            id=key_id(key) or "",
            program_id=program.id,
            digest=key_digest(key),
            created_ms=now,
            expires_ms=now + 10**9,
        )
        await storage.programs.add_key(record)
        return key

    async def _ask_until_over(self, number: int) -> None:
        asked = self.asked[number]
        await asyncio.sleep(self.random.uniform(0, 0.1) * number)  # not all at once
        while not asked.is_over:
            asked.lives += 1
            place = "" if asked.lives > LIVES or self.random.random() > 0.5 else self._place()
            url = f"http://127.0.0.1:{self.random.choice(self._ports)}"
            try:
                async with AsyncCountersign(url, self._keys[number // EACH], patience=5) as client:
                    await self._live(client, number, place)
            except DeadProgramError:
                self.report.deaths["program"] += 1
            except (Unreachable, ApiError):
                await asyncio.sleep(0.2)  # the next one may meet a bot that lives

    def _place(self) -> str:
        return self.random.choice(PLACES)

    async def _live(self, client: AsyncCountersign, number: int, place: str) -> None:
        """One program, from its first line to its last, or to its death."""
        asked = self.asked[number]
        request = await self._asking(client, number)
        asked.ids.add(request.id)
        self._die_at(place, "asked")
        while True:
            try:
                async with asyncio.timeout(self._until("waiting", place)):
                    request = await client.wait(request)
            except TimeoutError as error:
                raise DeadProgramError from error
            asked.ends.add(request.status)
            if request.status != "approved" or request.execution.state in ENDED:
                asked.is_over = True
                return
            if await self._acts(client, asked, request, place):
                asked.is_over = True
                return
            await asyncio.sleep(0.2)  # people have to say what became of it, or lift a freeze
            request = await client.get(request.id)

    async def _asking(self, client: AsyncCountersign, number: int) -> Request:
        kind = KINDS[number % len(KINDS)]
        return await client.create(
            f"Do job-{number}-1",
            key=f"job-{number}",
            kind=kind,
            tool="pay",
            arguments={"ref": f"job-{number}-1", "amount": 10},
            execution=self.asked[number].mode,  # type: ignore[arg-type]
            channel=self.channels[number % len(self.channels)],
        )

    async def _acts(
        self, client: AsyncCountersign, asked: Asked, request: Request, place: str
    ) -> bool:
        """Start, act and report; whether nothing is left to do."""
        decision = request.decision
        assert decision is not None
        arguments = dict(decision.arguments or {})
        if asked.mode == "none":
            if decision.usable and not asked.acts:
                asked.acts.append(Act(0, "", "", arguments))
            return bool(asked.acts)
        try:
            run = await self._started(client, request, arguments, place)
        except AlreadyStarted:
            now = await client.get(request.id)
            if now.execution.state == "started":
                await client.report(request.id, "unknown", "Began after a crash")
            return now.execution.state in ENDED
        except NotStarted as refusal:
            return isinstance(refusal, DecisionLapsed)
        asked.tokens[run.generation].add(run.token)
        self._die_at(place, "started")
        asked.acts.append(Act(run.generation, run.token, run.execution_id, arguments))
        self._die_at(place, "acted")
        try:
            await client.report(request.id, "ran", "3 pods", token=run.token)
        except ApiError as error:  # people may have said what became of it
            if error.code != "result-known":
                raise
        self._die_at(place, "reported")
        return True

    async def _started(
        self, client: AsyncCountersign, request: Request, arguments: dict[str, Any], place: str
    ) -> AsyncRun:
        try:
            async with asyncio.timeout(self._until("starting", place)):
                return await client.start(request, tool="pay", arguments=arguments)
        except TimeoutError as error:
            raise DeadProgramError from error

    def _die_at(self, place: str, here: str) -> None:
        if place == here:
            raise DeadProgramError

    def _until(self, here: str, place: str) -> float | None:
        """Seconds until a program dies in the middle of something; None for one that lives."""
        return self.random.uniform(0, 2 if here == "waiting" else 0.05) if here == place else None

    def _doubt_wish(self, card: dict[str, Any]) -> str:
        """Somebody looks in the other system, and says what is true."""
        number = next(
            n for n in reversed(range(len(self.asked))) if f"job-{n}-1" in str(card["blocks"])
        )
        if self.asked[number].acts:
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
        if any(act.arguments != wanted for act in asked.acts):
            self._wrong(name, "other arguments ran than were approved")

    def _check_starts(
        self, name: str, asked: Asked, approval: Approval, doubts: Collection[Approval]
    ) -> None:
        """One token for each start, and a second start of a call only after people said so."""
        for generation, tokens in asked.tokens.items():
            if len(tokens) > 1:
                self._wrong(name, f"start {generation} has {len(tokens)} tokens")
        again = sum(doubt.status is Status.APPROVED for doubt in doubts)
        execution = approval.execution
        if execution.mode is ExecutionMode.ONCE and execution.program.generation > 1 + again:
            starts = execution.program.generation
            self._wrong(name, f"{starts} starts, and people let it run again {again} times")
        if execution.mode is not ExecutionMode.IDEMPOTENT and len(asked.acts) > 1:
            self._wrong(name, f"it ran {len(asked.acts)} times")
        if len({act.execution_id for act in asked.acts}) > 1:
            self._wrong(name, "its starts have several execution ids")
        if execution.state in {ExecutionState.STARTED, ExecutionState.DOUBT}:
            self._wrong(name, f"its execution is left {execution.state}")

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
