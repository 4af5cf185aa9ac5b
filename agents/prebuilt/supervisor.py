"""A supervisor: an agent that gives tasks to others, and is called again after each of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

from agents.agent import Agent, AgentEvent, AgentInput, run_agent
from agents.runs.topology import Component, Key, agent_component
from agents.workflows.transfer import TransferAgent, with_transfer_tool


class SupervisedAgents:
    """A supervisor and its agents; see `supervisor`."""

    def __init__(self, name: str, description: str, inner: Agent) -> None:
        self.name = name
        self.description = description
        self._inner = inner

    def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Run the supervisor, and whom it hands over to; see `Agent.run`."""
        return run_agent(self._inner, input)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Go on with whoever waits; see `Agent.resume`."""
        return run_agent(self._inner, input)

    def components(self) -> Mapping[Key, Component]:
        """The supervisor; see `Described`."""
        return dict([agent_component(self._inner)])


def supervisor(
    *, supervisor: Agent, sub_agents: Sequence[Agent], name: str = "", description: str = ""
) -> Agent:
    """Let an agent give tasks to others.

    It hands over with the tool `transfer_to_agent`; see `with_sub_agents` for how it gets that.
    When a sub-agent has ended, also after an interrupt, it hands over back by itself, and the
    supervisor goes on, told what was said. So an address shows the way that the task has come:
    `agent:sup;agent:sup;agent:bank;agent:sup;agent:mail`. A sub-agent may be a workflow, or a
    supervisor with agents of its own. One that exits ends it all.

    Args:
        supervisor: The agent that decides.
        sub_agents: Whom it can hand over to.
        name: Name of the whole; that of the supervisor when empty.
        description: What the whole is good at; that of the supervisor when empty.

    Raises:
        DuplicateNameError: Two of the agents have one name.
    """
    head = with_transfer_tool(supervisor, sub_agents)
    inner = TransferAgent(head, sub_agents, do_subs_return=True)
    return SupervisedAgents(name or head.name, description or head.description, inner)
