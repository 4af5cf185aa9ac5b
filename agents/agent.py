"""Agents and their events, and how one agent runs another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from pydantic_ai.messages import ModelMessage

from agents.core.address import Address, Segment
from agents.core.calls import Action, File, ToolCall
from agents.core.cancel import stop
from agents.core.component.context import event_key, is_outside_of_tools
from agents.core.component.doubts import begin_answered
from agents.core.component.exits import contained
from agents.core.component.held import acts_on_answer
from agents.core.component.legacy import old_interrupts
from agents.core.errors import (
    AgentConfigError,
    DuplicateNameError,
    OutsideRunError,
    SwallowedInterruptError,
)
from agents.core.interrupt import InterruptSignal, ungrouped
from agents.core.messages import Cut
from agents.core.observers import ToolOutcome
from agents.core.outlet import Outlet, current_outlet, passes_on, telling
from agents.core.pending import InterruptContext
from agents.core.scope import Scope, Watch, current_scope, entered

__all__ = [
    "ActionEvent",
    "Agent",
    "AgentEvent",
    "AgentInput",
    "Event",
    "FunctionAgent",
    "InterruptEvent",
    "MessageEvent",
    "TextDelta",
    "ToolDelta",
    "ToolEvent",
    "check_unique_names",
    "emit",
    "function_agent",
    "make_action",
    "make_message",
    "run_agent",
]

_DOUBT = "doubt"
"""The slot of the question whether an agent ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events of an agent.

    Attributes:
        agent_name: Whose event it is.
        run_path: Names of the agents from the root to that agent.
        key: Unique per event of a checkpoint, and the same when a run is repeated after a crash.
        branches: In which branches it happened, outermost first: where the agents stand that run
            others side by side, and the number of the branch. Brings what was told as it happened
            into one order that is always the same.
        is_inner: Whether it comes out of a tool call. For display only: agents around take no
            notice.
    """

    agent_name: str
    run_path: tuple[str, ...]
    key: str
    branches: tuple[tuple[str, int], ...] = ()
    is_inner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """A piece of a streamed model text. Its key is the key of the whole message.

    Attributes:
        text: The piece.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEvent(Event):
    """A complete answer of an agent's model.

    Attributes:
        text: What it says; may be empty.
        tool_calls: What it wants to call.
        is_kept: Whether the journal of its run has it before it is told, and the message log when
            the run ends; of what a custom agent says, nobody knows.
        cut: Why it is not whole: `length`, where the model reached a limit, or `unknown`, where the
            connection ended before the answer; empty when it is.
        is_heard: Whether it passes on what a person said in answer to a question: people have it.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    is_kept: bool = False
    cut: Cut = ""
    is_heard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent(Event):
    """A finished tool call, with its outcome and result.

    Attributes:
        call: Which.
        result: What the model is told.
        outcome: What came of it.
        files: What the model is shown besides.
        secret: Names of arguments that people are never shown; see `ToolSpec`.
        shown: Names of arguments that are no secrets, whatever they look like.
    """

    call: ToolCall
    result: str
    outcome: ToolOutcome
    files: tuple[File, ...] = ()
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDelta(Event):
    """A piece of a running tool's result. Its key is the key of the whole result.

    When the call is interrupted instead of finished, what came so far does not count.

    Attributes:
        call: Which.
        text: The piece.
    """

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(Event):
    """An agent's wish for what happens next; workflows and agents around it carry it out.

    Attributes:
        action: What.
        is_done: Whether it has been seen to; agents further out only pass it on.
    """

    action: Action
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptEvent(Event):
    """The run waits for people. Last event of a run; the checkpoint is already stored.

    Attributes:
        contexts: Everything that is pending now, in order; what was pending before and was not
            answered has the id that it had.
    """

    contexts: tuple[InterruptContext, ...]

    @property
    def data(self) -> object:
        """The info of the outermost interrupt: the old data field.

        Such as a `ChatInterruptInfo`; None when nothing is pending.
        """
        if not self.contexts:
            return None
        context = self.contexts[0]
        while context.parent is not None:
            context = context.parent
        return context.info


AgentEvent: TypeAlias = (
    TextDelta | MessageEvent | ToolDelta | ToolEvent | ActionEvent | InterruptEvent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """An agent's input.

    Attributes:
        messages: The messages of this turn.
        history: Those of earlier turns; never stored with a checkpoint.
        origin: What some of the messages were made of, for `agents.chat.handoff` alone.
    """

    messages: tuple[ModelMessage, ...]
    history: tuple[ModelMessage, ...] = ()
    origin: object = field(default=None, repr=False, compare=False)


class Agent(Protocol):
    """A component that works on messages, yields events, and can be interrupted.

    Its code runs inside its address segment `agent:<name>`. It asks people by raising
    (`interrupt` and its kind), and passes the signals of agents below on: as they are, or caught
    and raised again as one with `composite_interrupt`. Whatever it needs to go on is in the state
    that it raised with; the object itself may be a new one.

    With an answer to its own question it starts at most once: after a crash people are asked
    whether it ran, unless it has an attribute `idempotent` that is true.
    """

    @property
    def name(self) -> str:
        """Unique among its siblings; part of addresses: never change it while runs are pending."""
        ...

    @property
    def description(self) -> str:
        """Its strengths, for models that may call it."""
        ...

    def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - the documented name
        """Begin.

        Raises:
            InterruptSignal: People are needed.
        """
        ...

    def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - the documented name
        """Go on after an interrupt of its own or of something below it.

        Args:
            input: The same that `run` got.

        Raises:
            InterruptSignal: People are needed, again or still.
        """
        ...


def check_agent(agent: object) -> None:
    """Make sure that something is an agent: people may answer it long after it was made.

    Raises:
        AgentConfigError: It has no name, or cannot be run or resumed.
    """
    name = getattr(agent, "name", None)
    if not isinstance(name, str) or not name:
        raise AgentConfigError(f"{agent!r} is no agent: it has no `name`, a text that is not empty")
    for method in ("run", "resume"):
        if not callable(getattr(agent, method, None)):
            raise AgentConfigError(
                f"agent {name!r} has no method `{method}`; `function_agent` makes an agent of one "
                "function, for both"
            )


def check_unique_names(owner: str, agents: Iterable[Agent]) -> None:
    """Make sure that no two agents of one owner have one name. For agents made of others.

    Args:
        owner: Name of the agent that they belong to.
        agents: Those that stand side by side below it.

    Raises:
        DuplicateNameError: Two have one name.
        AgentConfigError: One is no agent.
    """
    seen: set[str] = set()
    for agent in agents:
        check_agent(agent)
        if agent.name in seen:
            raise DuplicateNameError(owner, "agent", agent.name)
        seen.add(agent.name)


@dataclass(frozen=True, slots=True)
class FunctionAgent:
    """An agent that is one function, for run and resume alike; see `function_agent`.

    Attributes:
        name: See `Agent`.
        function: What it does.
        description: See `Agent`.
        idempotent: See `Agent`.
    """

    name: str
    function: Callable[[AgentInput], AsyncIterator[AgentEvent]]
    description: str = ""
    idempotent: bool = False

    def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Begin; see `Agent.run`."""
        return self.function(input)

    def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Enter the function again; see `Agent.resume`."""
        return self.function(input)


def function_agent(
    name: str,
    function: Callable[[AgentInput], AsyncIterator[AgentEvent]],
    *,
    description: str = "",
    idempotent: bool = False,
) -> Agent:
    """Make an agent of one async generator function.

    The function is entered when the agent begins, and again after each interrupt. It finds out
    with `get_interrupt_state` and `get_resume_context` which of them it is.

    Args:
        name: See `Agent`.
        function: Takes the input and yields events (`make_message`, `make_action`).
        description: See `Agent`.
        idempotent: Whether it may simply run again with its answer after a crash; otherwise people
            are asked whether it ran.

    Raises:
        AgentConfigError: It is no async generator function.
    """
    if inspect.iscoroutinefunction(function):
        raise AgentConfigError(
            f"the function of agent {name!r} yields nothing; write at least one `yield "
            "make_message(…)` in it"
        )
    return FunctionAgent(name, function, description, idempotent)


def emit(event: AgentEvent) -> None:
    """Tell an event of the current agent where nothing can be yielded: in a tool call, or a node.

    Raises:
        OutsideRunError: Nobody who reads events is running anything here.
    """
    outlet = current_outlet()
    if outlet is None:
        raise OutsideRunError("emit()")
    outlet(event)


def emit_inner(event: AgentEvent) -> None:
    """Tell an event of an agent further in. For display: nobody acts on it.

    Raises:
        OutsideRunError: See `emit`.
    """
    if isinstance(event, ActionEvent):
        event = replace(event, is_done=True)
    emit(replace(event, is_inner=True))


class _End:
    """Ends a queue of events."""


async def run_agent(
    agent: Agent,
    input: AgentInput,  # noqa: A002 - the documented name
    *,
    outer: Scope | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """Run an agent below the current address, or resume it when something in it waits.

    It runs in a task of its own, so that neither its scope nor its context leaks. What waits in it
    and was not answered stays as it is: then no code of it runs.

    Args:
        agent: The agent.
        input: What it works on; the same for run and resume.
        outer: Where it stands; the current scope when it is left out.

    Raises:
        InterruptSignal: People are needed in it.
        SwallowedInterruptError: It caught a signal and went on.
        AgentConfigError: It is no agent.
    """
    check_agent(agent)
    outer = outer or current_scope("run_agent()")
    scope, is_resumed = _enter(outer, agent.name)
    untouched = outer.run.untouched(scope.address)
    if untouched is not None:
        outer.watch.raised = True
        raise InterruptSignal(untouched)
    if is_resumed:
        outer.run.entered.add(scope.address)
        if not getattr(agent, "idempotent", False) and not await _begins(agent, scope, outer):
            return
        # Whoever has a method for it knows that it goes on; a function has to look.
        find = outer.run.enter if isinstance(agent, FunctionAgent) else outer.run.claim
        scope = replace(scope, point=find(scope.address, ""))
    is_told = passes_on() and is_outside_of_tools(outer.address)
    queue: asyncio.Queue[AgentEvent | _End] = asyncio.Queue()
    begin = agent.resume if is_resumed else agent.run
    pump = _pump(partial(begin, input), scope, queue)
    task = asyncio.create_task(pump, context=copy_context())
    try:
        while not isinstance(event := await queue.get(), _End):
            if is_told:
                emit_inner(event)
            yield event
        await task
    except InterruptSignal:
        outer.watch.raised = True
        raise
    finally:
        await stop(task)


async def _begins(agent: Agent, scope: Scope, outer: Scope) -> bool:
    """Note that an agent starts with its own answer; False when people say that it ran."""
    try:
        with entered(scope):
            return await begin_answered(
                agent.name,
                f"Agent “{agent.name}”",
                at=str(scope.address),
                slot=_DOUBT,
                has_answer=acts_on_answer(scope.run, scope.address),
            )
    except InterruptSignal:
        outer.watch.raised = True
        raise


def make_message(text: str, *, is_heard: bool = False) -> MessageEvent:
    """Make the event of a text that the current agent says; see `MessageEvent`."""
    return MessageEvent(**header(event_key()), text=text, is_heard=is_heard)


def make_action(action: Action) -> ActionEvent:
    """Make the event of what the current agent wants to happen next."""
    return ActionEvent(**header(event_key()), action=action)


def header(key: str) -> dict[str, Any]:
    """The fields that all events of the current agent have, for its constructors."""
    path = run_path(current_scope("header()").address)
    return {"agent_name": path[-1] if path else "", "run_path": path, "key": key}


def run_path(address: Address) -> tuple[str, ...]:
    """Names of the agents on the way to an address."""
    return tuple(segment.id for segment in address.segments if segment.type == "agent")


def _enter(outer: Scope, name: str) -> tuple[Scope, bool]:
    """Stand in the agent's address. The second run of an agent in one place has another address."""
    run = outer.run
    base = outer.address.child(Segment("agent", name))
    count = max(run.counts.get(str(base), 0), 1)
    address = _numbered(outer.address, name, count)
    is_resumed = run.topmost(address) is not None and address not in run.entered
    if not is_resumed:
        address = _numbered(outer.address, name, run.count(str(base)))
    return replace(
        outer, address=address, slot="", point=None, watch=Watch(), granted=None, why=""
    ), is_resumed


def _numbered(address: Address, name: str, count: int) -> Address:
    return address.child(Segment("agent", name, str(count) if count > 1 else ""))


async def _pump(
    begin: Callable[[], AsyncIterator[AgentEvent]],
    scope: Scope,
    queue: asyncio.Queue[AgentEvent | _End],
) -> None:
    try:
        with (
            telling(cast("Outlet", queue.put_nowait), passes_on=False),
            entered(scope),
            ungrouped(),
            contained(),
            old_interrupts(),
        ):
            # An agent is written as an async generator: it has `aclose`.
            async with aclosing(cast("AsyncGenerator[AgentEvent, None]", begin())) as events:
                async for event in events:
                    queue.put_nowait(event)
        if scope.watch.raised:
            raise SwallowedInterruptError(str(scope.address))
    finally:
        queue.put_nowait(_End())
