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
from agents.core.component.doubts import acts_on_answer, begin_answered
from agents.core.component.exits import contained
from agents.core.component.legacy import old_interrupts
from agents.core.errors import (
    AgentConfigError,
    DuplicateNameError,
    OutsideRunError,
    SwallowedInterruptError,
)
from agents.core.events import Outlet, current_outlet, passes_on, telling
from agents.core.interrupt import InterruptSignal, ungrouped
from agents.core.messages import Cut
from agents.core.observers import ToolOutcome
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
    "ToolProgress",
    "check_unique_names",
    "emit",
    "function_agent",
    "make_action",
    "make_message",
    "run_agent",
]

_DOUBT = "doubt"
"""State slot of the interrupt that asks whether an agent ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base class of an agent's events.

    Attributes:
        agent_name: Name of the agent.
        run_path: Names of the agents from the root to that agent.
        key: Unique per event of a checkpoint, and the same when a run is repeated after a crash.
        branches: Parallel branches of the event, outermost first: the address of each parallel
            agent and the number of the branch. They give live events a stable order.
        is_inner: Whether the event comes from inside a tool call. For display only: enclosing
            agents ignore it.
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
        text: The answer's text; may be empty.
        tool_calls: Requested tool calls.
        is_kept: Whether the answer is journaled before the event, and added to the message log when
            the run ends. Unknown for messages of custom agents.
        cut: Why the answer is incomplete: `length` if the model reached a limit, `unknown` if the
            connection ended early; empty if it is complete.
        is_heard: Whether the text repeats a person's answer to a question, which people have seen.
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
        call: The call.
        result: Result for the model.
        outcome: Outcome of the call.
        files: Further content for the model.
        secret: Names of arguments that people are never shown; see `ToolSpec`.
        shown: Names of arguments that are not secret, even if they look secret.
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

    If the call is interrupted instead of finished, discard its pieces.

    Attributes:
        call: The call.
        text: The piece.
    """

    call: ToolCall
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """A running tool's report of its progress; see `report_progress`.

    Attributes:
        call: The call.
        text: The report. Untrusted.
        fraction: The part that is done, from 0 to 1; None if unknown.
    """

    call: ToolCall
    text: str
    fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(Event):
    """A transfer, exit or break that an agent requests from the enclosing workflow.

    Attributes:
        action: The requested action.
        is_done: Whether an inner workflow has carried it out. Outer agents only pass it on.
    """

    action: Action
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptEvent(Event):
    """The run is interrupted. Last event of a run; the checkpoint is already stored.

    Attributes:
        contexts: All pending interrupts, in order. Unanswered interrupts keep their ids.
    """

    contexts: tuple[InterruptContext, ...]

    @property
    def data(self) -> object:
        """The info of the outermost interrupt, such as `ChatInterruptInfo`, or None."""
        if not self.contexts:
            return None
        context = self.contexts[0]
        while context.parent is not None:
            context = context.parent
        return context.info


