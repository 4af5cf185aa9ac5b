"""`create_react_agent` with a `HumanInterruptConfig`: accept, ignore, respond, or edit a call."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_ai.models import Model

from agents.agent import Agent
from agents.gates.decorator import tool
from agents.gates.human import HumanInterruptConfig
from agents.prebuilt.react import create_react_agent
from bot.demo.patterns.rules import CurrentRequest, Reply, call, first_group, hint, voice
from bot.demo.replies import Done, brief_report, is_answer

EXAMPLE = "write to nora@acme.example: the office moves on Monday"


@tool(title="Send an e-mail to {to}", tags=["external"], batch_title="{n} e-mails")
def send_mail(
    to: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$", max_length=120)],
    text: Annotated[str, Field(min_length=1, max_length=2000)],
) -> str:
    """Send an e-mail. People are asked first.

    Args:
        to: Who gets it.
        text: What it says.
    """
    return f"sent to {to}: {text}"


def build(model: Model) -> Agent:
    """Make `mail_agent`: people may accept, ignore, answer or edit each of its calls."""
    return create_react_agent(
        voice(model, write),
        [send_mail],
        name="mail_agent",
        description="Writes e-mails.",
        instruction="You write e-mails with your tool, which asks people by itself.",
        human_interrupt={"send_mail": HumanInterruptConfig(description="It is sent at once.")},
    )


def write(current: CurrentRequest) -> Reply:
    """Send what a message asks for, then say what became of it."""
    if current.done:
        return Reply(_ended(current.done[-1]))
    to = first_group(r"([^\s@<>|:]+@[^\s@<>|:,]+)", current.request)
    text = first_group(r":\s+(.+)", current.request)
    if not (to and text):
        return Reply(hint(EXAMPLE))
    return Reply(
        f"{to} is concerned, and should know before it happens.",
        (call("send_mail", to=to, text=text),),
    )


def _ended(done: Done) -> str:
    """Say what became of the call; in place of a result there may be what a person says."""
    if done.result.startswith("A person ignored"):
        return "The e-mail was put aside, so I did not send it."
    was_sent = done.result.startswith(("sent to", "A person changed"))
    if was_sent or not is_answer(done.result):
        return brief_report([done])
    return f"I did not send it. I was told: {done.result}"
