"""Agents by channel. A turn keeps its agent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, cast, runtime_checkable

from cachetools import LRUCache

from agents import Address, Agent, AgentEvent, AgentInput, CheckpointStore, Runner, make_message
from agents.agent import function_agent
from agents.chat.explaining import Explains
from agents.core.errors import CheckpointError, ResumeError
from agents.core.tools import Tool, ToolSpec
from agents.gates.rulings import Judgement
from agents.runs.document import OpenRun
from agents.runs.topology import Component, Described, Key, agent_component
from agents.tools.several import DescribesSeveral, SeveralText, describer_in
from bot.config.agents import EVERYWHERE
from bot.ports.threads import BatchWords, CheckedCall
from bot.records.approval import Approval, Status
from bot.records.thread import Thread
from bot.redaction.call import mask_title
from bot.redaction.masks import Names
from bot.words import say

logger = logging.getLogger(__name__)

ChannelName = Callable[[str], Awaitable[str]]
"""Returns a channel's name by id, without `#`; empty for a direct message."""

_KEPT = 10_000
"""Number of turns whose agents are remembered."""
_DIRECT = 2
"""Length of the address of the root agent's own call: `agent:A;tool:pay:c1`."""


@runtime_checkable
class ChecksCalls(Protocol):
    """An agent that validates calls of its tools, including tools added at run time."""

    def validate_call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the parsed arguments; see `ChatModelAgent.validate_call`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """Public description of an agent.

    Attributes:
        name: Its name.
        description: Its author's description; may be empty.
        free: Names of tools without a gate in code.
        gated: Names of tools that need approval.
    """

    name: str
    description: str = ""
    free: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()


class Catalog:
    """Finds the agent of a thread or a call.

    A turn keeps the agent that began it, in any process, even if its channel is renamed. The next
    turn chooses again.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent],
        *,
        make_runner: Callable[[Agent], Runner],
        checkpoints: CheckpointStore,
        channel_name: ChannelName,
        descriptions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._agents = agents
        self._default = agents.get(EVERYWHERE) or nobody()
        self._by_name = {agent.name: agent for agent in [*agents.values(), self._default]}
        self._runners = {name: make_runner(agent) for name, agent in self._by_name.items()}
        self._checkpoints = checkpoints
        self._channel_name = channel_name
        self._descriptions = descriptions
        self._spoken_to = {key[1:]: agent for key, agent in agents.items() if key.startswith("@")}
        self._begun: LRUCache[str, str] = LRUCache(_KEPT)

    async def runner(self, thread: Thread) -> Runner:
        """Return the runner of a thread's newest turn.

        Raises:
            DirectoryError: The channel's name could not be looked up.
            CheckpointError: The stored turn is unreadable.
        """
        agent = await self._agent(thread.checkpoint_id, thread.channel_id, thread.agent)
        return self._runners[agent.name]

    async def name_of(self, thread: Thread) -> str:
        """Return the name of the agent of a thread's newest turn; see `runner` for errors."""
        agent = await self._agent(thread.checkpoint_id, thread.channel_id, thread.agent)
        return agent.name

    def spoken_to(self, words: str) -> tuple[str, str]:
        """Split a message into the addressed agent's name and the text.

        Returns:
            The name, empty without one; and the text without the name.
        """
        name, colon, rest = words.partition(":")
        key = name.strip().lower()
        return (key, rest.strip()) if colon and key in self._spoken_to else ("", words)

    async def agent_of(self, name: str, channel_id: str) -> str:
        """Return the name of the agent that people address by a name; empty if there is none.

        Args:
            name: How people address it; empty for the channel's agent.
            channel_id: The channel.

        Raises:
            DirectoryError: The channel's name could not be looked up.
        """
        agent = self._spoken_to.get(name) if name else await self._of_channel(channel_id)
        is_there = agent is not None and (agent in self._agents.values())
        return agent.name if agent is not None and is_there else ""

    async def facts(self, channel_id: str) -> AgentFacts:
        """Describe the agent of a channel, as far as it exposes its parts.

        Raises:
            DirectoryError: The channel's name could not be looked up.
        """
        agent = await self._of_channel(channel_id)
        parts = agent.components() if isinstance(agent, Described) else {}
        tools = [
            cast("Tool", part.inner).definition for key, part in parts.items() if _is_tool(key)
        ]
        return AgentFacts(
            name=agent.name,
            description=self._descriptions.get(agent.name)
            or str(getattr(agent, "description", "") or ""),
            free=tuple(tool.name for tool in tools if not tool.gates),
            gated=tuple(tool.name for tool in tools if tool.gates),
        )

    async def check_call(self, approval: Approval, arguments: dict[str, Any]) -> CheckedCall:
        """Validate edited arguments and bring them into the tool's canonical form.

        The result includes the tool's description of the edited call. Edits of things other than
        tool calls, and calls of agents that do not expose their parts, are only checked by the
        runtime when the run resumes.

        Raises:
            InvalidArgumentsError: The arguments are invalid.
            DirectoryError: The channel's name could not be looked up.
            CheckpointError: The stored turn is unreadable.
        """
        arguments = deepcopy(arguments)  # a tool may change them; records share their values
        if not approval.tool:
            return CheckedCall(arguments=arguments)
        agent = await self._agent(approval.checkpoint_id, approval.channel_id)
        address = Address.parse(approval.address)
        tool = tool_at(agent, address)
        if tool is not None:
            return _described(tool, tool.validate(arguments))
        if isinstance(agent, ChecksCalls) and len(address) == _DIRECT:
            return CheckedCall(arguments=agent.validate_call(approval.tool, arguments))
        return CheckedCall(arguments=arguments)

    async def explainer(self, approval: Approval) -> Explains | None:
        """Return the agent of a call if it answers questions about the call.

        Raises:
            DirectoryError: The channel's name could not be looked up.
            CheckpointError: The stored turn is unreadable.
        """
        agent = await self._agent(approval.checkpoint_id, approval.channel_id)
        return agent if isinstance(agent, Explains) else None

    async def batch_words(self, items: Sequence[Approval]) -> BatchWords:
        """Return a tool's masked text for several of its calls; see `BatchWords`.

        The text is optional: without it a card has a default.

        Args:
            items: All approvals of a card, in order.
        """
        waiting = [approval for approval in items if approval.status is Status.PENDING]
        try:
            agent = await self._agent(items[0].checkpoint_id, items[0].channel_id)
            tool = describer_in(tool_at(agent, Address.parse(items[0].address)))
            if tool is None:
                return BatchWords()
            spec, sizes = tool.definition, _several(tool, waiting).sizes
            title = _title(tool, spec, items)
            rest = title if len(waiting) == len(items) else _title(tool, spec, waiting)
        except Exception as error:  # noqa: BLE001 - the card can do without
            logger.warning(
                "could not describe several calls together, leaving it out: %s",
                type(error).__name__,
                extra={"action": "describe_failed"},
            )
            return BatchWords()
        places = sorted(range(len(sizes)), key=lambda place: -sizes[place])
        largest = tuple(waiting[place].approval_id for place in places)
        return BatchWords(title=title, rest=rest, largest=largest)

    async def judge(self, approval: Approval, arguments: dict[str, Any]) -> Judgement | None:
        """Return what the policy requires if the pending call has these arguments.

        Returns:
            None if only the runtime can tell when it resumes: it is no tool call, or its agent
            does not expose its parts.

        Raises:
            InvalidArgumentsError: The arguments are invalid.
            DirectoryError: The channel's name could not be looked up.
        """
        if not approval.tool:
            return None
        try:
            agent = await self._agent(approval.checkpoint_id, approval.channel_id)
            runner = self._runners[agent.name]
            return await runner.judge(
                approval.checkpoint_id, approval.interrupt_id, deepcopy(arguments)
            )
        except (CheckpointError, ResumeError):
            return None  # running or unreadable: the gate judges the call when it resumes

    async def _agent(self, checkpoint_id: str, channel_id: str, spoken_to: str = "") -> Agent:
        if len(self._by_name) == 1:
            return self._default
        name = self._begun.get(checkpoint_id) or await self._began(checkpoint_id)
        agent = self._by_name.get(name) or self._spoken_to.get(spoken_to)
        agent = agent or await self._of_channel(channel_id)
        self._begun[checkpoint_id] = agent.name
        return agent

    async def _began(self, checkpoint_id: str) -> str:
        """Return the name of the agent that began a turn; empty if not begun."""
        stored = await self._checkpoints.load(checkpoint_id)
        return OpenRun.of(checkpoint_id, stored).agent_name if stored is not None else ""

    async def _of_channel(self, channel_id: str) -> Agent:
        by_id = self._agents.get(channel_id)
        if by_id is not None:
            return by_id
        if not any(key.startswith("#") for key in self._agents):
            return self._default
        return self._agents.get(f"#{await self._channel_name(channel_id)}", self._default)


