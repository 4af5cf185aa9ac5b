"""Pattern 8, supervisor over plan-execute: a project is set up; people agree to its budget.

In the original, the supervisor is not called again after the budget was approved, so that its
summary is missing. Here it comes.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import tool
from agents.prebuilt.plan_execute import executor_agent, plan_execute, replanner_agent
from agents.prebuilt.supervisor import supervisor
from agents.tools.actions import EXIT_NAME, TRANSFER_NAME, exit_tool
from agents.workflows.sequential import SequentialAgent
from agents.workflows.transfer import transfer_tool_to
from bot.demo.commands import PlannedToolCall
from bot.demo.patterns.planned import executing, planner, plans, responds, work_of
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import report

EXAMPLE = (
    "set up the project Customer Portal with $150000 from engineering, team Alice, Bob, Charlie"
)
INSTRUCTION = """\
You lead projects. Let research_agent look around first, then let project_execution_agent set the
project up. When both are done, call `exit` with a summary. Do nothing yourself.
"""
_PERSON = r"(?-i:[A-Z])\w+"
_BUDGETS = {"engineering": 500_000, "marketing": 200_000, "operations": 300_000}

Name = Annotated[str, Field(min_length=1, max_length=80)]


@tool(title="Search for {query}")
def search_info(query: Name) -> str:
    """Search for what is known. Changes nothing.

    Args:
        query: What for.
    """
    return f"Known about {query}: two similar projects took four months each"


@tool(title="Analyse the requirements of {project_name}")
def analyze_requirements(project_name: Name) -> str:
    """Find out what a project needs. Changes nothing.

    Args:
        project_name: Which project.
    """
    return f"{project_name} needs a login, an overview, and a search"


@tool(title="Draft the design of {project_name}")
def create_design(project_name: Name) -> str:
    """Draft a design. Changes nothing.

    Args:
        project_name: Which project.
    """
    return f"The design of {project_name} has three parts: web, service, database"


def _takes(project_name: str, amount: Decimal, department: str) -> str:
    left = _BUDGETS.get(department, 0) - amount
    if left < 0:
        return f"{department} has {-left:,.0f} USD too little for {project_name}."
    return f"{department} has {left:,.0f} USD left for all but {project_name}."


@tool(
    title="Allocate {amount} USD of {department} to {project_name}",
    preview=_takes,
    gate="approval",
    batch_title="{n} budgets, {amount:sum} USD in total",
    batch_key="amount",
)
def allocate_budget(
    project_name: Name,
    amount: Annotated[Decimal, Field(gt=0, max_digits=9, decimal_places=2)],
    department: Annotated[str, Field(pattern=r"^[a-z]{1,30}$")],
) -> str:
    """Give a project its budget. People are asked first.

    Args:
        project_name: Which project.
        amount: How much, in USD.
        department: Whose money: engineering, marketing or operations.
    """
    available = _BUDGETS.get(department, 0)
    if amount > available:
        raise ValueError(f"{department} has {available} USD, which is not enough")
    return f"{project_name} has a budget of {amount:,.0f} USD from {department}"


@tool(title="Assign {members} to {project_name}")
def assign_team(project_name: Name, members: list[Name], start: str) -> str:
    """Note who works on a project.

    Args:
        project_name: Which project.
        members: Who.
        start: From which day.
    """
    return f"{', '.join(members)} work on {project_name} from {start}"


def build(model: Model) -> Agent:
    """Make `project_manager`; one of the agents that it leads is a whole plan-execute."""
    research = ChatModelAgent(
        name="research_agent",
        description="Looks around before a project begins.",
        model=voice(model, look_around),
        instruction="You search once, and say what you found in one sentence.",
        tools=[search_info],
    )
    execution = SequentialAgent(
        "project_execution_agent",
        [
            plan_execute(
                planner=planner(model, plan),
                executor=executor_agent(
                    model=voice(model, executing(_call)),
                    tools=[analyze_requirements, create_design, allocate_budget, assign_team],
                ),
                replanner=replanner_agent(model=voice(model, replan)),
                max_iterations=20,
            )
        ],
        description="Sets a project up, step by step.",
    )
    head = ChatModelAgent(
        name="project_manager",
        description="Sets up projects.",
        model=voice(model, lead),
        instruction=INSTRUCTION,
        tools=[transfer_tool_to([research, execution]), exit_tool()],
    )
    return supervisor(supervisor=head, sub_agents=[research, execution])


def lead(current: CurrentRequest) -> Reply:
    """Research, then execution, then the summary that the original never gives."""
    if not _project(current.request):
        return Reply(hint(EXAMPLE))
    been = [done.arguments["agent_name"] for done in current.done if done.tool == TRANSFER_NAME]
    for name in ("research_agent", "project_execution_agent"):
        if name not in been:
            return Reply("", (call(TRANSFER_NAME, agent_name=name),))
    outcome = current.words_of("replanner").partition("\n")[0]
    summary = f"All in all, for {_project(current.request)}: {outcome}"
    return Reply("", (call(EXIT_NAME, final_result=summary),))


def look_around(current: CurrentRequest) -> Reply:
    """Search once."""
    if current.done:
        return Reply(report(current.done))
    return Reply("", (call("search_info", query=_project(current.request)),))


def plan(current: CurrentRequest) -> Reply:
    """Write down the steps that the request asks for."""
    text, name = current.request, _project(current.request)
    steps = [f"Analyse the requirements of {name}", f"Draft the design of {name}"]
    amount = first_group(r"\$?\s?(\d[\d,]{2,11})(?:\.00)?\b(?!-)", text).replace(",", "")
    department = (
        first_group(r"\b(engineering|marketing|operations)\b", text).lower() or "engineering"
    )
    if amount:
        steps.append(f"Allocate {amount} USD of {department or 'engineering'} to {name}")
    team = first_group(
        rf"\bteam:?\s+(?:of\s+)?({_PERSON}(?:(?:\s*,\s*|\s+and\s+){_PERSON})*)", text
    )
    start = first_group(r"\b(\d{4}-\d\d-\d\d)\b", text) or "now"
    if team:
        members = ", ".join(re.split(r"\s*,\s*|\s+and\s+", team))
        steps.append(f"Assign {members} to {name} from {start}")
    return plans(steps)


def replan(current: CurrentRequest) -> Reply:
    """Go on with what is left; without a budget, nobody is assigned."""
    work = work_of(current)
    if work.was_refused and work.done[-1][0].startswith("Allocate"):
        return responds("There is no budget, so nobody is assigned.", work)
    return plans(work.left) if work.left else responds("The project is set up.", work)


def _project(text: str) -> str:
    return first_group(r"\bproject\s+[\"“]?((?-i:[A-Z])[\w-]*(?:\s+(?-i:[A-Z])[\w-]*)*)", text)


def _call(step: str) -> PlannedToolCall | None:
    match re.split(r"^(Analyse|Draft|Allocate|Assign) ", step)[1:]:
        case ["Analyse", rest]:
            return call("analyze_requirements", project_name=_after("requirements of", rest))
        case ["Draft", rest]:
            return call("create_design", project_name=_after("design of", rest))
        case ["Allocate", rest]:
            amount, department, name = re.split(r" USD of | to ", rest, maxsplit=2)
            why = "Two similar projects took four months each; the design needs as much."
            return call(
                "allocate_budget", why, project_name=name, amount=amount, department=department
            )
        case ["Assign", rest]:
            members, name, start = re.split(r" to | from ", rest, maxsplit=2)
            return call(
                "assign_team", project_name=name, members=[*members.split(", ")], start=start
            )
        case _:
            return None


def _after(words: str, text: str) -> str:
    return text.partition(f"{words} ")[2]
