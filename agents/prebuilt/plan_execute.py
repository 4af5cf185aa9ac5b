"""Plan, execute, replan: run a plan step by step and revise it after each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.core.calls import BreakLoop, ToolReturn
from agents.core.component.context import session_values
from agents.core.tools import Tool, ToolSpec
from agents.prebuilt.planning import (
    PLAN,
    PLAN_TOOL,
    RESPOND_TOOL,
    Executor,
    Plan,
    Planner,
    Replanner,
)
from agents.tools.actions import ActionTool
from agents.tools.schema import docstring_parts, parameters
from agents.workflows.sequential import LoopAgent, SequentialAgent

PLANNER = """\
You plan how a task is done, and do nothing of it yourself. Call the tool `plan` with the steps,
in order. Each step is one thing that somebody who knows only the task and the results of the steps
before it can do; the last one gives what was asked for. Make no more steps than needed."""

EXECUTOR = """\
You do one step of a plan, carefully, with the tools that you have. Do that step only. Then say
what you did and what came of it, with all that later steps need to know."""

REPLANNER = """\
You look after a plan whose steps are done one by one. You are told the task, the plan, and what
has been done so far. When the task is done, or cannot be done, call the tool `respond` with the
answer for the person who gave the task. Otherwise call the tool `plan` with the steps that are
left to do, changed where the results ask for it; leave out what has been done."""


def plan_execute(
    *,
    planner: Agent,
    executor: Agent,
    replanner: Agent,
    max_iterations: int = 10,
    name: str = "plan_execute_replan",
    description: str = "",
) -> Agent:
    """Create an agent that plans a task, runs its steps, and replans after each step.

    The agent is a sequence of the planner and a loop, `execute_replan`, of the executor and the
    replanner. They share the session values `UserInput` (the task, text), `Plan` (`Plan`),
    `ExecutedSteps` (a list of `ExecutedStep`) and `ExecutedStep` (the last result, text), so two
    such agents must not run in parallel in one run.

    Args:
        planner: Makes the plan: `planner_agent`, or an agent that sets `Plan`.
        executor: Does one step: `executor_agent`, or any agent. It receives the task, the plan and
            the finished steps; its final text is the result.
        replanner: Makes a new plan, or ends the loop: `replanner_agent`, or an agent that sets
            `Plan` or breaks the loop. If it does neither, its final text is the answer.
        max_iterations: Maximum number of steps.
        name: Name of the combined agent.
        description: What the agent is good at, for models that may call it.

    Raises:
        DuplicateNameError: Two of the agents share a name.
    """
    loop = LoopAgent(
        "execute_replan",
        [Executor(executor), Replanner(replanner)],
        max_iterations=max_iterations,
    )
    return SequentialAgent(name, [Planner(planner), loop], description=description)


def planner_agent(
    *, model: Model, name: str = "planner", instruction: str = PLANNER, tool: Tool | None = None
) -> Agent:
    """Create an agent that plans.

    Args:
        model: Its model.
        name: Its name.
        instruction: System prompt.
        tool: The tool that receives the plan, by default `plan_tool()`. In a gate, people approve
            the plan first; after a rejection the model makes another plan.
    """
    return ChatModelAgent(
        name=name, model=model, instruction=instruction, tools=[tool or plan_tool()]
    )


def executor_agent(
    *,
    model: Model,
    tools: Sequence[Tool],
    name: str = "executor",
    instruction: str = EXECUTOR,
    max_iterations: int = 20,
) -> Agent:
    """Create an agent that does one step of a plan.

    Args:
        model: Its model.
        tools: Its tools.
        name: Its name.
        instruction: System prompt.
        max_iterations: Maximum number of model calls per step.
    """
    return ChatModelAgent(
        name=name,
        model=model,
        instruction=instruction,
        tools=tools,
        max_iterations=max_iterations,
    )


def replanner_agent(
    *, model: Model, name: str = "replanner", instruction: str = REPLANNER, tool: Tool | None = None
) -> Agent:
    """Create an agent that revises the plan, or ends the work with an answer.

    Args:
        model: Its model.
        name: Its name.
        instruction: System prompt.
        tool: See `planner_agent`.
    """
    return ChatModelAgent(
        name=name,
        model=model,
        instruction=instruction,
        tools=[tool or plan_tool(), respond_tool()],
    )


def plan_tool() -> Tool:
    """Create the tool that receives a plan. It ends the agent that calls it."""

    def decide(steps: Annotated[list[str], Field(min_length=1)]) -> ToolReturn:
        """Takes the plan: the steps that are left to do.

        Args:
            steps: In order; what each one has to do, in full.
        """
        plan = Plan(steps)
        session_values()[PLAN] = plan
        return ToolReturn(str(plan), action=BreakLoop())

    return _made(PLAN_TOOL, "Take the plan", decide)


def respond_tool() -> Tool:
    """Create the tool that receives the final answer and ends the agent and the loop."""

    def decide(response: str) -> ToolReturn:
        """Takes the answer for the person who gave the task, and ends the work.

        Args:
            response: The answer, complete.
        """
        return ToolReturn(response, action=BreakLoop())

    return _made(RESPOND_TOOL, "Answer", decide)


def _made(name: str, title: str, decide: Callable[..., ToolReturn]) -> Tool:
    signature = parameters(decide)
    spec = ToolSpec(
        name=name,
        description=docstring_parts(decide)[0],
        schema=signature.schema,
        idempotent=True,
    )
    return ActionTool(spec, signature, title, decide)
