"""Transfer: an agent ends, and another agent continues in its place."""

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
)
from agents.chat.agent import ChatModelAgent
from agents.chat.handoff import Notes, input_after
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
from agents.core.tools import Tool
from agents.runs.topology import Component, Described, Key, agent_component
from agents.tools.actions import TRANSFER_NAME, transfer_tool

MAX_DEPTH = 100
"""Maximum depth of nested agents; exceeded when two agents transfer in a circle."""

_SLOT = "transfer"


@register("countersign.transfer-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class TransferState:
    """The current agent, and the notes so far. Stored: version 1, must stay readable.

    Attributes:
        target: Name of the agent after the last transfer; empty before the first.
        begun_at: Number of notes when the current agent began.
        notes: Notes of all agents.
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
    """An agent and the agents that it can transfer to. Made by `with_sub_agents`.

    The agent itself runs in place, with the same address. When it requests a transfer (one of its
    tools returns the action `Transfer`), the other agent runs below it, with the notes so far:
    `agent:Boss;agent:Worker`. A sub-agent can transfer back to its parent, and the parent to
    another: `agent:A;agent:B;agent:A;agent:C`. An agent that has transferred has ended; on resume
    only the last agent continues.

    Args:
        agent: The agent.
        sub_agents: Agents that it can transfer to.
        parent: The parent agent, to which it can also transfer.
        does_return: Whether it transfers to the parent when it has ended.
        do_subs_return: Whether its sub-agents do so.

    Raises:
        DuplicateNameError: Two of the agents share a name.
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
        if isinstance(agent, TransferAgent):  # unwrap: one TransferAgent per address is enough
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
        """Run the agent and the agents that it transfers to; see `Agent.run`."""
        return self._run_agents(input, _Position(), is_resumed=False)

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Resume the last agent; agents that have transferred do not run again."""
        with state_slot(_SLOT):
            was_interrupted, _, state = get_interrupt_state(TransferState)
            at = _Position()
            if was_interrupted and state is None:
                raise CheckpointDecodeError(f"agent {self.name!r} has lost who goes on")
            if state is not None:
                self._check(state.target)
                at = _Position(state.target, state.begun_at, Notes.from_json(state.notes))
        async with aclosing(self._run_agents(input, at, is_resumed=True)) as events:
            async for event in events:
                yield event

    def components(self) -> Mapping[Key, Component]:
        """The agent's own components and its sub-agents; see `Described`."""
        own = self._agent.components() if isinstance(self._agent, Described) else {}
        return {**own, **dict(agent_component(target) for target in self._targets.values())}

    def _check(self, target: str) -> None:
        if target and target not in self._targets:
            known = ", ".join(self._targets) or "nobody"
            was, now = f"a transfer to {target!r}", f"only {known} to transfer to"
            keep_waiting(AgentChangedError(str(current_address()), was, now))

    async def _run_agents(
        self, given: AgentInput, at: _Position, *, is_resumed: bool
    ) -> AsyncGenerator[AgentEvent, None]:
        while True:
            begin = self._begin(given, at, is_resumed=is_resumed)
            try:
                async with aclosing(begin) as events:
                    async for event in events:
                        if not self._is_last(at):
                            at.notes.add_event(event)
                        yield event if at.target else _seen_to(event)
            except InterruptSignal as signal:
                _keep(at, signal)
            is_resumed = False
            following = self._following(at)
            if following is None:
                return
            if following.is_automatic:
                for event in _handing_over(following.target):
                    at.notes.add_event(event)
                    yield event
            at.target, at.begun_at = following.target, len(at.notes)

    def _begin(
        self, given: AgentInput, at: _Position, *, is_resumed: bool
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run the current agent: the agent itself in place, others below it."""
        if at.target:
            target = self._targets[at.target]
            return run_agent(target, input_after(target.name, given, at.notes.all[: at.begun_at]))
        begin = self._agent.resume if is_resumed else self._agent.run
        # Agents are async generators, which have `aclose`.
        return cast("AsyncGenerator[AgentEvent, None]", begin(given))

    def _following(self, at: _Position) -> _Following | None:
        """Return the agent that follows the current one, or None."""
        action = at.notes.action(at.begun_at)
        if isinstance(action, Transfer) and not at.target:
            return _Following(self._known(action.agent_name))
        if action is None and self._does_return and self._parent and not self._is_last(at):
            return _Following(self._parent.name, is_automatic=True)
        return None

    def _is_last(self, at: _Position) -> bool:
        """Whether no agent can follow the current one, so that no notes are needed."""
        parent = self._parent.name if self._parent else ""
        return bool(at.target) and (not self._does_return or at.target == parent)

    def _known(self, name: str) -> str:
        if name not in self._targets:
            raise AgentConfigError(
                f"agent {self.name!r} transfers to {name!r}, whom it does not know; it knows "
                f"{', '.join(self._targets) or 'nobody'}: its tool must offer these"
            )
        depth = len(current_address().agents)
        if depth >= MAX_DEPTH:
            raise TransferLimitError(self.name, MAX_DEPTH)
        return name


@dataclass(frozen=True, slots=True)
class _Following:
    """The next agent, and whether it follows by itself, without a transfer."""

    target: str
    is_automatic: bool = False


def with_sub_agents(agent: Agent, sub_agents: Sequence[Agent]) -> TransferAgent:
    """Let an agent transfer to sub-agents, and the sub-agents back to it.

    Args:
        agent: The agent. A `ChatModelAgent` without the tool `transfer_to_agent` gets the tool;
            another agent transfers when one of its tools returns the action `Transfer`.
        sub_agents: Agents that it can transfer to. They may have sub-agents.

    Raises:
        DuplicateNameError: Two of the agents share a name.
    """
    return TransferAgent(with_transfer_tool(agent, sub_agents), sub_agents)


def with_transfer_tool(agent: Agent, sub_agents: Sequence[Agent]) -> Agent:
    """Add the transfer tool to a `ChatModelAgent` that has none."""
    if not isinstance(agent, ChatModelAgent) or not sub_agents:
        return agent
    key = ("tool", TRANSFER_NAME)
    has_one = any(part_key[:2] == key for part_key in agent.components())
    return agent if has_one else agent.with_tools(transfer_tool_to(sub_agents))


def transfer_tool_to(agents: Sequence[Agent]) -> Tool:
    """Create the tool with which a model transfers to another agent.

    Args:
        agents: Agents that the model can name. It reads their descriptions.

    Raises:
        AgentConfigError: There is no agent.
    """
    return transfer_tool({agent.name: agent.description for agent in agents})


def _keep(at: _Position, signal: InterruptSignal) -> NoReturn:
    state = TransferState(target=at.target, begun_at=at.begun_at, notes=at.notes.to_json())
    with state_slot(_SLOT):
        pass_on(state, signal)


def _seen_to(event: AgentEvent) -> AgentEvent:
    """Return the event for enclosing agents, with the transfer marked done."""
    if isinstance(event, ActionEvent) and isinstance(event.action, Transfer):
        return replace(event, is_done=True)
    return event


def _handing_over(target: str) -> list[AgentEvent]:
    """Return the events of a transfer that no model requested."""
    call = ToolCall("transfer-back", TRANSFER_NAME, {"agent_name": target})
    result = f"Handed to {target!r}."
    message = MessageEvent(**header(event_key()), text="", tool_calls=(call,))
    done = ToolEvent(**header(event_key()), call=call, result=result, outcome=ToolOutcome.RAN)
    return [message, done, replace(make_action(Transfer(agent_name=target)), is_done=True)]
