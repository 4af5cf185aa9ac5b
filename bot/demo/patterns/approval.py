"""Pattern 1, approval: a tool runs when a person agrees, and not when one says no."""

from __future__ import annotations

from pydantic_ai.models import Model

from agents.agent import Agent
from bot.demo.patterns.tickets import booking_agent


def build(model: Model) -> Agent:
    """Make `TicketBooker`: its one tool waits for *Approve* or *Reject…*."""
    return booking_agent("TicketBooker", model, "approval")
