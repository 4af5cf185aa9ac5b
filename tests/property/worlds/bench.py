"""Bots that can be stopped, delayed and killed between any two steps, in a time of their own.

A step is a write to the database, a call of Slack, or an effect of a tool. Before each of them the
task that wants it waits until it is let go; so every order of the steps of several tasks of several
processes can be played, and a process can die before any of them. Timers follow the time of the
test: a step that is held back for too long runs into the time limits of the product.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar, TypeVarTuple, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import ChatModelAgent, follow_up_tool, idempotency_key, tool
from agents.core.tools import Tool
from agents.models import AnsweringModel, call, say
from bot.freezes.starts import FreezeFile, StartSwitch
from bot.stores import Stores
from tests.support.decided import change_of
from tests.support.fakes import FakeClock, FakeDirectory, FakeNotifier, FakeStream, Queue
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROSA, RULES, KilledError, Office

READS = frozenset(
    {
        "any_of",
        "count",
        "count_due",
        "due",
        "endpoints_of",
        "find",
        "get",
        "load",
        "new",
        "of_thread",
        "of_turn",
        "parked",
        "places",
        "unfinished",
    }
)
"""Nobody else can notice these; they are no steps."""
STORES = frozenset(
    {
        "approvals",
        "audit",
        "checkpoints",
        "ephemeral_messages",
        "inbox",
        "log",
        "posts",
        "starts",
        "switches",
        "threads",
        "webhooks",
    }
)
AFTER_EFFECT = "after an effect"
CLEO = "UCLEO"
"""The backup: nobody of the channel."""
EVE = "UEVE"
"""Of another company."""
PEOPLE = (ROSA, ADA, BEN, CLEO, GUS, EVE)
GROUP = "S0TREASURY"
_USUAL = {"is_guest": False, "is_deleted": False}
ESCALATE_AFTER = timedelta(seconds=30)
CALLS = frozenset(
    {"end_stream", "nudge", "post_card", "remove", "say", "update_card", "send_ephemeral"}
)


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def befall(directory: FakeDirectory, who: str, what: str) -> None:
    """Something becomes of a person: of their place in the channel, the group, or the company."""
    match what:
        case "joins":
            directory.channels[CHANNEL] |= {who}
        case "leaves":
            directory.channels[CHANNEL] -= {who}
        case "treasurer":
            directory.groups[GROUP] |= {who}
        case "no treasurer":
            directory.groups[GROUP] -= {who}
        case _ if who not in {GUS, EVE}:
            now = {**_USUAL, f"is_{'guest' if what == 'guest' else 'deleted'}": True}
            directory.add(who, **(_USUAL if what == "back" else now))
        case _:
            pass


class Loop(asyncio.SelectorEventLoop):
    """Its timers go by the clock of the test; it knows when nothing more happens by itself.

    Attributes:
        clock: The time.
        lag_ms: How far the timers are behind: as in a computer that was asleep.
        calls: How often anything was put on its list.
    """

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.lag_ms = 0
        self.calls = 0
        super().__init__()

    def time(self) -> float:
        """Seconds, as the timers see them."""
        return (self.clock.now_ms - self.lag_ms) / 1_000

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """See `asyncio.AbstractEventLoop`."""
        self.calls += 1
        return super().call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run it here and now: nothing goes on in another thread."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - for whoever waits
            future.set_exception(error)
        return future


@dataclass(frozen=True)
class Effect:
    """What a tool did."""

    tool: str
    ref: str
    amount: int
    key: str


@dataclass
class World:
    """Everything that outlives a process.

    Attributes:
        storage: Itself, without steps: for looking.
        loop: In which all happens.
        effects: What tools did.
        faults: What is wrong.
        heard: Whose words the model had read when it made a call, by the id of the call.
    """

    storage: SqliteStores
    loop: Loop
    notifier: FakeNotifier = field(default_factory=FakeNotifier)
    directory: FakeDirectory = field(default_factory=FakeDirectory)
    effects: list[Effect] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    heard: dict[str, set[str]] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)

    @property
    def clock(self) -> FakeClock:
        """The time."""
        return self.loop.clock

    def start(self, name: str, *, skew_ms: int = 0) -> Process:
        """Start a bot, whose clock may be ahead of the others'."""
        self.processes.append(Process(self, name, skew_ms=skew_ms))
        return self.processes[-1]

    async def settle(self) -> None:
        """Wait until every task wants a step, waits for the time, or has ended."""
        quiet = 0
        while quiet < 3:
            before = self.loop.calls
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.loop.calls == before + 1 else 0

    async def look_before(self, effect: Effect) -> None:
        """Say what is wrong with an effect that is about to happen; nothing by default."""

    def look_after(self, write: str, result: Any, options: dict[str, Any]) -> None:
        """See what a process has just written; nothing by default.

        Args:
            write: The name of its step.
            result: What the store gave for it.
            options: What it was given by name.
        """


