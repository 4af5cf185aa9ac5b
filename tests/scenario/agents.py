"""Small agents for scenarios, named by COUNTERSIGN_AGENT; each takes the model and ignores it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated
from uuid import uuid4

from pydantic import Field
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from agents.models import Turn, call, say

RAN: list[str] = []
"""What the tools did; a test that looks at it clears it first."""

GATES: list[asyncio.Event] = []
"""A tool that measures waits for these."""

LONG = "".join(f"{number:05d} " for number in range(20_000 // 6)) + "the end"
"""A text of about 20,000 characters, each part of which can be found again."""
HUGE = "x" * 400_000
NASTY = "<!channel> <@U0ADALINDQ> `code` *bold* <https://evil.example|bank> @here ```fence```"


@tool(gate="review", title="Send {text}")
def send(text: str) -> str:
    """Send a text.

    Args:
        text: What to send.
    """
    RAN.append(text)
    return f"sent {len(text)} characters"


@tool
def explode(what: str) -> str:
    """Fail.

    Args:
        what: What to break.
    """
    raise RuntimeError(f"{what} broke, and password=hunter2secret was in the message")


@tool
async def measure(what: str) -> str:
    """Measure something, for as long as a test wants.

    Args:
        what: What to measure.
    """
    RAN.append(f"measuring {what}")
    for gate in GATES:
        await gate.wait()
    return f"{what} is 7"


def patient(_: Model) -> Agent:
    """Calls a tool that takes its time, twice, and then says so."""
    turns = [call("measure", {"what": name}, id=name) for name in ("height", "width")]
    model = ScriptedModel([*turns, say("Both are 7.")])
    return ChatModelAgent(name="patient", model=model, tools=[measure])


def has_results(messages: Sequence[ModelMessage]) -> bool:
    """Whether the newest message tells what calls came to."""
    return any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)


def newest_words(messages: Sequence[ModelMessage]) -> str:
    """What people wrote last; empty if they wrote nothing."""
    parts = [part for message in messages for part in message.parts]
    return ([str(part.content) for part in parts if isinstance(part, UserPromptPart)] or [""])[-1]


def _agent(*turns: Turn) -> Agent:
    return ChatModelAgent(name="scripted", model=ScriptedModel(turns), tools=[send, explode])


def thrice(_: Model) -> Agent:
    """Sends three texts in one turn."""
    texts = ("the report", "the invoice", "a <!channel> joke")
    return _agent([call("send", {"text": text}, id=text) for text in texts], say("That was it."))


def sender(_: Model) -> Agent:
    """Send a text in each thread, whatever it reads."""
    return _agent([call("send", {"text": "look at it"}, id="c1")], [say("Sent.")])


def failing(_: Model) -> Agent:
    """Calls a tool that raises, and says so."""
    return _agent(call("explode", {"what": "it"}, id="c1"), say("It broke."))


def confused(_: Model) -> Agent:
    """Calls a tool that is not there, then one with wrong arguments, then with broken ones."""
    return _agent(
        call("no_such_tool", {"x": 1}, id="c1"),
        call("send", {"txet": 5}, id="c2"),
        call("send", "{broken", id="c3"),
        say("I give up."),
    )


def long(_: Model) -> Agent:
    """Sends a text that no card can hold."""
    return _agent(call("send", {"text": LONG}, id="c1"), say("Sent."))


def huge(_: Model) -> Agent:
    """Sends a text that nothing in Slack can hold."""
    return _agent(call("send", {"text": HUGE}, id="c1"), say("Sent."))


def nasty(_: Model) -> Agent:
    """Writes what would be markup, everywhere."""
    first: Turn = [say(f"I will send {NASTY}"), call("send", {"text": NASTY}, id="c1")]
    return _agent(first, say(f"Sent {NASTY}"))


def plain(_: Model) -> Agent:
    """Sends a word."""
    return _agent(call("send", {"text": "hello"}, id="c1"), say("Sent."))


@tool(gate="review", title="Order {what}")
def order(what: str, key: Annotated[str, Field(default_factory=lambda: uuid4().hex)]) -> str:
    """Order something.

    Args:
        what: What to order.
        key: Tells one order from another.
    """
    RAN.append(key)
    return f"ordered {what} as {key}"


def ordering(_: Model) -> Agent:
    """Calls a tool with a default that is another one each time."""
    model = ScriptedModel([call("order", {"what": "tea"}, id="c1"), say("Ordered.")])
    return ChatModelAgent(name="ordering", model=model, tools=[order])


def modelled(model: Model) -> Agent:
    """Asks the model that the settings name."""
    return ChatModelAgent(name="modelled", model=model, tools=[send])
