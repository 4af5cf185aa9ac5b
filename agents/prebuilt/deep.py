"""Deep agents: agents with a to-do list, files, and sub-agents for partial tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel
from pydantic_ai.models import Model

from agents.agent import Agent, AgentInput, check_unique_names
from agents.chat.agent import ChatModelAgent
from agents.core.codec import Json
from agents.core.component.context import session_values
from agents.core.messages import user_message
from agents.core.tools import CallText, Tool, ToolSpec
from agents.gates.decorator import tool
from agents.middlewares.base import Middleware
from agents.prebuilt.files import Shell, execute_tool, file_tools
from agents.runs.topology import Component, Key, agent_component
from agents.tools.schema import Parameters, docstring_parts, parameters
from agents.workflows.agenttool import call_agent

TODOS = "todos"
"""Key of the session value with the to-do list: dicts of `content` and `status`."""

TASK_TOOL = "task"
GENERAL_PURPOSE = "general-purpose"

INSTRUCTION = """\
You work on tasks that take many steps. Keep a list of what is to do with `write_todos`: write it
before you begin, and mark each item when you begin with it and when it is done. With `task` you
give a part of the work to another agent, which begins with nothing but what you tell it, and whose
last words are what you get. Use that for parts that need many steps of their own; tasks that do
not depend on each other can be given out side by side. Small things you do yourself."""

FILES_INSTRUCTION = """\
Keep what is long, and what others need, in files: `ls`, `read_file`, `write_file`, `edit_file`. You
and the agents that you give tasks to share them; tell those agents the paths."""

_GENERAL = "Does whatever the main agent can do, apart from it. For parts that take many steps."
_WORKER = "You do one task for another agent. Your last words are all that it gets: be complete."


class Todo(BaseModel):
    """One item of the to-do list.

    Attributes:
        content: What to do.
        status: Progress.
    """

    content: str
    status: Literal["pending", "in_progress", "completed"]


def deep_agent(  # noqa: PLR0913 - the documented names, all given by keyword
    *,
    name: str,
    model: Model,
    tools: Sequence[Tool] = (),
    sub_agents: Sequence[Agent] = (),
    instruction: str = "",
    description: str = "",
    max_iterations: int = 100,
    middlewares: Sequence[Middleware] = (),
    with_general_purpose: bool = True,
    with_files: bool = True,
    shell: Shell | None = None,
) -> Agent:
    """Create an agent for tasks of many steps.

    Its tool `write_todos` keeps a list in the session value `todos`, and its tool `task` gives a
    task to a sub-agent, which runs below the call: `agent:Deep;tool:task:c1;agent:Research`. It
    also has tools for files, which are stored in the session of the run (`agents.prebuilt.files`);
    other agents with these tools share the files.

    Args:
        name: Name of the agent.
        model: Its model, also used by the general-purpose agent.
        tools: Tools of the agent.
        sub_agents: Agents that can receive tasks.
        instruction: Added to the built-in instruction.
        description: What the agent is good at, for models that may call it.
        max_iterations: Maximum number of model calls in a run.
        middlewares: Hooks around the model and tools of the agent and of the general-purpose agent.
        with_general_purpose: Whether to add a sub-agent `general-purpose`, with the same model and
            tools.
        with_files: Whether to add the tools for files.
        shell: Runs the commands of the tool `execute`, each after a person's approval. None leaves
            the tool out.

    Raises:
        AgentConfigError: Two agents or two tools share a name.
    """
    workers, own = list(sub_agents), _own_tools(tools, with_files=with_files, shell=shell)
    if with_general_purpose:
        workers.append(
            ChatModelAgent(
                name=GENERAL_PURPOSE,
                model=model,
                instruction="\n\n".join([_WORKER, *([FILES_INSTRUCTION] if with_files else [])]),
                tools=own,
                description=_GENERAL,
                max_iterations=max_iterations,
                middlewares=middlewares,
            )
        )
    check_unique_names(name, workers)
    given = [task_tool(workers)] if workers else []
    instructions = [INSTRUCTION, FILES_INSTRUCTION if with_files else "", instruction]
    return ChatModelAgent(
        name=name,
        model=model,
        instruction="\n\n".join(part for part in instructions if part),
        tools=[*own, write_todos_tool(), *given],
        description=description,
        max_iterations=max_iterations,
        middlewares=middlewares,
    )


def _own_tools(tools: Sequence[Tool], *, with_files: bool, shell: Shell | None) -> list[Tool]:
    files = file_tools() if with_files else []
    return [*tools, *files, *([execute_tool(shell)] if shell is not None else [])]


def write_todos_tool() -> Tool:
    """Create the tool that replaces the to-do list."""

    @tool(title="Write the list of what is to do", idempotent=True)
    def write_todos(todos: list[Todo]) -> str:
        """Replaces the list of what is to do. Give the whole list each time.

        Args:
            todos: In the order in which they are done.
        """
        session_values()[TODOS] = [todo.model_dump() for todo in todos]
        lines = [f"- [{todo.status}] {todo.content}" for todo in todos]
        return "\n".join(["The list is now:", *(lines or ["(empty)"])])

    return write_todos


def task_tool(agents: Sequence[Agent]) -> Tool:
    """Create the tool that gives a task to a sub-agent.

    Args:
        agents: Agents that can receive tasks; at least one.

    Raises:
        DuplicateNameError: Two agents share a name.
    """
    check_unique_names(TASK_TOOL, agents)
    by_name = {agent.name: agent for agent in agents}

    def task(subagent_type: str, description: str) -> None:
        """Gives a task to another agent. The result is what that agent says last.

        Args:
            subagent_type: Which agent.
            description: What it shall do, with all that it needs to know.
        """

    # mypy cannot check a Literal whose values are known only at run time; pydantic does.
    task.__annotations__["subagent_type"] = cast("Any", Literal)[tuple(by_name)]
    arguments = parameters(task)
    listing = "\n".join(
        f"- {agent.name}: {agent.description or 'no description'}" for agent in agents
    )
    spec = ToolSpec(
        name=TASK_TOOL,
        description=f"{docstring_parts(task)[0]}\nAgents:\n{listing}",
        schema=arguments.schema,
        # The sub-agent's journal stores each of its calls, so a rerun of this tool resumes it.
        idempotent=True,
    )
    return _TaskTool(spec, arguments, by_name)


@dataclass(frozen=True, slots=True)
class _TaskTool:
    definition: ToolSpec
    parameters: Parameters
    agents: Mapping[str, Agent]

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        return self.parameters.canonical(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        title = f"Give a task to {arguments['subagent_type']}"
        return CallText(title=title, preview=str(arguments["description"]))

    async def call(self, arguments: dict[str, Json]) -> str:
        agent = self.agents[str(arguments["subagent_type"])]
        request = user_message(str(arguments["description"]))
        return await call_agent(agent, AgentInput(messages=(request,)))

    def components(self) -> Mapping[Key, Component]:
        return dict(agent_component(agent) for agent in self.agents.values())