@dataclass(frozen=True)
class Skewed:
    """The clock of one computer."""

    clock: FakeClock
    ahead_ms: int

    def __call__(self) -> int:
        return self.clock() + self.ahead_ms

    def forward(self, **passed: float) -> None:
        """See `FakeClock`."""
        self.clock.forward(**passed)


class Process:
    """One bot.

    Attributes:
        office: Its use cases.
        waiting: Steps that its tasks want to take, in the order in which they came.
        is_dead: Whether it was killed.
    """

    def __init__(self, world: World, name: str, *, skew_ms: int = 0) -> None:
        self.world = world
        self.name = name
        clock = Skewed(world.clock, skew_ms)
        self.waiting: list[tuple[str, asyncio.Future[None]]] = []
        self.is_dead = False
        self._tasks: set[asyncio.Task[Any]] = set()
        model = AnsweringModel(self._next, name="jobs")
        agent = ChatModelAgent(name="A", model=model, tools=self._tools())
        self.office = Office(
            # Its own stores: what it remembers of a record may be older than the record.
            storage=cast(SqliteStores, Stepping(self, Stores(world.storage.database))),
            turns_of_model=(),
            make_agent=lambda _: agent,
            clock=cast(FakeClock, clock),
            notifier=cast(FakeNotifier, SteppingSlack(self, world.notifier)),
            directory=world.directory,
            queue=cast(Queue, self),
            owner=name,
            rules=replace(RULES, escalate_after=ESCALATE_AFTER, escalate_to=(CLEO,)),
        )
        file = FreezeFile(path=None, clock=clock)
        # A pause of milliseconds, which would end only when somebody moves the clock.
        self.office.__dict__["switch"] = StartSwitch(
            self.office.freezes, file, owner=name, sleep=_pass_on
        )

    # ---- its tasks -----------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, KilledError):
            self.world.faults.append(f"{self.name}: {error!r}")

    async def step(self, name: str) -> None:
        """Wait until a step may be taken.

        Raises:
            KilledError: The process is dead.
        """
        if self.is_dead:
            raise KilledError
        way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((name, way))
        try:
            await way
        finally:
            if (name, way) in self.waiting:  # its task was cancelled
                self.waiting.remove((name, way))

    # ---- what the test does with it ------------------------------------------------------------

    async def go(self, number: int) -> bool:
        """Let one of the waiting steps be taken; False when there is none."""
        if not self.waiting:
            return False
        _, way = self.waiting.pop(number % len(self.waiting))
        way.set_result(None)
        await self.world.settle()
        return True

    async def finish(self, *, before: str = "") -> None:
        """Let all steps be taken, and those that follow, in the order in which they come.

        Args:
            before: Stop when only steps are left whose names begin like this, or, with
                `AFTER_EFFECT`, as soon as a tool has done something; empty for none.
        """
        done = len(self.world.effects)
        for _ in range(2_000):
            if before == AFTER_EFFECT and len(self.world.effects) > done:
                return
            names = [name for name, _ in self.waiting]
            free = [at for at, name in enumerate(names) if not (before and name.startswith(before))]
            if not free:
                return
            await self.go(free[0])
        self.world.faults.append(f"{self.name} does not come to an end: {self.waiting}")

    async def kill(self) -> None:
        """End it before whatever steps it wants to take: nothing of it happens any more."""
        self.is_dead = True
        while self.waiting:
            _, way = self.waiting.pop(0)
            if not way.done():
                way.set_exception(KilledError())
            await self.world.settle()
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.world.processes.remove(self)

    def _tools(self) -> Sequence[Tool]:
        @tool(gate="review", title="Pay {amount} for {ref}")
        async def pay(ref: str, amount: int) -> str:
            """Pay.

            Args:
                ref: What for.
                amount: How much.
            """
            return await self._effect("pay", ref, amount)

        @tool(gate="approval", title="Restart {ref} {amount} times", idempotent=True)
        async def restart(ref: str, amount: int) -> str:
            """Restart; twice is as good as once.

            Args:
                ref: What.
                amount: How often.
            """
            return await self._effect("restart", ref, amount)

        return [pay, restart, follow_up_tool()]

    def _next(self, messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
        parts = _next(messages)
        for part in parts:
            if isinstance(part, ToolCallPart):
                self.world.heard[part.tool_call_id] = heard_in(str(messages))
        return parts

    async def _effect(self, name: str, ref: str, amount: int) -> str:
        await self.step(f"effect {name}")
        effect = Effect(name, ref, amount, idempotency_key())
        await self.world.look_before(effect)
        self.world.effects.append(effect)
        return f"{name} did {ref} with {amount}"


class Stepping:
    """A database, or one of its stores, in which every write is a step."""

    def __init__(self, process: Process, target: Any, name: str = "") -> None:
        self._process = process
        self._target = target
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not self._name:
            return Stepping(self._process, attribute, name) if name in STORES else attribute
        if isinstance(attribute, type) or not callable(attribute):
            return attribute
        process = self._process

        async def use(*args: Any, **options: Any) -> Any:
            change = change_of(*args, **options) if name == "replace" else name
            point = f"{self._name}.{change}"
            if name not in READS:
                await process.step(point)
            if process.is_dead:
                raise KilledError
            result = await attribute(*args, **options)
            process.world.look_after(point, result, options)
            return result

        return use


class SteppingSlack:
    """A Slack of which every call is a step."""

    def __init__(self, process: Process, target: FakeNotifier) -> None:
        self._process = process
        self._target = target

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if name not in CALLS:
            return attribute

        async def use(*args: Any, **options: Any) -> Any:
            await self._process.step(name)
            return await attribute(*args, **options)  # what it writes on the way is a step again

        return use

    def stream(self, thread: Any, key: str, *, begins: Any, began: Any) -> SteppingStream:
        """See `Notifier`."""
        growing = self._target.stream(thread, key, begins=begins, began=began)
        return SteppingStream(self._process, growing)


class SteppingStream:
    """A growing text; its first piece and its end are steps."""

    def __init__(self, process: Process, target: FakeStream) -> None:
        self._process = process
        self._target = target

    async def append(self, text: str) -> None:
        """See `Stream`."""
        if not self._target.pieces:
            await self._process.step("stream begins")
        await self._target.append(text)

    async def finish(self, text: str) -> str:
        """See `Stream`."""
        await self._process.step("stream ends")
        return await self._target.finish(text)

    async def abandon(self) -> None:
        """See `Stream`."""
        await self._target.abandon()


async def _pass_on(_: float) -> None:
    await asyncio.sleep(0)


# ---- the model ----------------------------------------------------------------------------------

JOBS = ("pay", "restart", "ask", "both")


def _next(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    """What the model says next: it depends on the conversation alone."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    if results:
        return [say(" | ".join(part.model_response_str() for part in results))]
    asked = [str(part.content) for part in last.parts if isinstance(part, UserPromptPart)]
    jobs = [job for text in asked for job in re.findall(r"job (\d+) (\w+)", text)]
    calls = [call for number, kind in jobs for call in _calls(number, kind)]
    return [say("I will do that."), *calls] if calls else [say("There is no job in that.")]


def mark(who: str) -> str:
    """What stands in everything that a person says here, so that one sees who has been heard."""
    return f"says {who}"


def yes_of(who: str) -> str:
    """What looks like a decision, in the way in which this person writes it."""
    return "yes" + "!" * (1 + PEOPLE.index(who))


def amount_of(who: str) -> int:
    """What this person changes an amount to."""
    return 101 + PEOPLE.index(who)


def heard_in(text: str) -> set[str]:
    """Who has said something of what stands in a text."""
    return {
        who
        for who in PEOPLE
        if mark(who) in text
        or re.search(rf"(?i)yes!{{{PEOPLE.index(who) + 1}}}(?!!)", text)
        or re.search(rf'"amount": {amount_of(who)}\b', text)
    }


def _calls(number: str, kind: str) -> list[ModelResponsePart]:
    if kind == "ask":
        return [call("ask_people", {"questions": [f"What about job {number}?"]}, id=f"ask{number}")]
    names = ("pay", "restart") if kind == "both" else (kind,)
    return [
        call(name, {"ref": f"job-{number}", "amount": 5}, id=f"{name}{number}") for name in names
    ]
