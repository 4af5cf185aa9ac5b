"""The rules that both plan-execute patterns read, and the way they write plans anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.prebuilt.plan_execute import PLANNER, plan_tool
from agents.prebuilt.planning import PLAN_TOOL, RESPOND_TOOL
from agents.tools.actions import exit_tool
from bot.demo.commands import PlannedToolCall
from bot.demo.patterns.rules import CurrentRequest, Reply, Rule, call, voice
from bot.demo.replies import report

_STEP = re.compile(r"Do now the first step of the plan: (.*)\Z", re.DOTALL)
_PLAN = re.compile(r"# Plan\n(.*?)\n\n# Done so far\n", re.DOTALL)
_DONE = re.compile(r"Step: ([^\n]*)\nResult: (.*?)(?=\n\nStep: |\n\nThe first step|\Z)", re.DOTALL)
_OR_EXIT = "\nWhen there is nothing to plan, call `exit` and say what you can plan."


@dataclass(frozen=True, slots=True)
class Work:
    """A plan, as a replanner is told of it.

    Attributes:
        left: The steps that are left to do.
        done: The steps that were done, and what came of each.
    """

    left: tuple[str, ...]
    done: tuple[tuple[str, str], ...]

    @property
    def was_refused(self) -> bool:
        """Whether the last step was one that did not happen."""
        return "did not run" in self.done[-1][1] or "was not possible" in self.done[-1][1]


def planner(model: Model, rule: Rule) -> Agent:
    """Make a planner that may also say that there is nothing to plan."""
    return ChatModelAgent(
        name="planner",
        model=voice(model, rule),
        instruction=PLANNER + _OR_EXIT,
        tools=[plan_tool(), exit_tool()],
    )


def step_of(current: CurrentRequest) -> str:
    """The step that an executor shall do."""
    match = _STEP.search(current.request)
    return match[1] if match else ""


def executing(call_of: Callable[[str], PlannedToolCall | None]) -> Rule:
    """The rule of an executor: do one step with the tool that it needs.

    Args:
        call_of: Makes the call of a step; None where there is no tool for it.
    """

    def execute(current: CurrentRequest) -> Reply:
        if current.done:
            return Reply(report(current.done))
        step = step_of(current)
        made = call_of(step)
        if made is None:
            return Reply(f"I cannot do this step: {step}")
        return Reply(made.why or f"The next step: {step}.", (made,))

    return execute


def work_of(current: CurrentRequest) -> Work:
    """The plan that a replanner shall look after."""
    plan = _PLAN.search(current.request)
    steps = [line.partition(". ")[2] for line in plan[1].splitlines()] if plan else []
    done = tuple((step, result) for step, result in _DONE.findall(current.request))
    return Work(left=tuple(steps[1:]), done=done)


def plans(steps: Sequence[str]) -> Reply:
    """Make a plan."""
    return Reply("", (call(PLAN_TOOL, steps=list(steps)),))


def responds(intro: str, work: Work) -> Reply:
    """End with an answer: what came of each step."""
    lines = [f"- {' '.join(result.split())}" for _, result in work.done]
    return Reply("", (call(RESPOND_TOOL, response="\n".join([intro, *lines])),))
