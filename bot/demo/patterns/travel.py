"""Pattern 6, plan, execute, replan: a trip step by step; people review each booking."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.gates.decorator import tool
from agents.prebuilt.plan_execute import executor_agent, plan_execute, replanner_agent
from agents.tools.actions import EXIT_NAME
from bot.demo.commands import PlannedToolCall
from bot.demo.patterns.planned import executing, planner, plans, responds, work_of
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice

EXAMPLE = "plan a trip from Berlin to Tokyo on 2027-10-15 for 3 nights"
_WORDS = r"([^\W\d_][\w'-]*(?:\s+(?!to\b|on\b|for\b|from\b|in\b)[^\W\d_][\w'-]*)*)"

_WHY = {
    "book_flight": "The weather will be good, and the hotel depends on the day of the flight.",
    "book_hotel": "The flight is booked, so the nights are known.",
}

City = Annotated[str, Field(min_length=1, max_length=60)]


@tool(title="Look up the weather in {city}")
def get_weather(city: City, day: date) -> str:
    """Look up the weather. Changes nothing.

    Args:
        city: Where.
        day: When.
    """
    return f"Sunny in {city} on {day.isoformat()}, 22 degrees"


@tool(title="Find attractions in {city}")
def search_attractions(city: City) -> str:
    """Find what there is to see. Changes nothing.

    Args:
        city: Where.
    """
    return f"To see in {city}: the old town, the national museum, the botanical garden"


@tool(
    title="Book a flight from {origin} to {destination} on {day}",
    gate="review",
    batch_title="{n} flights",
)
def book_flight(
    origin: City,
    destination: City,
    day: date,
    passengers: Annotated[int, Field(ge=1, le=9)] = 1,
) -> str:
    """Book a flight. People review it first.

    Args:
        origin: From where.
        destination: To where.
        day: When.
        passengers: How many people fly.
    """
    seats = "1 seat" if passengers == 1 else f"{passengers} seats"
    return f"flight from {origin} to {destination} on {day.isoformat()} is booked, {seats}"


@tool(
    title="Book a hotel in {city} from {check_in} to {check_out}",
    gate="review",
    batch_title="{n} hotels",
)
def book_hotel(city: City, check_in: date, check_out: date) -> str:
    """Book a hotel. People review it first.

    Args:
        city: Where.
        check_in: The first day.
        check_out: The last day.
    """
    if check_out <= check_in:
        raise ValueError("the last day must be after the first one")
    return f"hotel in {city} is booked from {check_in.isoformat()} to {check_out.isoformat()}"


def build(model: Model) -> Agent:
    """Make `travel_agent`: a planner, and a loop of executor and replanner."""
    return plan_execute(
        name="travel_agent",
        description="Plans trips and books them.",
        planner=planner(model, plan),
        executor=executor_agent(
            model=voice(model, executing(_call)),
            tools=[get_weather, search_attractions, book_flight, book_hotel],
        ),
        replanner=replanner_agent(model=voice(model, replan)),
        max_iterations=20,
    )


def plan(current: CurrentRequest) -> Reply:
    """Write down the four steps of a trip."""
    origin = first_group(rf"\bfrom\s+{_WORDS}", current.request)
    city = first_group(rf"\bto\s+{_WORDS}", current.request)
    start = _day(current.request)
    if not (origin and city and start):
        return Reply("", (call(EXIT_NAME, final_result=hint(EXAMPLE)),))
    nights = int(first_group(r"\b([1-9]\d?)\s+nights?", current.request) or 3)
    end = start + timedelta(days=nights)
    return plans(
        [
            f"Look up the weather in {city} on {start}",
            f"Find attractions in {city}",
            f"Book a flight from {origin} to {city} on {start}",
            f"Book a hotel in {city} from {start} to {end}",
        ]
    )


def replan(current: CurrentRequest) -> Reply:
    """Go on with what is left; without a flight, leave out the hotel."""
    work = work_of(current)
    no_flight = work.was_refused and work.done[-1][0].startswith("Book a flight")
    if no_flight:
        return responds("There is no flight, so I booked no hotel either.", work)
    return plans(work.left) if work.left else responds("This is what came of your trip:", work)


def _call(step: str) -> PlannedToolCall | None:
    for pattern, tool_name, names in (
        (r"Look up the weather in (.+) on ([\d-]+)", "get_weather", ("city", "day")),
        (r"Find attractions in (.+)", "search_attractions", ("city",)),
        (
            r"Book a flight from (.+) to (.+) on ([\d-]+)",
            "book_flight",
            ("origin", "destination", "day"),
        ),
        (
            r"Book a hotel in (.+) from ([\d-]+) to ([\d-]+)",
            "book_hotel",
            ("city", "check_in", "check_out"),
        ),
    ):
        match = re.fullmatch(pattern, step)
        if match:
            given = dict(zip(names, match.groups(), strict=True))
            return call(tool_name, _WHY.get(tool_name, ""), **given)
    return None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(first_group(r"\b(\d{4}-\d\d-\d\d)\b", text))
    except ValueError:
        return None
