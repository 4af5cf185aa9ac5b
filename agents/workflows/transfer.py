"""Handing over: an agent ends its part, and another goes on in its place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import NoReturn, cast

from agents.agent import (
    ActionEvent,
    Agent,
    AgentEvent,
    AgentInput,
    MessageEvent,
    ToolEvent,
    check_unique_names,
    header,
    make_action,
    run_agent,
    run_path,
)
from agents.chat.agent import ChatModelAgent
from agents.chat.handoff import Notes, told
from agents.core.calls import ToolCall, Transfer
from agents.core.codec import Json, register
from agents.core.component.context import event_key
from agents.core.component.state import get_interrupt_state, state_slot
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    CheckpointDecodeError,
    TransferLimitError,
)
from agents.core.interrupt import InterruptSignal, keep_waiting, pass_on
from agents.core.observers import ToolOutcome
from agents.core.scope import current_address
from agents.runs.topology import Component, Described, Key, agent_component
from agents.tools.actions import TRANSFER_NAME, transfer_tool
from agents.tools.base import Tool

MAX_DEPTH = 100
"""Maximum number of agents below each other. More are two agents that transfer in a circle."""

_SLOT = "transfer"


@register("countersign.transfer-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class TransferState:
    """The agent that goes on, and the notes before it. Stored: version 1, must stay readable.

    Attributes:
        target: Name of the agent that was handed over to; empty while it is the first one.
        begun_at: How many of the notes were there when its turn began.
        notes: What the agents have said.
    """

    target: str
    begun_at: int
    notes: list[Json]


@dataclass(slots=True)
class _Position:
    """The progress of a transfer, in memory; see `TransferState`."""

    target: str = ""
    begun_at: int = 0
    notes: Notes = field(default_factory=Notes)


class TransferAgent:
    """An agent that can hand over to others, and those it can hand over to: `with_sub_agents`.

    The agent itself runs in place, with the same address. When it asks for a transfer (a tool of
    it returns the action `Transfer`), the other runs below it, told what was said:
    `agent:Boss;agent:Worker`. A sub-agent can hand over back to the agent above, and that to
    another: `agent:A;agent:B;agent:A;agent:C`. Whoever has handed over has ended; after an
    interrupt only the last one goes on.

    Args:
        agent: The agent.
        sub_agents: Whom it can hand over to.
        parent: The agent above, that it can hand over to as well.
        does_return: Whether it hands over to the agent above by itself when it has ended.
        do_subs_return: Whether its sub-agents do that.

    Raises:
        DuplicateNameError: Two of them have one name.
    """

    _agent: Agent
    _subs: tuple[Agent, ...]
    _do_subs_return: bool

    def __init__(
        self,
        agent: Agent,
        sub_agents: Sequence[Agent],
        *,
        parent: TransferAgent | None = None,
        does_return: bool = False,
        do_subs_return: bool = False,
    ) -> None:
        self._agent = agent
        self._subs = tuple(sub_agents)
        if isinstance(agent, TransferAgent):  # one of them is enough at one address
            self._agent = agent._agent  # noqa: SLF001 - its own kind
            self._subs = (*agent._subs, *self._subs)  # noqa: SLF001 - its own kind
            do_subs_return = do_subs_return or agent._do_subs_return  # noqa: SLF001 - its own kind
        self._do_subs_return = do_subs_return
        self._parent = parent
        self._does_return = does_return
        check_unique_names(agent.name, [agent, *self._subs, *([parent] if parent else [])])
        members = [
            TransferAgent(sub, (), parent=self, does_return=do_subs_return) for sub in self._subs
        ]
        self._targets = {
            member.name: member for member in (*members, *([parent] if parent else ()))
        }

    @property
    def name(self) -> str:
        """The name of the agent itself."""
        return self._agent.name

    @property
    def description(self) -> str:
        """The description of the agent itself."""
        return self._agent.description

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the agent, and whom it hands over to; see `Agent.run`."""
        return self._go(input, _Position(), is_resumed=False)

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Go on with the last agent; those that handed over do not run again."""
        with state_slot(_SLOT):
            was_interrupted, _, state = get_interrupt_state(TransferState)
            at = _Position()
            if was_interrupted and state is None:
                raise CheckpointDecodeError(f"agent {self.name!r} has lost who goes on")
            if state is not None:
                self._check(state.target)
                at = _Position(state.target, state.begun_at, Notes.from_json(state.notes))
        async with aclosing(self._go(input, at, is_resumed=True)) as events:
            async for event in events:
                yield event

    def components(self) -> Mapping[Key, Component]:
        """Return the agent's own parts, and the agents it can hand over to; see `Described`."""
        own = self._agent.components() if isinstance(self._agent, Described) else {}
        return {**own, **dict(agent_component(target) for target in self._targets.values())}

    def _check(self, target: str) -> None:
        if target and target not in self._targets:
            known = ", ".join(self._targets) or "nobody"
            was, now = f"a transfer to {target!r}", f"only {known} to transfer to"
            keep_waiting(AgentChangedError(str(current_address()), was, now))

    async def _go(
        self, given: AgentInput, at: _Position, *, is_resumed: bool
    ) -> AsyncGenerator[AgentEvent, None]:
        while True:
            begin = self._begin(given, at, is_resumed=is_resumed)
            try:
                async with aclosing(begin) as events:
                    async for event in events:
                        if not self._is_last(at):
                            at.notes.take(event)
                        yield event if at.target else _seen_to(event)
            except InterruptSignal as signal:
                _keep(at, signal)
            is_resumed = False
            following = self._following(at)
            if following is None:
                return
            if following.is_automatic:
                for event in _handing_over(following.target):
                    at.notes.take(event)
                    yield event
            at.target, at.begun_at = following.target, len(at.notes)

    def _begin(
        self, given: AgentInput, at: _Position, *, is_resumed: bool
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run who goes on: the agent itself in place, others below it."""
        if at.target:
            target = self._targets[at.target]
            return run_agent(target, told(target.name, given, at.notes.all[: at.begun_at]))
        begin = self._agent.resume if is_resumed else self._agent.run
        # An agent is written as an async generator: it has `aclose`.
        return cast("AsyncGenerator[AgentEvent, None]", begin(given))

    def _following(self, at: _Position) -> _Following | None:
        """Return the agent that goes on when this one has ended; None when none does."""
        action = at.notes.action(at.begun_at)
        if isinstance(action, Transfer) and not at.target:
            return _Following(self._known(action.agent_name))
        if action is None and self._does_return and self._parent and not self._is_last(at):
            return _Following(self._parent.name, is_automatic=True)
        return None

    def _is_last(self, at: _Position) -> bool:
        """Whether nobody comes after who goes on now, so that no notes are needed."""
        parent = self._parent.name if self._parent else ""
        return bool(at.target) and (not self._does_return or at.target == parent)

    def _known(self, name: str) -> str:
        if name not in self._targets:
            raise AgentConfigError(
                f"agent {self.name!r} transfers to {name!r}, whom it does not know; it knows "
                f"{', '.join(self._targets) or 'nobody'}: its tool must offer these"
            )
        depth = len(run_path(current_address()))
        if depth >= MAX_DEPTH:
            raise TransferLimitError(self.name, MAX_DEPTH)
        return name


@dataclass(frozen=True, slots=True)
class _Following:
    """The agent that goes on, and whether it does so without having been asked for."""

    target: str
    is_automatic: bool = False


def with_sub_agents(agent: Agent, sub_agents: Sequence[Agent]) -> TransferAgent:
    """Let an agent hand over to others, and them back to it.

    Args:
        agent: The agent. A `ChatModelAgent` without the tool `transfer_to_agent` gets it; another
            one hands over when a tool of it returns the action `Transfer`.
        sub_agents: Whom it can hand over to. May have sub-agents themselves.

    Raises:
        DuplicateNameError: Two of them have one name.
    """
    return TransferAgent(with_transfer_tool(agent, sub_agents), sub_agents)


def with_transfer_tool(agent: Agent, sub_agents: Sequence[Agent]) -> Agent:
    """Give an agent the tool that it hands over with, if it is a `ChatModelAgent` without one."""
    if not isinstance(agent, ChatModelAgent) or not sub_agents:
        return agent
    key = ("tool", TRANSFER_NAME)
    has_one = any(found[:2] == key for found in agent.components())
    return agent if has_one else agent.with_tools(transfer_tool_to(sub_agents))


def transfer_tool_to(agents: Sequence[Agent]) -> Tool:
    """Make the tool with which a model hands over to one of some agents.

    Args:
        agents: Those that it can name; it is told their descriptions.

    Raises:
        AgentConfigError: There is no agent.
    """
    return transfer_tool({agent.name: agent.description for agent in agents})


def _keep(at: _Position, signal: InterruptSignal) -> NoReturn:
    state = TransferState(target=at.target, begun_at=at.begun_at, notes=at.notes.to_json())
    with state_slot(_SLOT):
        pass_on(state, signal)


def _seen_to(event: AgentEvent) -> AgentEvent:
    """Return the event for agents further out: a transfer is done."""
    if isinstance(event, ActionEvent) and isinstance(event.action, Transfer):
        return replace(event, is_done=True)
    return event


def _handing_over(target: str) -> list[AgentEvent]:
    """The events of a transfer that no model has asked for."""
    call = ToolCall("transfer-back", TRANSFER_NAME, {"agent_name": target})
    result = f"Handed to {target!r}."
    said = MessageEvent(**header(event_key()), text="", tool_calls=(call,))
    done = ToolEvent(**header(event_key()), call=call, result=result, outcome=ToolOutcome.RAN)
    return [said, done, replace(make_action(Transfer(agent_name=target)), is_done=True)]