def tool_at(agent: Agent, address: Address) -> Tool | None:
    """Find the tool at an address, without its gates; None if agents hide it.

    Args:
        agent: The root agent.
        address: Address of a call: `agent:Boss;agent:Worker;tool:pay:c1`.
    """
    key, root = agent_component(agent)
    parts: Mapping[Key, Component] = {key: root}
    component: Component | None = None
    for segment in address.segments:
        component = parts.get((segment.type, segment.id))
        if component is None:
            return None
        parts = component.inner.components() if isinstance(component.inner, Described) else {}
    is_tool = component is not None and address.segments[-1].type == "tool"
    return cast("Tool", component.inner) if component is not None and is_tool else None


def _is_tool(key: Key) -> bool:
    return key[0] == "tool"


def _several(tool: DescribesSeveral, items: Sequence[Approval]) -> SeveralText:
    return tool.describe_several([deepcopy(approval.arguments) for approval in items])


def _title(tool: DescribesSeveral, spec: ToolSpec, items: Sequence[Approval]) -> str:
    """Return a title for several calls, with the secrets of each masked."""
    title = _several(tool, items).title
    masks = Names(secret=spec.secret, shown=spec.shown)
    for approval in items:
        title = mask_title(title, approval.arguments, masks)
    return title


def _described(tool: Tool, arguments: dict[str, Any]) -> CheckedCall:
    """Return the tool's description of a call; a default if the author's code fails."""
    try:
        description = tool.describe(arguments)
    except Exception as error:  # noqa: BLE001 - code of a tool's author; the card says less then
        logger.warning(
            "an edited call of %r has no title: %s",
            tool.definition.name,
            type(error).__name__,
            extra={"action": "describe_failed"},
        )
        return CheckedCall(arguments=arguments)
    spec = tool.definition
    masks = Names(secret=spec.secret, shown=spec.shown)
    return CheckedCall(
        arguments=arguments,
        title=mask_title(description.title, arguments, masks),
        preview=mask_title(description.preview, arguments, masks),
    )


def nobody() -> Agent:
    """Return an agent that says that no agent works here."""

    async def speak(_: AgentInput) -> AsyncGenerator[AgentEvent, None]:
        yield make_message(say("error.no_agent"))

    return function_agent("nobody", speak, description=say("error.no_agent"))
