"""The chaos test itself: what is started, who does what, and what must be true at the end."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

from bot.clock import system_clock
from bot.commands.call import CUT_OFF
from bot.errors import UnknownFreezeError
from bot.freezes.service import Freezes
from bot.records.approval import Approval, ExecutionState, Kind, Status
from bot.records.approval_queries import count_due, newest_of
from bot.records.switch import FreezeScope
from bot.stores import Stores
from slack_sandbox.server import Sandbox
from slack_sandbox.workspace.records import SlackChannel
from storage.audit import AuditEntry
from storage.errors import (
    RecordConflictError,
    RecordNotFoundError,
    StorageError,
    StoreUnavailableError,
)
from storage.mongo import Driver
from tests.chaos import process
from tests.chaos.agent import CRASHING, EFFECTS, effects
from tests.chaos.forms import close_all, filled, opened
from tests.support.forked import fork_bot
from tests.support.mongo import MongoServer
from tests.support.pace import hasty_seconds
from tests.support.ports import free_port
from tests.support.stage import APP_TOKEN, BOT_TOKEN, SECRET, buttons

T = TypeVar("T")
APPROVE, REJECT, EDIT = "countersign:approve", "countersign:reject", "countersign:edit"
ANSWER, RAN, AGAIN, GIVE_UP = (
    "countersign:answer",
    "countersign:ran",
    "countersign:again",
    "countersign:give_up",
)
GIVEN_UP = "This stopped my process "
"""The words with which a turn ends during which processes ended again and again."""
RETRY_S = 6.0
"""How long a person waits before pressing a button again whose card did not change."""
PATIENCE_S = 180.0
REST_S = 420.0
"""What failed again and again is tried again after five minutes, at the latest."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is played.

    Attributes:
        directory: For files.
        database: Variables that name the database.
        open_storage: Makes a way to read it.
        seed: Of everything that is random.
        threads: How many jobs.
        processes: How many bots at once.
        drivers: Of MongoDB, for one bot after the other; none for the embedded database.
        server: The database's server, which is killed at random times; None if it is left alone.
        points: At which each bot dies, one after the other; at none if it is empty. Then they live.
        kills: How many more are killed from outside, at random times.
        trouble: Whether Slack misbehaves.
        faults: How likely each statement of the embedded database ends with an exception.
        crashing: Numbers of jobs that end their process each time they are tried.
        raising: How likely the tool of a call raises what would end a process.
        luck: Whether it is open at which of the first times a bot dies at a point, and whether
            anybody grants anything.
        wishes: How often people want to approve, reject, edit, and to leave it alone.
        expire_s: Seconds after which a card that nobody decides expires.
        freezes: Whether somebody sets and lifts freezes of all calls at random.
        hurry: How many times as fast as usual people come back to a card that did not change; and
            bots look for due work every second, not every five.
    """

    directory: Path
    database: dict[str, str]
    open_storage: Callable[[], Stores]
    seed: int = 1
    threads: int = 24
    processes: int = 3
    drivers: Sequence[Driver] = ()
    server: MongoServer | None = None
    points: Sequence[str] = ()
    kills: int = 3
    trouble: bool = True
    faults: float = 0.0
    crashing: Collection[int] = ()
    raising: float = 0.0
    luck: bool = True
    wishes: Sequence[int] = (60, 15, 20, 5)
    expire_s: int = 40
    freezes: bool = False
    hurry: int = 1


@dataclass
class Report:
    """What came of it."""

    seconds: float = 0.0
    deaths: Counter[str] = field(default_factory=Counter)
    approvals: Counter[str] = field(default_factory=Counter)
    effects: int = 0
    doubts: int = 0
    given_up: int = 0
    """Turns that ended no process by themselves, and met three deaths in a row all the same."""
    votes: int = 0
    by_grant: int = 0
    emergencies: int = 0
    freezes: int = 0
    webhooks: int = 0
    """Events that programs' receivers took."""
    unrecorded: Counter[str] = field(default_factory=Counter)
    """Votes without a trace, by the words that told their people so."""
    wrong: list[str] = field(default_factory=list)
    """Everything that must not be; empty at the end of a good run."""
    evidence: list[str] = field(default_factory=list)
    """What is stored about each job of which something is wrong."""


