"""A long turn: the agent reads page after page, until it reaches the limit of its model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import tool
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice

EXAMPLE = "read the 6 pages of the report"
NAME = "reader"
LIMIT = "200 per turn"
"""The most tokens of a turn: about half of what the example needs."""
_PAGES = (
    "Sales rose in all regions but one, and returns fell.",
    "Two warehouses moved, which delayed orders of one week.",
    "Support answered most questions within an hour.",
    "The new search finds products that people misspell.",
    "Three suppliers raised their prices in autumn.",
    "For the next quarter, the plan is one more delivery a day.",
)


@tool(title="Read page {page}", tags=["read-only"])
def read_page(page: Annotated[int, Field(ge=1, le=len(_PAGES))]) -> str:
    """Read a page of the report. Changes nothing.

    Args:
        page: Number of the page.
    """
    return _PAGES[page - 1]


def build(model: Model) -> Agent:
    """Make `reader`: it reads one page after the other, with a request to its model for each."""
    return ChatModelAgent(
        name=NAME,
        description="Reads a report page by page.",
        model=voice(model, read_on),
        instruction="You read the report page by page, then say in short what it says.",
        tools=[read_page],
    )


def read_on(current: CurrentRequest) -> Reply:
    """Read the next page; after the last one, say what the report says."""
    last = int(first_group(r"read the ([1-6]) pages", current.request) or 0)
    if not last:
        return Reply(hint(EXAMPLE))
    if len(current.done) < last:
        page = len(current.done) + 1
        return Reply("", (call("read_page", f"I read page {page} of {last}.", page=page),))
    return Reply(f"I have read {last} pages. The last one says: {current.done[-1].result}")
