"""Pattern 7, deep agent: a list of what is to do, sub-agents for its parts, questions to people."""

from __future__ import annotations

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.core.codec import Json
from agents.gates.decorator import tool
from agents.gates.followup import FOLLOW_UP_NAME, follow_up_tool
from agents.middlewares.tools import ToolErrorHandler
from agents.prebuilt.deep import TASK_TOOL, deep_agent
from bot.demo.commands import PlannedToolCall, gives_up
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import is_answer

EXAMPLE = "analyse the market for electric bicycles"
INSTRUCTION = """\
You analyse markets. Ask people first which period and which region they mean, and what the
analysis is for. Let ResearchAgent find the figures, then AnalysisAgent judge them. Say what came
of it in a few sentences.
"""
_PERIOD = "Which period shall I look at?"
_REGION = "Which region?"
_PURPOSE = "What shall the analysis help you decide?"
_STEPS = ("Ask what is meant", "Find the figures", "Judge the figures", "Report")


@tool(title="Search for {query}")
def search(query: str) -> str:
    """Search for figures. Changes nothing.

    Args:
        query: What for.
    """
    return f"3 reports about {query}: revenue 1.2, 1.5 and 1.9 billion USD in three years"


@tool(title="Analyse {data}")
def analyze(data: str, method: str = "trend") -> str:
    """Analyse figures. Changes nothing.

    Args:
        data: The figures.
        method: How.
    """
    if not data.strip():
        raise ValueError("there is nothing to analyse")
    return f"by {method}: growth of about 26 percent a year, and no sign of an end"


def build(model: Model) -> Agent:
    """Make `DataAnalysisAgent` with its two sub-agents; errors of tools become results."""
    research = ChatModelAgent(
        name="ResearchAgent",
        description="Finds figures.",
        model=voice(model, research_rule),
        instruction="You find figures with `search`, and say them.",
        tools=[search],
    )
    analysis = ChatModelAgent(
        name="AnalysisAgent",
        description="Judges figures.",
        model=voice(model, analysis_rule),
        instruction="You judge figures with `analyze`, and say what they mean.",
        tools=[analyze],
    )
    return deep_agent(
        name="DataAnalysisAgent",
        description="Analyses markets.",
        model=voice(model, lead),
        tools=[follow_up_tool()],
        sub_agents=[research, analysis],
        instruction=INSTRUCTION,
        max_iterations=50,
        middlewares=[ToolErrorHandler()],
        with_general_purpose=False,
    )


def lead(current: CurrentRequest) -> Reply:
    """Ask, give out two tasks, report; the list is written anew before each."""
    topic = first_group(r"\banaly[sz]e\s+(.+)", current.request).rstrip(".")
    if not topic:
        return Reply(hint(EXAMPLE))
    answers, results = current.results_of(FOLLOW_UP_NAME), current.results_of(TASK_TOOL)
    if not answers:
        asked = call(FOLLOW_UP_NAME, questions=[_PERIOD, _REGION, _PURPOSE])
        return Reply(
            "The figures depend on the period and the region, so I ask before I search.",
            (_todos(0), asked),
        )
    if not is_answer(answers[-1]) or gives_up(answers[-1]):
        return Reply("Nobody told me what is meant, so I do not guess. You can ask me again.")
    if not results:
        task = f"Find figures about {topic}. {_one_line(answers[-1])}"
        return Reply("I let the figures be found.", (_todos(1), _task("ResearchAgent", task)))
    if len(results) == 1:
        return Reply("I let them be judged.", (_todos(2), _task("AnalysisAgent", results[0])))
    return Reply(f"The analysis of {topic}.\n- {results[0]}\n- {results[1]}")


def research_rule(current: CurrentRequest) -> Reply:
    """Search once."""
    if current.done:
        return Reply(current.done[-1].result)
    query = first_group(r"Find figures about (.+?)\.", current.request) or current.request
    return Reply("", (call("search", query=query),))


def analysis_rule(current: CurrentRequest) -> Reply:
    """Analyse once."""
    if current.done:
        return Reply(current.done[-1].result)
    return Reply("", (call("analyze", data=current.request),))


def _todos(current: int) -> PlannedToolCall:
    """The call that writes the list, with one item at work and those before it done."""
    todos: list[Json] = [
        {"content": step, "status": _status(at, current)} for at, step in enumerate(_STEPS)
    ]
    return call("write_todos", todos=todos)


def _status(at: int, current: int) -> str:
    if at == current:
        return "in_progress"
    return "completed" if at < current else "pending"


def _task(agent: str, description: str) -> PlannedToolCall:
    return call(TASK_TOOL, subagent_type=agent, description=description)


def _one_line(text: str) -> str:
    return " ".join(text.split())
