"""Pattern 2, review and edit: a person may also change what the tool runs with."""

from __future__ import annotations

from pydantic_ai.models import Model

from agents.agent import Agent
from bot.demo.patterns.tickets import booking_agent


def build(model: Model) -> Agent:
    """Make `TicketReviewer`: its one tool waits for *Approve*, *Edit…* or *Reject…*."""
    return booking_agent("TicketReviewer", model, "review")
