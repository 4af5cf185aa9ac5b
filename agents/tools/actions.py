"""Tools with which a model ends its work, or hands it to another agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from agents.core.calls import BreakLoop, Exit, ToolReturn, Transfer
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.tools.base import CallText, Tool, ToolSpec
from agents.tools.schema import Parameters, docstring_parts, parameters

EXIT_NAME = "exit"
BREAK_LOOP_NAME = "break_loop"
TRANSFER_NAME = "transfer_to_agent"


@dataclass(frozen=True, slots=True)
class ActionTool:
    """A tool that does nothing but say what shall happen next.

    The agent does it when all calls of the answer are finished, and does not ask its model again.

    Attributes:
        definition: What the tool is.
        parameters: How its arguments are read.
        title: What people read, when they are asked about it.
        decide: Makes the result, with its action.
    """

    definition: ToolSpec
    parameters: Parameters
    title: str
    decide: Callable[..., ToolReturn]

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        values = " ".join(str(value) for value in arguments.values())
        return CallText(title=" ".join(f"{self.title} {values}".split())[:150])

    async def call(self, arguments: dict[str, Json]) -> ToolReturn:
        """Say what shall happen next; see `Tool.call`."""
        return self.decide(**self.parameters.values(arguments))


def exit_tool(name: str = EXIT_NAME) -> Tool:
    """Make a tool that ends the agent and all workflows around it.

    Args:
        name: What the model calls it.
    """

    def decide(final_result: str) -> ToolReturn:
        """Ends the work. Call it alone, when everything is done.

        Args:
            final_result: The final answer, as people shall read it.
        """
        return ToolReturn(final_result, action=Exit())

    return _made(name, "Finish:", decide)


def break_loop_tool(name: str = BREAK_LOOP_NAME) -> Tool:
    """Make a tool that ends the innermost loop around the agent.

    Args:
        name: What the model calls it.
    """

    def decide() -> ToolReturn:
        """Ends the loop that this work is repeated in. Call it when no more rounds are needed."""
        return ToolReturn("The loop ends.", action=BreakLoop())

    return _made(name, "End the loop", decide)


def transfer_tool(agents: Mapping[str, str], name: str = TRANSFER_NAME) -> Tool:
    """Make a tool that hands the work to another agent.

    Args:
        agents: What each agent is good at, by its name. Others cannot be named.
        name: What the model calls it.

    Raises:
        AgentConfigError: There is no agent to name.
    """
    if not agents:
        raise AgentConfigError(f"the tool {name!r} needs an agent that it can hand the work to")

    def decide(agent_name: str) -> ToolReturn:
        """Hands the work to another agent, which goes on in your place. Call it alone.

        Args:
            agent_name: Which.
        """
        return ToolReturn(f"Handed to {agent_name!r}.", action=Transfer(agent_name=agent_name))

    # mypy cannot know names that are there only at run time; pydantic checks them.
    decide.__annotations__["agent_name"] = cast("Any", Literal)[tuple(agents)]
    known = "\n".join(f"- {agent}: {told or 'no description'}" for agent, told in agents.items())
    return _made(name, "Hand over to", decide, f"\nAgents:\n{known}")


def _made(name: str, title: str, decide: Callable[..., ToolReturn], more: str = "") -> Tool:
    found = parameters(decide)
    spec = ToolSpec(
        name=name,
        description=docstring_parts(decide)[0] + more,
        schema=found.schema,
        idempotent=True,
    )
    return ActionTool(spec, found, title, decide)
