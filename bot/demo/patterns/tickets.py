"""Patterns 1 (approval) and 2 (review and edit): booking tickets, with one tool and one rule."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.gates.decorator import Gate, tool
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import brief_report

EXAMPLE = "book a ticket for Martin, to Beijing, phone 1234567"
INSTRUCTION = """\
You book tickets with your tool, which asks people by itself; never ask for permission in words.
When a call was rejected, say so with the reason, and do not try it again. Answer in one sentence.
"""


def book_ticket(
    location: Annotated[str, Field(min_length=1, max_length=80)],
    passenger_name: Annotated[str, Field(min_length=1, max_length=80)],
    passenger_phone_number: Annotated[str, Field(pattern=r"^\+?[0-9][0-9 -]{3,19}$")],
) -> str:
    """Book a ticket for a passenger. People are asked first.

    Args:
        location: Where the passenger goes.
        passenger_name: Who travels.
        passenger_phone_number: Where the passenger can be reached.
    """
    return f"{passenger_name} has a ticket to {location}; the phone is {passenger_phone_number}"


def build_booker(model: Model) -> Agent:
    """Make `TicketBooker`: its one tool waits for *Approve* or *Reject…*."""
    return _agent("TicketBooker", model, "approval")


def build_reviewer(model: Model) -> Agent:
    """Make `TicketReviewer`: its one tool waits for *Approve*, *Edit…* or *Reject…*."""
    return _agent("TicketReviewer", model, "review")


def _agent(name: str, model: Model, gate: Gate) -> Agent:
    return ChatModelAgent(
        name=name,
        description="Books tickets.",
        model=voice(model, book),
        instruction=INSTRUCTION,
        tools=[
            tool(
                title="Book a ticket to {location} for {passenger_name}",
                gate=gate,
                batch_title="{n} tickets",
            )(book_ticket)
        ],
    )


def book(current: CurrentRequest) -> Reply:
    """Book what a message asks for, then say what became of it."""
    if current.done:
        return Reply(brief_report(current.done))
    text = current.request
    who = first_group(r"\bfor\s+([^\W\d_][\w'-]*(?:\s+(?!to\b)[^\W\d_][\w'-]*)?)", text)
    where = first_group(
        r"\bto\s+([^\W\d_][\w'-]*(?:\s+(?!for\b|on\b|phone\b|the\b)[^\W\d_][\w'-]*)?)", text
    )
    phone = first_group(r"(?:phone|number|reach)\D*?(\+?\d[\d -]{3,19})", text)
    if not (who and where and phone):
        return Reply(hint(EXAMPLE))
    booking = call(
        "book_ticket", location=where, passenger_name=who, passenger_phone_number=phone.strip()
    )
    return Reply(f"{who} is expected in {where}, and has no ticket yet.", (booking,))
