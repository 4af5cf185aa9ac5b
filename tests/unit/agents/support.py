"""Helpers for tests of the runtime: small tools and agents, a world to run them in, bad stores."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import (
    AgentEvent,
    AgentInput,
    ApprovalInfo,
    ChatModelAgent,
    InterruptContext,
    InterruptEvent,
    MemoryCheckpointStore,
    MemoryMessageLog,
    MessageEvent,
    ResumeParams,
    ReviewEditInfo,
    Runner,
    ScriptedModel,
    TextDelta,
    Tool,
    ToolDelta,
    ToolEvent,
    ToolReturn,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    make_message,
    stateful_interrupt,
)
from agents.agent import ActionEvent, Agent, ToolProgress
from agents.core.checkpoint import StoredCheckpoint
from agents.core.codec import Json
from agents.core.observers import Recorder
from agents.core.scope import AskAgain, BeforeStart, StartingCall
from agents.core.tools import CallText
from agents.models import Turn, call, say
from agents.policy.house import ApplicationPolicy
from agents.tools import ToolSpec


@dataclass
class Plain:
    """A tool that says what it got, and counts."""

    name: str
    body: Callable[[dict[str, Json]], object] | None = None
    idempotent: bool = False
    gates: tuple[str, ...] = ()
    calls: list[dict[str, Json]] = field(default_factory=list)

    @property
    def definition(self) -> ToolSpec:
        schema: dict[str, Json] = {"type": "object", "properties": {"x": {"type": "integer"}}}
        return ToolSpec(
            name=self.name,
            description=f"does {self.name}",
            schema=schema,
            gates=self.gates,
            idempotent=self.idempotent,
        )

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        return json.loads(json.dumps(dict(arguments)))  # type: ignore[no-any-return]

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        return CallText(title=f"Do {self.name}")

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        self.calls.append(arguments)
        result = self.body(arguments) if self.body else None
        if hasattr(result, "__await__"):
            result = await result
        if isinstance(result, ToolReturn):
            return result
        return result if isinstance(result, str) else f"{self.name} ok {json.dumps(arguments)}"


@dataclass
class Asker:
    """An agent that asks one question and says what was answered."""

    name: str
    description: str = ""
    idempotent: bool = True

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        yield make_message(f"{self.name} asking")
        stateful_interrupt(f"{self.name}?", f"st-{self.name}")

    async def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        _, _, state = get_interrupt_state(str)
        _, has_data, data = get_resume_context(object)
        if not has_data:
            stateful_interrupt(f"{self.name}?", state)
        yield make_message(f"{self.name} got {data}")


@dataclass
class World:
    """Everything that outlives a process, and what is needed to start another one."""

    script: list[Turn]
    tools: Sequence[Tool] = ()
    store: object = field(default_factory=MemoryCheckpointStore)
    log: MemoryMessageLog = field(default_factory=MemoryMessageLog)
    durability: str = "interrupt"
    options: dict[str, object] = field(default_factory=dict)
    models: list[ScriptedModel] = field(default_factory=list)
    asked: int = 0
    by_history: bool = False
    before_start: BeforeStart | None = None
    recorder: Recorder | None = None
    epoch: str = ""
    policy: ApplicationPolicy | None = None

    def agent(self, name: str = "A") -> Agent:
        if self.by_history:
            replayed = FunctionModel(self._next)
            return ChatModelAgent(name=name, model=replayed, tools=self.tools)
        model = ScriptedModel(self.script[self.asked :])
        self.models.append(model)
        return ChatModelAgent(name=name, model=model, tools=self.tools, **self.options)  # type: ignore[arg-type]

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        """Answer from what was said so far: the same again, if an answer was lost."""
        turn = self.script[sum(isinstance(message, ModelResponse) for message in messages)]
        parts = cast("list[ModelResponsePart]", turn if isinstance(turn, list) else [turn])
        return ModelResponse(parts=copy.deepcopy(parts))

    def runner(self, agent: Agent | None = None, **options: object) -> Runner:
        """A new process: new objects all over; the script goes on where it stopped."""
        self.asked = sum(model.calls for model in self.models)
        return Runner(
            agent or self.agent(),
            checkpoint_store=self.store,  # type: ignore[arg-type]
            message_log=self.log,
            durability=self.durability,  # type: ignore[arg-type]
            before_start=self.before_start,
            recorder=self.recorder,
            epoch=self.epoch,
            policy=self.policy,
            **options,  # type: ignore[arg-type]
        )

    async def run(self, checkpoint_id: str = "1", **options: object) -> list[AgentEvent]:
        events = self.runner().query("hi", checkpoint_id=checkpoint_id, **options)  # type: ignore[arg-type]
        return [event async for event in events]

    async def resume(
        self, targets: Mapping[str, object], checkpoint_id: str = "1", **options: object
    ) -> list[AgentEvent]:
        params = ResumeParams(targets=targets, **options)  # type: ignore[arg-type]
        return await collect(self.runner().resume_with_params(checkpoint_id, params))

    async def recover(self, checkpoint_id: str = "1") -> list[AgentEvent]:
        return await collect(self.runner().recover(checkpoint_id))

    async def pending(self, checkpoint_id: str = "1") -> tuple[InterruptContext, ...]:
        return await self.runner().pending(checkpoint_id)

    @property
    def last_input(self) -> list[str]:
        """What the model was told last, one line per part."""
        asked = [model for model in self.models if model.calls]
        parts = [part for message in asked[-1].inputs[-1] for part in message.parts]
        return [f"{part.part_kind}:{getattr(part, 'content', '')}" for part in parts]


def hooked(middlewares: Sequence[object], *tools: Tool, durability: str = "interrupt") -> World:
    """A world whose model calls a tool once, and ends, with middlewares around all of it."""
    options: dict[str, object] = {"middlewares": middlewares}
    script: list[Turn] = [call("t", id="c1"), say("done")]
    return World(script, tools or [Plain("t")], durability=durability, options=options)


def pay_world(*script: Turn, **options: Any) -> tuple[World, Plain]:
    """A world with one call that people are asked about, unless told otherwise; its tool."""
    pay = Plain("pay")
    turns: list[Turn] = list(script) or [call("pay", {"x": 1}, id="c1"), say("done")]
    return World(turns, [approval_gate(pay)], **options), pay


def step_world(*, idempotent: bool = False) -> tuple[World, Plain, Plain]:
    """A world whose runs are on record step by step; its gated tool, and its other one."""
    script: list[Turn] = [
        [call("look", {"x": 1}, id="c1"), call("pay", {"x": 2}, id="c2")],
        [call("look", {"x": 3}, id="c3")],
        say("done"),
    ]
    pay, look = Plain("pay", idempotent=idempotent), Plain("look")
    return World(script, [approval_gate(pay), look], durability="step"), pay, look


@dataclass
class Solo:
    """One agent, run in one thread, and what is kept of it."""

    agent: Agent
    streaming: bool = False
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)

    @property
    def runner(self) -> Runner:
        return Runner(self.agent, checkpoint_store=self.store, streaming=self.streaming)

    async def run(self) -> list[AgentEvent]:
        return await collect(self.runner.query("hi", checkpoint_id="1"))

    async def answer(self, targets: Mapping[str, object]) -> list[AgentEvent]:
        params = ResumeParams(targets=targets)
        return await collect(self.runner.resume_with_params("1", params))

    async def ask(
        self, targets: Mapping[str, object] | None = None
    ) -> tuple[InterruptContext, ...]:
        """Run, or go on with answers, up to the next questions."""
        events = await (self.run() if targets is None else self.answer(targets))
        event = events[-1]
        assert isinstance(event, InterruptEvent)
        return event.contexts


async def collect(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    return [event async for event in events]


async def follow(events: AsyncIterator[AgentEvent], received: list[AgentEvent]) -> None:
    async for event in events:
        received.append(event)  # noqa: PERF401 - what was told before an error counts


def brief(events: Sequence[AgentEvent]) -> list[str]:
    """Events, one short line each."""
    return [_line(event) for event in events]


def _line(event: AgentEvent) -> str:
    match event:
        case TextDelta():
            return f"delta {event.text}"
        case MessageEvent():
            calls = ", ".join(f"{call.name}#{call.id}" for call in event.tool_calls)
            return f"says {event.text}" if not calls else f"calls {calls}"
        case ToolEvent():
            return f"tool {event.call.name}#{event.call.id} {event.outcome}: {event.result}"
        case ToolDelta() | ToolProgress():
            return f"piece {event.call.name}#{event.call.id} {event.text}"
        case ActionEvent():
            return f"action {event.action}"
        case InterruptEvent():
            return "INT " + ", ".join(str(context.address) for context in event.contexts)


def contexts(events: Sequence[AgentEvent]) -> dict[str, InterruptContext]:
    """What the last event says is pending, by call id (or by address)."""
    last = events[-1]
    assert isinstance(last, InterruptEvent), brief(events)
    return {c.address.segments[-1].sub_id or str(c.address): c for c in last.contexts}


def yes(context: InterruptContext, by: str = "U1") -> object:
    if isinstance(context.info, ReviewEditInfo):
        return context.info.accept(by=by)
    assert isinstance(context.info, ApprovalInfo)
    return context.info.approve(by=by)


def no(context: InterruptContext, reason: str | None = None, by: str = "U1") -> object:
    assert isinstance(context.info, ApprovalInfo)
    return context.info.reject(reason, by=by)


@dataclass
class Watchman:
    """Has people asked anew as often as it is told to, and remembers which starts it saw.

    Attributes:
        reasons: Why people are asked anew, one for each time.
        frozen: What it keeps with each start that it lets begin.
    """

    reasons: list[str] = field(default_factory=list)
    frozen: Mapping[str, Json] = field(default_factory=dict)
    seen: list[StartingCall] = field(default_factory=list)

    async def __call__(self, call: StartingCall) -> Mapping[str, Json] | AskAgain:
        self.seen.append(call)
        return AskAgain(self.reasons.pop(0)) if self.reasons else self.frozen


class Died(BaseException):
    """The process was killed."""


def die(_: object) -> str:
    """Be the body of a tool whose process is killed."""
    raise Died


async def dies_in(tool: Plain, work: Awaitable[object]) -> None:
    """Kill the process while this work is in the tool."""
    body, tool.body = tool.body, die
    with pytest.raises(Died):
        await work
    tool.body = body


async def tamper(store: object, change: Callable[[str], str]) -> None:
    """Change the stored text of run "1"."""
    assert isinstance(store, MemoryCheckpointStore)
    stored = await store.load("1")
    assert stored is not None
    text = change(stored.data)
    assert text != stored.data
    await store.save("1", text, status=stored.status, expected_version=stored.version)


def without_state(text: str) -> str:
    """A checkpoint whose interrupted component has lost its state."""
    data = json.loads(text)
    data["waiting"]["state"] = "x"
    return json.dumps(data)


class WatchedStore:
    """A store that tells `at` of each write, right before it and right after it."""

    def __init__(self, inner: MemoryCheckpointStore | None = None) -> None:
        self.inner = inner or MemoryCheckpointStore()

    def at(self, write: str, text: str, *, before: bool) -> None:
        """Note it, or raise what the process dies of."""

    async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
        return await self.inner.load(checkpoint_id)

    async def save(self, checkpoint_id: str, data: str, **more: Any) -> int:
        self.at("save", data, before=True)
        version = await self.inner.save(checkpoint_id, data, **more)
        self.at("save", data, before=False)
        return version

    async def claim(self, checkpoint_id: str, claim: str, **more: Any) -> int:
        self.at("claim", claim, before=True)
        version = await self.inner.claim(checkpoint_id, claim, **more)
        self.at("claim", claim, before=False)
        return version

    async def amend(self, checkpoint_id: str, change: str, **more: Any) -> int:
        self.at("amend", change, before=True)
        version = await self.inner.amend(checkpoint_id, change, **more)
        self.at("amend", change, before=False)
        return version

    async def append(self, checkpoint_id: str, entry: str, **more: Any) -> None:
        self.at("append", entry, before=True)
        await self.inner.append(checkpoint_id, entry, **more)
        self.at("append", entry, before=False)

    async def close(self, checkpoint_id: str, **more: Any) -> None:
        self.at("close", "", before=True)
        await self.inner.close(checkpoint_id, **more)
        self.at("close", "", before=False)

    async def ids(self, **more: Any) -> Sequence[str]:
        return await self.inner.ids(**more)

    async def delete(self, checkpoint_id: str, **more: Any) -> None:
        await self.inner.delete(checkpoint_id, **more)


class DyingStore(WatchedStore):
    """A store whose process is killed at its n-th write: before it, or right after it."""

    def __init__(self, inner: MemoryCheckpointStore, *, at: int, before: bool) -> None:
        super().__init__(inner)
        self._writes = 0
        self._last = at
        self._before = before

    def at(self, write: str, text: str, *, before: bool) -> None:
        self._writes += before
        if self._writes > self._last or (self._writes == self._last and before <= self._before):
            raise Died


class AwayStore(WatchedStore):
    """A store whose writes of some kinds fail while it is away."""

    def __init__(self, *writes: str, error: Exception | None = None, is_away: bool = True) -> None:
        super().__init__()
        self.is_away = is_away
        self._writes = writes
        self._error = error or OSError("store down")

    def at(self, write: str, text: str, *, before: bool) -> None:
        if self.is_away and before and write in self._writes:
            raise self._error


class CountingStore(MemoryCheckpointStore):
    """Keeps all that is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[str] = []

    async def save(self, checkpoint_id: str, data: str, **more: Any) -> int:
        version = await super().save(checkpoint_id, data, **more)
        self.saved.append(data)
        return version
