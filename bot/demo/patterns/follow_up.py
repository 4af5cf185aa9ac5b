"""Pattern 4, follow-up: an agent inside a tool call asks people what is missing."""

from __future__ import annotations

import re

from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.followup import FOLLOW_UP_NAME, follow_up_tool
from agents.workflows.agenttool import AgentTool
from bot.demo.commands import gives_up
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import is_answer

EXAMPLE = "plan a 3-day trip to New York City"
PLANNER = """\
You plan trips. First let FollowUpAgent find out what the traveller likes; give it the request.
Then write a short plan, day by day, that fits the facts that it found. Invent no facts.
"""
ASKER = """\
You find out what is needed to plan a trip: what the traveller likes, the budget, who comes along.
Ask with ask_people, at most three questions at a time. Ask again about what stays open.
Then summarise the facts, and nothing else.
"""
_WISHES = "What do you like: museums, food, nature, music?"
_BUDGET = "How much may a day cost, in USD?"
_COMPANY = "Who travels with you?"
_LIKES = ("museums", "food", "nature", "music")
_DAYS = {
    "museums": "a museum in the morning, an old quarter in the afternoon",
    "food": "a market for breakfast, a cooking class, a long dinner",
    "nature": "a walk in the largest park, and a boat on the water",
    "music": "a record shop, a rehearsal that is open to all, a concert",
}


def build(model: Model) -> Agent:
    """Make `ItineraryAgent`, and `FollowUpAgent`, which is a tool of it."""
    asker = ChatModelAgent(
        name="FollowUpAgent",
        description="Finds out what a traveller wants. Asks people where it must.",
        model=voice(model, ask),
        instruction=ASKER,
        tools=[follow_up_tool()],
        max_iterations=10,
    )
    return ChatModelAgent(
        name="ItineraryAgent",
        description="Plans trips.",
        model=voice(model, plan),
        instruction=PLANNER,
        tools=[AgentTool(asker)],
    )


def ask(current: CurrentRequest) -> Reply:
    """Ask three questions, once more for the budget when nothing says it, and sum up."""
    answers = current.results_of(FOLLOW_UP_NAME)
    if not answers:
        questions = call(FOLLOW_UP_NAME, questions=[_WISHES, _BUDGET, _COMPANY])
        return Reply("A good plan depends on what you like and on the budget.", (questions,))
    if not is_answer(answers[-1]) or gives_up(answers[-1]):
        return Reply("Open: nobody said what is wanted.")
    answer_text = "\n".join(answers)
    budget = first_group(r"(\d[\d.,]*)", answer_text)
    if not budget and len(answers) == 1:
        again = call(FOLLOW_UP_NAME, questions=[f"{_BUDGET} Please write a number."])
        return Reply("One thing is still open.", (again,))
    plain = answer_text.replace(_WISHES, "").lower()
    likes = [like for like in _LIKES if re.search(rf"\b{like.rstrip('s')}", plain)] or ["food"]
    cost = f"at most {budget} USD a day" if budget else "budget unknown"
    return Reply(f"Facts: likes {', '.join(likes)}; {cost}.")


def plan(current: CurrentRequest) -> Reply:
    """Have the facts found out, then write one line for each day."""
    where = first_group(r"\bto\s+([A-Z][\w' -]*)", current.request)
    days = min(int(first_group(r"(\d{1,2})[ -]day", current.request) or 3), 7)
    if not where:
        return Reply(hint(EXAMPLE))
    facts = current.results_of("FollowUpAgent")
    if not facts:
        asked = call("FollowUpAgent", request=f"Plan {days} days in {where}.")
        return Reply("", (asked,))
    likes = [like for like in _LIKES if like in facts[-1]]
    if not likes:
        return Reply(f"I have no plan for {where}: {facts[-1]} You can ask me again.")
    lines = [f"Day {day}: {_DAYS[likes[(day - 1) % len(likes)]]}." for day in range(1, days + 1)]
    return Reply("\n".join([f"{where}, {days} days. {facts[-1]}", *lines]))