@dataclass
class Play:
    """One run."""

    setting: Setting
    report: Report = field(default_factory=Report)
    jobs: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By number: channel and ts of the message that asked for it."""
    per_channel: ClassVar[int] = 4
    """How many jobs a channel has."""

    def __post_init__(self) -> None:
        self.random = Random(self.setting.seed)  # noqa: S311 - not for secrets
        self.file = self.setting.directory / "effects"
        self.seen = self.setting.directory / "points"
        self.said = self.setting.directory / "said"
        self.failed = self.setting.directory / "failed"
        self.died = self.setting.directory / "died"
        self.points = list(self.setting.points)
        self.sandbox = Sandbox(
            clock=time.time,
            pace=hasty_seconds,
            signing_secret=SECRET,
            bot_token=BOT_TOKEN,
            app_token=APP_TOKEN,
            # Slack comes again for six minutes, too, but not so often.
            retry_delays=(0, 1, 2, 3, 4, *[5] * 70),
        )
        self.bots: list[ForkServerProcess] = []
        self.frozen: list[tuple[int, int]] = []
        self._is_over = asyncio.Event()
        self._pressed: dict[tuple[str, str], float] = {}
        self._wishes: dict[str, str] = {}

    async def run(self) -> Report:
        """Play until all is done, then look."""
        self._began_s = time.monotonic()
        await self.sandbox.start()
        self._make_channels()
        keep_alive: asyncio.Task[None] | None = None
        freezing: asyncio.Task[None] | None = None
        try:
            self._start_bots()
            keep_alive = asyncio.create_task(self._keep_alive())
            if self.setting.freezes:
                freezing = asyncio.create_task(self._freeze_now_and_then())
            if self.setting.trouble:
                self._make_trouble()
            async with asyncio.timeout(PATIENCE_S + 2 * self.setting.threads):
                await asyncio.gather(self._ask(), *self._people())
            if freezing is not None:
                self._is_over.set()
                await freezing
            async with asyncio.timeout(REST_S):
                await self._come_to_rest()
        except TimeoutError:
            left = {n: self._shows(n) for n in range(self.setting.threads) if not self._is_done(n)}
            reason = f"jobs {left}" if left else f"due for ever: {await self._due()}"
            self.report.wrong.append(f"not done in time: {reason}")
        finally:
            for task in filter(None, (keep_alive, freezing)):
                task.cancel()
            await self._stop_bots()
            self.report.seconds = time.monotonic() - self._began_s
            await self.sandbox.stop()
        return self.report

    # ---- who plays ----------------------------------------------------------------------------

    async def _ask(self) -> None:
        rosa = self.sandbox.user_id("Rosa")
        for number in range(self.setting.threads):
            channel = self.channels[number % len(self.channels)]
            ts = await self.sandbox.say(rosa, channel, f"@countersign please do job {number}")
            self.jobs[number] = (channel, ts)
            await asyncio.sleep(self.random.uniform(0, 0.1))  # people do not ask all at once

    def _people(self) -> list[Coroutine[Any, Any, None]]:
        """All who decide."""
        return [self._decide("Ada", 0), self._decide("Ben", 1)]

    async def _decide(self, name: str, first: int) -> None:
        """Go round every other channel, over and over."""
        user = self.sandbox.user_id(name)
        while not self._all_done():
            for channel in self.channels[first::2]:
                for message in self.sandbox.messages(channel):
                    if self._is_card(message) and buttons(message):
                        await self._look_at(user, channel, message)
            await asyncio.sleep(0.05)  # people look now and then

    async def _freeze_now_and_then(self) -> None:
        """Freeze all, as `countersign freeze` does, look that nothing starts, and lift it."""
        while not self._is_over.is_set():
            await self._until_next_freeze()
            try:
                async with self._beside() as storage:
                    freezes = Freezes(
                        switches=storage.switches, audit=storage.audit, clock=system_clock
                    )
                    await self._freeze_once(freezes)
            except StorageError:
                continue  # there is no database yet, or it is away

    async def _until_next_freeze(self) -> None:
        await self._pause(1, 4)

    async def _freeze_once(self, freezes: Freezes) -> None:
        async def lift() -> None:
            with suppress(UnknownFreezeError):  # a try that failed may have lifted it
                await freezes.lift(set_now.freeze.id, by="UBEN", why="over")

        set_now = await _until_stored(
            lambda: freezes.freeze(FreezeScope(), by="UADA", why="chaos"),
        )
        before = (await _until_stored(freezes.read)).starts
        frozen_ms = system_clock()
        await self._pause(0.2, 2)
        lifted_ms = system_clock()
        after = (await _until_stored(freezes.read)).starts
        self.report.freezes += 1
        self.frozen.append((frozen_ms, lifted_ms))
        if after != before:
            self.report.wrong.append(f"{after - before} calls started under a confirmed freeze")
        await _until_stored(lift)

    async def _pause(self, least: float, most: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.random.uniform(least, most)):
                await self._is_over.wait()

    async def _keep_alive(self) -> None:
        """Start a bot in place of each that died, also while what is left comes to rest."""
        kills = [self._moment() for _ in range(self.setting.kills)]
        while True:
            for at, bot in enumerate(self.bots):
                if not bot.is_alive():
                    self.report.deaths[self._cause(bot)] += 1
                    self.bots[at] = self._start_bot()
            if kills and self._passed() > min(kills):
                kills.remove(min(kills))
                victim = self.random.choice(self.bots)
                self._names[victim.name] = "at any time"
                victim.kill()
            await asyncio.sleep(0.05)  # other processes: there is no event to wait for

    def _moment(self) -> float:
        """A random moment of the play, in what `_passed` counts."""
        return self.random.uniform(1, 3 + self.setting.threads / 4)

    def _passed(self) -> float:
        """Seconds since the play began."""
        return time.monotonic() - self._began_s

    def _cause(self, bot: ForkServerProcess) -> str:
        """Where a bot died: as it wrote itself, or else from outside."""
        lines = self.died.read_text().splitlines() if self.died.exists() else []
        written = dict(line.split(" ", 1) for line in lines)
        return written.get(str(bot.pid), self._names[bot.name])

    async def _come_to_rest(self) -> None:
        """What people see is final; wait until nothing is left to be done behind it, either."""
        self._end_trouble()
        async with self._reading() as storage:
            while True:
                soon = _soon()
                left = await storage.threads.count_due(now_ms=soon)
                left += await count_due(storage.approvals, now_ms=soon)
                if not left + len(await storage.webhooks.queues.due(now_ms=soon, limit=1)):
                    return
                await asyncio.sleep(0.2)  # other processes: there is no event to wait for

    def _end_trouble(self) -> None:
        """Slack behaves from now on: whatever failed before succeeds at its next try."""
        self.sandbox.faults.clear()

    async def _due(self) -> list[str]:
        """What is due, in full, for whoever reads the report."""
        async with self._reading() as storage:
            soon = _soon()
            threads = await storage.threads.due(now_ms=soon, limit=5)
            approvals = await storage.approvals.due(now_ms=soon, limit=5)
            queues = await storage.webhooks.queues.due(now_ms=soon, limit=5)
            return [str(record) for record in (*threads, *approvals, *queues)]

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Stores]:
        storage = self.setting.open_storage()
        await storage.open_to_read()
        try:
            yield storage
        finally:
            await storage.close()

    @asynccontextmanager
    async def _beside(self) -> AsyncIterator[Stores]:
        storage = self.setting.open_storage()
        await storage.open_beside()
        try:
            yield storage
        finally:
            await storage.close()

    async def _look_at(self, user: str, channel: str, card: dict[str, Any]) -> None:
        """Do what somebody does who sees a card."""
        key = (card["ts"], str(card["blocks"]))
        last = self._pressed.get(key, -1e9)
        if time.monotonic() - last < RETRY_S / self.setting.hurry:
            return
        self._pressed[key] = time.monotonic()
        wish = self._wish(card)
        if wish == "nothing":
            return
        if self.random.random() < 0.2:  # a stranger tries, too
            with suppress(Exception):
                await self.sandbox.click(
                    self.sandbox.user_id("Gus"), channel, card["ts"], buttons(card)[0]
                )
        with suppress(Exception):  # expired triggers, timeouts: they try again
            async with asyncio.timeout(8):
                await self._press(user, channel, card, wish)

    def _wish(self, card: dict[str, Any]) -> str:
        """What people want of a card; they do not change their mind."""
        ids, known = buttons(card), card["metadata"]["event_payload"]["id"]
        if AGAIN in ids:
            return self._doubt_wish(card)
        if ANSWER in ids:
            return ANSWER
        if known not in self._wishes:
            choices = [APPROVE, REJECT, EDIT, "nothing"]
            self._wishes[known] = self.random.choices(choices, weights=self.setting.wishes)[0]
        wish = self._wishes[known]
        return wish if wish in ids or wish == "nothing" else APPROVE

    def _doubt_wish(self, card: dict[str, Any]) -> str:
        """Somebody looks in the other system, and says what is true."""
        refs = re.findall(r"job-\d+-\d+", str(card["blocks"]))
        # A step of a graph has no arguments: it is the first of its job.
        number = next((n for n, (_, ts) in self.jobs.items() if ts == card.get("thread_ts")), 0)
        ref = refs[0] if refs else f"job-{number}-1"
        ran = [done for done in effects(self.file) if done[1] == ref]
        if ran:
            return RAN
        return AGAIN if self.random.random() < 0.8 else GIVE_UP

    async def _press(self, user: str, channel: str, card: dict[str, Any], wish: str) -> None:
        if wish == ANSWER:
            rosa = self.sandbox.user_id("Rosa")  # who answers must not decide what comes of it
            await self.sandbox.say(rosa, channel, "It is fine.", thread_ts=card["thread_ts"])
            return
        await self.sandbox.click(user, channel, card["ts"], wish)
        if wish in {REJECT, EDIT, RAN}:
            try:
                view = await opened(self.sandbox, user)
                if view.get("submit"):  # else it says why not
                    values = filled(view, changes_of(view, wish))
                    await self.sandbox.submit(user, view, values)
            finally:
                await close_all(self.sandbox, user)
        elif self.random.random() < 0.3:  # and once more, to be sure
            await self.sandbox.click(user, channel, card["ts"], wish)

    # ---- what there is -------------------------------------------------------------------------

    def _make_channels(self) -> None:
        people = [self.sandbox.user_id(name) for name in ("Rosa", "Ada", "Ben", "Gus")]
        bot = self.sandbox.user_id("countersign")
        self.channels = []
        for number in range(max(3, self.setting.threads // self.per_channel)):
            channel = SlackChannel(id=f"C0CHAOS{number:03d}", name=f"chaos-{number}")
            channel.members.extend([*people, bot])
            self.sandbox.workspace.channels[channel.id] = channel
            self.channels.append(channel.id)

    def _make_trouble(self) -> None:
        seed = self.setting.seed
        for number, fault in enumerate(TROUBLE):
            self.sandbox.faults.add(**fault, seed=seed * 100 + number)

    def _start_bots(self) -> None:
        self._names: dict[str, str] = {}
        self.bots = [self._start_bot() for _ in range(self.setting.processes)]

    def _driver(self, number: int) -> dict[str, str]:
        drivers = self.setting.drivers
        return {"COUNTERSIGN_MONGO_DRIVER": drivers[number % len(drivers)]} if drivers else {}

    def _rules(self) -> dict[str, str]:
        """What runs, and who decides about it."""
        return {
            "COUNTERSIGN_AGENT": "tests.chaos.agent:build",
            "COUNTERSIGN_APPROVERS": "channel",
            "COUNTERSIGN_CHANNELS": ",".join(self.sandbox.channel_ids),
            "COUNTERSIGN_REMIND_AFTER": f"{self.setting.expire_s // 2}s",
            "COUNTERSIGN_ESCALATE_AFTER": f"{self.setting.expire_s * 3 // 4}s",
            "COUNTERSIGN_ESCALATE_TO": self.sandbox.user_id("Ada"),
            "COUNTERSIGN_EXPIRE_AFTER": f"{self.setting.expire_s}s",
        }

    def _start_bot(self) -> ForkServerProcess:
        point = self.points.pop(0) if self.points else ""
        plan = {
            "point": point,
            "number": self.random.choice([1, 1, 2]) if point and self.setting.luck else 1,
            "seen": str(self.seen),
            "said": str(self.said),
            "failed": str(self.failed),
            "died": str(self.died),
            "raising": self.setting.raising,
            "raising_seed": self.setting.seed,
            "seed": self.random.randrange(1 << 30),
            "faults": self.setting.faults,
            "look_s": 1.0 if self.setting.hurry > 1 else 0.0,
        }
        environ = {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_API_URL": self.sandbox.api_url,
            "COUNTERSIGN_PORT": str(free_port()),
            "COUNTERSIGN_LOG": "warning",
            **self._rules(),
            EFFECTS: str(self.file),
            CRASHING: ",".join(map(str, self.setting.crashing)),
            process.PLAN: json.dumps(plan),
            **self.setting.database,
            **self._driver(len(self._names)),
        }
        name = f"bot-{len(self._names)}"
        log = self.setting.directory / f"{name}.log"
        bot = fork_bot(environ, log, run=process.run, name=name)
        self._names[name] = point or "unknown"
        return bot

    async def _stop_bots(self) -> None:
        for bot in self.bots:
            bot.terminate()
        for bot in self.bots:
            await asyncio.to_thread(bot.join, 15)
            if bot.is_alive():
                self.report.wrong.append("a bot did not stop within 15 s of SIGTERM")
                bot.kill()
                bot.join()
            elif bot.exitcode == CUT_OFF:
                self.report.wrong.append("something in a bot hung when it stopped")

    # ---- is it over? ---------------------------------------------------------------------------

    def _all_done(self) -> bool:
        count = self.setting.threads
        return len(self.jobs) == count and all(self._is_done(number) for number in range(count))

    def _is_done(self, number: int) -> bool:
        if number not in self.jobs:
            return False
        channel, ts = self.jobs[number]
        messages = self.sandbox.messages(channel, thread_ts=ts)
        has_ended = any(self._ends(number, message) for message in messages)
        return has_ended and not any(
            self._is_card(message) and buttons(message) for message in messages
        )

    def _ends(self, number: int, message: dict[str, Any]) -> bool:
        """Whether a message says that a job is over: done, or given up after three deaths."""
        text, is_crashing = str(message.get("text")), number in self.setting.crashing
        return GIVEN_UP in text or (f"job {number} done" in text and not is_crashing)

    def _is_abandoned(self, channel: str, ts: str) -> bool:
        """Whether processes died three times in a row during the turn of a thread."""
        messages = self.sandbox.messages(channel, thread_ts=ts)
        return any(GIVEN_UP in str(message.get("text")) for message in messages)

    def _shows(self, number: int) -> list[str]:
        """What stands about a job that is not over, for whoever reads the report."""
        channel, ts = self.jobs.get(number, ("", ""))
        messages = self.sandbox.messages(channel, thread_ts=ts) if channel else []
        return [
            f"{message['ts']} {str(message.get('text'))[:80]!r} {buttons(message)}"
            for message in messages
        ]

    def _is_card(self, message: dict[str, Any]) -> bool:
        return (message.get("metadata") or {}).get("event_type") in CARDS

    # ---- what must be true ---------------------------------------------------------------------

    async def check(self, storage: Stores) -> Report:
        """Look into everything, after the bots have ended."""
        done = effects(self.file)
        self.report.effects = len(done)
        allowed: set[str] = set()
        for number, (channel, ts) in self.jobs.items():
            thread_id = f"{self.sandbox.workspace.team_id}:{channel}:{ts}"
            approvals = await newest_of(storage.approvals, thread_id, limit=50)
            audit = await storage.audit.of_thread(thread_id, limit=500)
            faults = len(self.report.wrong)
            try:
                self._check_thread(number, await storage.threads.get(thread_id))
            except RecordNotFoundError:
                self.report.wrong.append(f"job {number}: no bot ever heard of it")
            is_abandoned = self._is_abandoned(channel, ts)
            self.report.given_up += is_abandoned and number not in self.setting.crashing
            given_up = {
                _ref(request) for request in approvals if is_abandoned or _is_given_up(request)
            }
            allowed |= await self._check_rules(storage, approvals, audit)
            for approval in approvals:
                self.report.approvals[str(approval.status)] += 1
                self.report.doubts += approval.kind is Kind.DOUBT
                self._check_card(channel, ts, approval, given_up)
                actions = [e.action for e in audit if e.approval_id == approval.approval_id]
                self._check_audit(approval, actions, is_abandoned=is_abandoned)
                if approval.kind is Kind.APPROVAL:
                    allowed.add(_ref(approval))
                    self._check_effects(approval, approvals, done, given_up)
                if _is_about_charge(approval):
                    allowed.add(_ref(approval))
                    self._check_charges(approval, done, given_up)
            if len(self.report.wrong) > faults:
                self.report.evidence += _evidence(number, approvals, audit)
        unasked = [f"{tool} {ref}" for tool, ref, _, _ in done if ref not in allowed]
        self.report.wrong.extend(f"{effect} happened, and nobody was asked" for effect in unasked)
        if 3 * self.report.given_up > self.report.deaths.total():
            self.report.wrong.append(f"{self.report.given_up} turns were given up")
        return self.report

    async def _check_rules(
        self, storage: Stores, approvals: Sequence[Approval], audit: Sequence[AuditEntry]
    ) -> set[str]:
        """Look into what a policy brings about in a thread; return what it let run unasked."""
        return set()

    def _check_thread(self, number: int, thread: Any) -> None:
        if thread.turn_open or thread.due_ms is not None:
            self.report.wrong.append(f"job {number}: its thread is not at rest")
        channel, ts = self.jobs[number]
        said = [
            message
            for message in self.sandbox.messages(channel, thread_ts=ts)
            if not self._is_card(message)
        ]
        ends = [message for message in said if self._ends(number, message)]
        if len(ends) != 1:
            names = ("ts", "text", "metadata", "streaming_state", "edited")
            details = [{name: message.get(name) for name in names} for message in ends]
            self.report.wrong.append(
                f"job {number} ({ts}): said {len(ends)} times that it is done: {details}"
            )

    def _check_card(
        self, channel: str, ts: str, approval: Approval, given_up: Collection[str]
    ) -> None:
        name = f"card of {approval.title!r}"
        if approval.status is Status.PENDING or approval.open:
            self.report.wrong.append(f"{name}: it is not closed ({approval.status})")
        cards = [
            message
            for message in self.sandbox.messages(channel, thread_ts=ts)
            if self._is_card(message)
            and message["metadata"]["event_payload"]["id"] == approval.approval_id
        ]
        if len(cards) != 1:
            self.report.wrong.append(f"{name}: there are {len(cards)}")
            return
        shown = str(cards[0]["blocks"])
        words = _words_of_end(approval)
        # Nobody has ever found out; also when people let a call in doubt run again.
        can_doubt = approval.kind is Kind.APPROVAL or approval.status is Status.APPROVED
        if can_doubt and _ref(approval) in given_up:
            words = (*words, "May have run")
        if approval.status is Status.SUPERSEDED and _ref(approval) in given_up:
            words = (*words, "ancelled")  # its turn ended, and nothing replaces it
        if buttons_that_act(cards[0]) or not any(word in shown for word in words):
            self.report.wrong.append(f"{name}: it does not show {approval.status}: {shown[:300]}")

    def _check_effects(
        self,
        approval: Approval,
        all_of_job: Iterable[Approval],
        done: list[tuple[str, str, int, str]],
        given_up: set[str],
    ) -> None:
        if _is_asked_anew(approval, all_of_job):
            return
        ref, tool = _ref(approval), approval.tool.strip() or "wire"
        effects = [effect for effect in done if effect[1] == ref and effect[0] == tool]
        name = f"{tool} {ref} ({approval.status})"
        if approval.status is not Status.APPROVED:
            if effects:
                self.report.wrong.append(f"{name}: it happened")
            return
        edited = approval.decision.arguments if approval.decision else None
        wanted = approval.arguments if edited is None else edited
        if "amount" in wanted and any(effect[2] != wanted["amount"] for effect in effects):
            self.report.wrong.append(f"{name}: other arguments ran than were approved")
        count = (
            len({effect[3] for effect in effects}) if approval.tool == "restart" else len(effects)
        )
        if count != 1 and not (count == 0 and (ref in given_up or ref in self._refused())):
            self.report.wrong.append(f"{name}: it happened {count} times")

    def _check_charges(
        self, approval: Approval, done: list[tuple[str, str, int, str]], given_up: set[str]
    ) -> None:
        """What a tool does with the answer to its own question happens once, or not at all."""
        ref = _ref(approval)
        count = len([effect for effect in done if effect[1] == ref and effect[0] == "charge"])
        is_given_up = count == 0 and (ref in given_up or ref in self._refused())
        wanted = 1 if approval.status is Status.ANSWERED else 0
        if count != wanted and not is_given_up:
            self.report.wrong.append(f"charge {ref} ({approval.status}): it happened {count} times")

    def _refused(self) -> set[str]:
        """The calls whose tool raised before it did anything."""
        lines = self.failed.read_text().splitlines() if self.failed.exists() else []
        return {line.split()[0] for line in lines if line.endswith("<")}

    def _check_audit(
        self, approval: Approval, actions: list[str], *, is_abandoned: bool = False
    ) -> None:
        asked = "doubted" if approval.kind is Kind.DOUBT else "requested"
        ends = {"resumed"}
        if is_abandoned:  # the run was never told: a yes is taken back, anything else stands
            lets_run = approval.status in {Status.APPROVED, Status.ANSWERED}
            ends |= {"unusable"} if lets_run else {"unusable", "decided", "expired", "superseded"}
        for wanted in ({asked}, ends):
            if not wanted & set(actions):
                expected = " or ".join(sorted(wanted))
                self.report.wrong.append(f"audit of {approval.title!r}: no {expected} in {actions}")


CARDS = {"countersign_card", "countersign_doubt", "countersign_undecidable"}
"""The event types of messages that show a request, and how it ended."""

TROUBLE: list[dict[str, Any]] = [
    {"effect": "ratelimited", "match": "chat.*", "chance": 0.03, "retry_after": 1},
    {"effect": "status", "match": "chat.*", "chance": 0.03, "status": 503},
    {"effect": "lost_answer", "match": "chat.postMessage", "chance": 0.05},
    {"effect": "lost_answer", "match": "chat.update", "chance": 0.05},
    {"effect": "cut", "match": "*", "chance": 0.02},
    {"effect": "late", "match": "chat.*", "chance": 0.03, "delay": 1.5},
    {"effect": "duplicate", "on": "event", "chance": 0.15},
    {"effect": "delay", "on": "event", "chance": 0.1, "delay": 1.0},
    {"effect": "reorder", "on": "event", "chance": 0.1, "delay": 1.0},
    {"effect": "unheard", "on": "event", "chance": 0.1},
    {"effect": "duplicate", "on": "interaction", "chance": 0.1},
    {"effect": "stale", "on": "interaction", "chance": 0.05},
]


async def _until_stored(write: Callable[[], Awaitable[T]]) -> T:
    """Repeat what changes nothing the second time, while the database is away."""
    while True:
        try:
            return await write()
        except (StoreUnavailableError, RecordConflictError):
            await asyncio.sleep(0.1)  # another process: there is no event to wait for


def _soon() -> int:
    """Ten minutes from now: what is due until then is work that is left."""
    return time.time_ns() // 1_000_000 + 600_000


def buttons_that_act(card: dict[str, Any]) -> list[str]:
    """Buttons of a card that would decide something."""
    return [action for action in buttons(card) if action != "countersign:details"]


def _evidence(
    number: int, approvals: Iterable[Approval], audit: Iterable[AuditEntry]
) -> Iterator[str]:
    """Return lines about the requests of a job, and its audit, oldest first."""
    for approval in approvals:
        yield (
            f"job {number}: {approval.approval_id} {approval.kind} {approval.title!r} "
            f"{approval.arguments}: {approval.status}, {approval.decision}, {approval.execution}"
        )
    for entry in sorted(audit, key=lambda entry: entry.at_ms):
        yield f"job {number}: {entry.at_ms} {entry.action} {entry.approval_id} {entry.detail}"


def _is_asked_anew(approval: Approval, all_of_job: Iterable[Approval]) -> bool:
    """Whether its decision lapsed, and people were asked again: only their newer word counts."""
    return approval.execution.state is ExecutionState.LAPSED and any(
        other.asked_again and _ref(other) == _ref(approval)
        for other in all_of_job
        if other.created_ms > approval.created_ms
    )


def _is_about_charge(approval: Approval) -> bool:
    """Whether it is the question that a tool asks by itself."""
    return approval.kind is Kind.QUESTION and ";tool:charge:" in approval.address


def _is_given_up(approval: Approval) -> bool:
    """Whether it was a doubt, and people neither said that it ran, nor let it run again."""
    if approval.kind is not Kind.DOUBT or approval.status is Status.APPROVED:
        return False
    return approval.status is not Status.ANSWERED or approval.answered("choice") == "give_up"


def _words_of_end(approval: Approval) -> tuple[str, ...]:
    """Words of which a card that ended so shows at least one."""
    if approval.kind is Kind.DOUBT:
        words = {
            Status.APPROVED: ("un again by", "run it again"),
            Status.REJECTED: ("Left as is",),
            Status.ANSWERED: ("Ran, according to",),
        }
        if approval.status in words:
            return words[approval.status]
    if approval.decision is not None and approval.decision.emergency:
        return ("verride by",)
    return {
        # With other arguments than it was asked with, the one who edited has the first word.
        Status.APPROVED: ("pproved", "dited by"),
        Status.REJECTED: ("ejected",),
        Status.EXPIRED: ("xpired",),
        Status.ANSWERED: ("nswered",),
        Status.CANCELLED: ("ancelled",),
        Status.SUPERSEDED: ("Replaced",),
        Status.DENIED: ("Blocked by policy",),
        Status.WITHDRAWN: ("ithdrawn",),
        Status.UNDECIDABLE: ("No one can decide",),
    }.get(approval.status, ())


def _ref(approval: Approval) -> str:
    match = re.search(r"job-\d+-\d+", str(approval.arguments))
    if match:
        return match[0]
    called = re.search(r":c(\d+)-(\d+)", approval.address)  # a question has no arguments
    return f"job-{called[1]}-{called[2]}" if called else ""


def changes_of(view: dict[str, Any], wish: str) -> dict[str, str]:
    """What somebody changes in a form: one more, where they edit."""
    if wish != EDIT:
        return {}
    labels = {
        block["label"]["text"].split()[0].lower(): block
        for block in view["blocks"]
        if block["type"] == "input"
    }
    amount = labels["amount"]["element"].get("initial_value")
    return {"amount": str(int(amount or 0) + 1)}