AgentEvent: TypeAlias = (
    TextDelta | MessageEvent | ToolDelta | ToolProgress | ToolEvent | ActionEvent | InterruptEvent
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInput:
    """An agent's input.

    Attributes:
        messages: The messages of this turn.
        history: Messages of earlier turns; never stored with a checkpoint.
        origin: Source of the messages, for `agents.chat.handoff` only.
    """

    messages: tuple[ModelMessage, ...]
    history: tuple[ModelMessage, ...] = ()
    origin: object = field(default=None, repr=False, compare=False)


class Agent(Protocol):
    """A component that works on messages, yields events, and can be interrupted.

    Its code runs inside its address segment `agent:<name>`. It asks people by raising a signal
    (`interrupt` and similar functions), and passes on the signals of inner agents: unchanged, or
    combined with `composite_interrupt`. On resume the object may be a new one, so all data that it
    needs must be in the state of its interrupt.

    With an answer to its own question it starts at most once. After a crash people are asked
    whether it ran, unless its attribute `idempotent` is true.
    """

    @property
    def name(self) -> str:
        """Name, unique among siblings, part of addresses.

        Never change it while runs are pending.
        """
        ...

    @property
    def description(self) -> str:
        """Strengths of the agent, for models that may call it."""
        ...

    def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - the documented name
        """Begin a run.

        Raises:
            InterruptSignal: The agent is interrupted.
        """
        ...

    def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - the documented name
        """Resume after an interrupt of the agent or of a component below it.

        Args:
            input: The input that `run` received.

        Raises:
            InterruptSignal: The agent is interrupted again, or an interrupt is still pending.
        """
        ...


def check_agent(agent: object) -> None:
    """Check that an object is an agent when it is configured, long before its resume."""
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
    """Check that agents with the same parent have different names.

    Args:
        owner: Name of the parent agent.
        agents: Its child agents.

    Raises:
        DuplicateNameError: Two agents share a name.
        AgentConfigError: An object is not an agent.
    """
    seen: set[str] = set()
    for agent in agents:
        check_agent(agent)
        if agent.name in seen:
            raise DuplicateNameError(owner, "agent", agent.name)
        seen.add(agent.name)


@dataclass(frozen=True, slots=True)
class FunctionAgent:
    """An agent whose run and resume are one function; see `function_agent`.

    Attributes:
        name: See `Agent`.
        function: The function.
        description: See `Agent`.
        idempotent: See `Agent`.
    """

    name: str
    function: Callable[[AgentInput], AsyncIterator[AgentEvent]]
    description: str = ""
    idempotent: bool = False

    def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Call the function; see `Agent.run`."""
        return self.function(input)

    def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Call the function again; see `Agent.resume`."""
        return self.function(input)


def function_agent(
    name: str,
    function: Callable[[AgentInput], AsyncIterator[AgentEvent]],
    *,
    description: str = "",
    idempotent: bool = False,
) -> Agent:
    """Create an agent from an async generator function.

    The function is called when the agent begins, and again on each resume. Use
    `get_interrupt_state` and `get_resume_context` to distinguish the two.

    Args:
        name: See `Agent`.
        function: Takes the input and yields events (`make_message`, `make_action`).
        description: See `Agent`.
        idempotent: Whether the function may run again with its answer after a crash. Otherwise
            people are asked whether it ran.

    Raises:
        AgentConfigError: `function` is not an async generator function.
    """
    if inspect.iscoroutinefunction(function):
        raise AgentConfigError(
            f"the function of agent {name!r} yields nothing; write at least one `yield "
            "make_message(…)` in it"
        )
    if inspect.isgeneratorfunction(function):
        raise AgentConfigError(
            f"the function of agent {name!r} is not asynchronous; begin it with `async def`"
        )
    return FunctionAgent(name, function, description, idempotent)


def emit(event: AgentEvent) -> None:
    """Emit an event of the current agent from a tool call or a node.

    Raises:
        OutsideRunError: There is no current run with a reader of events.
    """
    outlet = current_outlet()
    if outlet is None:
        raise OutsideRunError("emit()")
    outlet(event)


def emit_inner(event: AgentEvent) -> None:
    """Emit an event of an inner agent, for display only."""
    if isinstance(event, ActionEvent):
        event = replace(event, is_done=True)
    emit(replace(event, is_inner=True))


class _End:
    """Marks the end of a queue of events."""


async def run_agent(
    agent: Agent,
    input: AgentInput,  # noqa: A002 - the documented name
    *,
    outer: Scope | None = None,
) -> AsyncGenerator[AgentEvent, None]:
    """Run an agent below the current address, or resume its pending interrupt.

    The agent runs in a task of its own, so that neither its scope nor its context leaks. If none of
    its interrupts was answered, its code does not run.

    Args:
        agent: The agent.
        input: Its input; the same for run and resume.
        outer: The enclosing scope; by default the current one.

    Raises:
        InterruptSignal: The agent is interrupted.
        SwallowedInterruptError: The agent caught a signal and continued.
        AgentConfigError: The object is not an agent, or yields something else than events.
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
        # `resume` tells an agent that it continues; a function must look for its interrupt.
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
    """Record that an agent starts with its own answer.

    Returns False if people say that the agent ran before a crash.
    """
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
    """Create the event of a text of the current agent; see `MessageEvent`."""
    return MessageEvent(**header(event_key()), text=text, is_heard=is_heard)


def make_action(action: Action) -> ActionEvent:
    """Create the event that requests an action of the enclosing workflow."""
    return ActionEvent(**header(event_key()), action=action)


def header(key: str) -> dict[str, Any]:
    """Return the fields that all events of the current agent share."""
    path = current_scope("header()").address.agents
    return {"agent_name": path[-1] if path else "", "run_path": path, "key": key}


def _enter(outer: Scope, name: str) -> tuple[Scope, bool]:
    """Return the scope at the agent's address.

    A second run of an agent in the same place has another address.
    """
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
            # Agents are async generators, which have `aclose`.
            async with aclosing(_generator(scope, begin())) as events:
                async for event in events:
                    if not isinstance(event, Event):
                        raise AgentConfigError(
                            f"agent {scope.address.agents[-1]!r} yielded a "
                            f"{type(event).__name__}, which is no event; use `make_message(…)`"
                        )
                    queue.put_nowait(event)
        if scope.watch.raised:
            raise SwallowedInterruptError(str(scope.address))
    finally:
        queue.put_nowait(_End())


def _generator(scope: Scope, events: object) -> AsyncGenerator[AgentEvent, None]:
    if not isinstance(events, AsyncGenerator):
        raise AgentConfigError(
            f"agent {scope.address.agents[-1]!r} returned a {type(events).__name__} instead of "
            "its events; write an async generator: `async def` with `yield`"
        )
    return cast("AsyncGenerator[AgentEvent, None]", events)
