"""Tools by which a model ends its work or transfers it to another agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from agents.core.calls import BreakLoop, Exit, ToolReturn, Transfer
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.core.tools import CallText, Tool, ToolSpec
from agents.tools.schema import Parameters, docstring_parts, parameters

EXIT_NAME = "exit"
BREAK_LOOP_NAME = "break_loop"
TRANSFER_NAME = "transfer_to_agent"


@dataclass(frozen=True, slots=True)
class ActionTool:
    """A tool that only returns an action.

    The agent takes the action when all calls of the model's answer have finished, and does not call
    the model again.

    Attributes:
        title: Title of the call for people.
        decide: Returns the result with its action.
    """

    definition: ToolSpec
    parameters: Parameters
    title: str
    decide: Callable[..., ToolReturn]

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments; see `Tool.validate`."""
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
        values = " ".join(str(value) for value in arguments.values())
        return CallText(title=" ".join(f"{self.title} {values}".split())[:150])

    async def call(self, arguments: dict[str, Json]) -> ToolReturn:
        """Return the action; see `Tool.call`."""
        return self.decide(**self.parameters.values(arguments))


def exit_tool(name: str = EXIT_NAME) -> Tool:
    """Make a tool that ends the agent and all workflows around it.

    Args:
        name: Name of the tool for the model.
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
        name: Name of the tool for the model.
    """

    def decide() -> ToolReturn:
        """Ends the loop that this work is repeated in. Call it when no more rounds are needed."""
        return ToolReturn("The loop ends.", action=BreakLoop())

    return _made(name, "End the loop", decide)


def transfer_tool(agents: Mapping[str, str], name: str = TRANSFER_NAME) -> Tool:
    """Make a tool that transfers the work to another agent.

    Args:
        agents: Descriptions of the possible agents, by name.
        name: Name of the tool for the model.

    Raises:
        AgentConfigError: `agents` is empty.
    """
    if not agents:
        raise AgentConfigError(f"the tool {name!r} needs an agent that it can hand the work to")

    def decide(agent_name: str) -> ToolReturn:
        """Hands the work to another agent, which goes on in your place. Call it alone.

        Args:
            agent_name: Which.
        """
        return ToolReturn(f"Handed to {agent_name!r}.", action=Transfer(agent_name=agent_name))

    # The names are only known at run time: pydantic checks them, mypy cannot.
    decide.__annotations__["agent_name"] = cast("Any", Literal)[tuple(agents)]
    known = "\n".join(
        f"- {agent}: {description or 'no description'}" for agent, description in agents.items()
    )
    return _made(name, "Hand over to", decide, f"\nAgents:\n{known}")


def _made(name: str, title: str, decide: Callable[..., ToolReturn], more: str = "") -> Tool:
    signature = parameters(decide)
    spec = ToolSpec(
        name=name,
        description=docstring_parts(decide)[0] + more,
        schema=signature.schema,
        idempotent=True,
    )
    return ActionTool(spec, signature, title, decide)
