"""Teams of agents, in as many processes as it takes: each starts with new agents and models."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
from pydantic_ai.models import Model
from pydantic_ai.models.function import FunctionModel

from agents.agent import (
    ActionEvent,
    Agent,
    AgentEvent,
    AgentInput,
    InterruptEvent,
    function_agent,
    make_action,
    make_message,
)
from agents.chat.agent import ChatModelAgent
from agents.core.calls import Action
from agents.core.checkpoint import CheckpointStatus
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.interrupt import stateful_interrupt
from agents.core.pending import InterruptContext
from agents.core.tools import Tool
from agents.memory import MemoryCheckpointStore
from agents.models import ScriptedModel, Turn, call
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from tests.unit.agents.support import Died, DyingStore, collect, follow


@dataclass
class Team:
    """Everything that outlives a process.

    Attributes:
        build: Makes the root agent anew.
        scripts: What the models answer, by their names.
        by_history: Whether a model answers from what was said, so that it may be asked again.
    """

    build: Callable[[Team], Agent]
    scripts: Mapping[str, Sequence[Turn]] = field(default_factory=dict)
    store: object = field(default_factory=MemoryCheckpointStore)
    durability: str = "interrupt"
    by_history: bool = False
    models: dict[str, list[ScriptedModel]] = field(default_factory=dict)
    entered: list[str] = field(default_factory=list)

    def model(self, name: str) -> Model:
        if self.by_history:
            return FunctionModel(lambda messages, _: self._replayed(name, messages))
        made = self.models.setdefault(name, [])
        made.append(ScriptedModel(self.scripts[name][self.asked(name) :]))
        return made[-1]

    def _replayed(self, name: str, messages: list[ModelMessage]) -> ModelResponse:
        turn = self.scripts[name][sum(isinstance(message, ModelResponse) for message in messages)]
        parts = cast("list[ModelResponsePart]", turn if isinstance(turn, list) else [turn])
        return ModelResponse(parts=copy.deepcopy(parts))

    def asked(self, name: str) -> int:
        """How often the model was asked, in all processes."""
        return sum(model.calls for model in self.models.get(name, []))

    def heard(self, name: str, at: int = -1) -> list[str]:
        """What the model was told with one of its requests, one line per part."""
        requests = [request for model in self.models[name] for request in model.inputs]
        parts = [part for message in requests[at] for part in message.parts]
        return [
            f"{part.part_kind}: {getattr(part, 'content', None) or getattr(part, 'args', '')}"
            for part in parts
        ]

    def chat(self, name: str, *tools: Tool, **options: object) -> ChatModelAgent:
        return ChatModelAgent(name=name, model=self.model(name), tools=tools, **options)  # type: ignore[arg-type]

    def runner(self) -> Runner:
        return Runner(
            self.build(self),
            checkpoint_store=self.store,  # type: ignore[arg-type]
            durability=self.durability,  # type: ignore[arg-type]
        )

    async def run(self, **options: object) -> list[AgentEvent]:
        return await collect(self.runner().query("hi", checkpoint_id="1", **options))  # type: ignore[arg-type]

    async def resume(self, targets: Mapping[str, object], **options: object) -> list[AgentEvent]:
        params = ResumeParams(targets=targets, **options)  # type: ignore[arg-type]
        return await collect(self.runner().resume_with_params("1", params))

    async def drive(
        self, received: list[AgentEvent], answer: Callable[[InterruptContext], object]
    ) -> None:
        """Go on from whatever the checkpoint says until the run has ended; one answer a time."""
        stored = await self.store.load("1")  # type: ignore[attr-defined]
        while stored is None or stored.status is not CheckpointStatus.CLOSED:
            runner = self.runner()
            if stored is None:
                events: AsyncIterator[AgentEvent] = runner.query("hi", checkpoint_id="1")
            elif stored.status is CheckpointStatus.RUNNING:
                events = runner.recover("1")
            else:
                context = (await runner.pending("1"))[-1]
                events = runner.resume("1", {context.id: answer(context)})
            told_before = len(received)
            await follow(events, received)
            if stored is None and not isinstance(received[-1], InterruptEvent):
                return
            assert len(received) > told_before or stored is not None
            stored = await self.store.load("1")  # type: ignore[attr-defined]

    async def dies_once(
        self, answer: Callable[[InterruptContext], object], *, at: int, before: bool
    ) -> list[AgentEvent]:
        """Run to the end through two processes: the first dies at its n-th write."""
        store, received = MemoryCheckpointStore(), list[AgentEvent]()
        self.store = DyingStore(store, at=at, before=before)
        try:
            await self.drive(received, answer)
        except Died:
            self.store = store
            await self.drive(received, answer)
        return received

    def asker(self, name: str, then: Action | None = None) -> Agent:
        """An agent that asks one question, says what was answered, and may end with an action."""

        async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
            was_interrupted, _has_state, state = get_interrupt_state(str)
            is_target, has_data, data = get_resume_context(str)
            mode = "resume" if was_interrupted else "run"
            self.entered.append(f"{name} {mode}{' target' if is_target else ''}")
            if not was_interrupted:
                yield make_message(f"{name} asking")
            if not has_data:
                stateful_interrupt(f"{name}?", state or f"st-{name}")
            assert state == f"st-{name}"
            yield make_message(f"{name} got {data}")
            if then is not None:
                yield make_action(then)

        return function_agent(name, work, idempotent=True)

    def sayer(self, name: str, then: Action | None = None) -> Agent:
        """An agent that only says something."""

        async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
            self.entered.append(f"{name} run")
            yield make_message(f"{name} says")
            if then is not None:
                yield make_action(then)

        return function_agent(name, work)

    def failing(self, name: str, error: BaseException) -> Agent:
        """An agent that says something, and fails."""

        async def work(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
            yield make_message(f"{name} trying")
            raise error

        return function_agent(name, work)

    def listener(self, name: str) -> Agent:
        """An agent that says what it was told."""

        async def work(given: AgentInput) -> AsyncGenerator[AgentEvent, None]:
            self.entered.append(f"{name} run")
            parts = [part for message in given.messages for part in message.parts]
            heard = " | ".join(str(getattr(part, "content", "")) for part in parts)
            yield make_message(f"{name} heard {heard}")

        return function_agent(name, work)


def hand_to(name: str, call_id: str) -> Turn:
    """A model hands over to an agent."""
    return call("transfer_to_agent", {"agent_name": name}, id=call_id)


def pending(events: Sequence[AgentEvent]) -> dict[str, InterruptContext]:
    """What the last event says is pending, by the name of the agent that asks, or the call id."""
    last = events[-1]
    assert isinstance(last, InterruptEvent), last
    by_id = {}
    for context in last.contexts:
        segment = context.address.segments[-1]
        by_id[segment.sub_id if segment.type == "tool" else segment.id] = context
    return by_id


def parents(context: InterruptContext) -> list[str]:
    """Addresses and infos of those around, nearest first."""
    lines, at = [], context.parent
    while at is not None:
        lines.append(f"{at.address} {at.info}")
        at = at.parent
    return lines


def actions(events: Sequence[AgentEvent]) -> list[ActionEvent]:
    return [event for event in events if isinstance(event, ActionEvent)]
