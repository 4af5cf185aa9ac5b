"""A supervisor: an agent that gives tasks to sub-agents, which report back to it."""

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
        """Run the supervisor and the agents that it transfers to; see `Agent.run`."""
        return run_agent(self._inner, input)

    def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Resume the interrupted agent; see `Agent.resume`."""
        return run_agent(self._inner, input)

    def components(self) -> Mapping[Key, Component]:
        """The supervisor; see `Described`."""
        return dict([agent_component(self._inner)])


def supervisor(
    *, supervisor: Agent, sub_agents: Sequence[Agent], name: str = "", description: str = ""
) -> Agent:
    """Create a supervisor that gives tasks to sub-agents.

    The supervisor transfers with the tool `transfer_to_agent`; see `with_sub_agents`. When a
    sub-agent has ended, also after an interrupt, it transfers back, and the supervisor reads what
    it said. The address shows the way of the task:
    `agent:sup;agent:sup;agent:bank;agent:sup;agent:mail`. A sub-agent may be a workflow, or a
    supervisor with sub-agents of its own. A sub-agent that exits ends the supervisor, too.

    Args:
        supervisor: The agent that decides.
        sub_agents: Agents that it can transfer to.
        name: Name of the combined agent; by default the supervisor's.
        description: What the combined agent is good at; by default the supervisor's.

    Raises:
        DuplicateNameError: Two of the agents share a name.
    """
    head = with_transfer_tool(supervisor, sub_agents)
    inner = TransferAgent(head, sub_agents, do_subs_return=True)
    return SupervisedAgents(name or head.name, description or head.description, inner)
