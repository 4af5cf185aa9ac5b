"""The agent of the chaos test: its model reads the job from the conversation, and keeps nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponsePart,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model

from agents import (
    ApprovalResult,
    ChatModelAgent,
    follow_up_tool,
    get_resume_context,
    idempotency_key,
    interrupt,
    tool,
)
from agents.graph import START, StateGraph, graph_tool, node_interrupt
from agents.models import AnsweringModel, call, say
from tests.chaos.points import Plan

PLAN = Plan()
"""Of this process; its entry sets it."""
EFFECTS = "CHAOS_EFFECTS"
"""The variable with the file that effects are appended to."""
CRASHING = "CHAOS_CRASHING"
"""The variable with the numbers of jobs that end their process each time."""
KINDS = 8
"""How many kinds of jobs there are; the number of a job says which it is."""


def effect(tool_name: str, ref: str, amount: int) -> str:
    """Do what cannot be taken back."""
    PLAN.at(f"tool {tool_name} <")
    PLAN.may_fail(ref, "<")
    line = f"{tool_name} {ref} {amount} {idempotency_key()}\n".encode()
    file = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)  # one write: lines of several processes do not mix
    os.close(file)
    PLAN.at(f"tool {tool_name} >")
    PLAN.may_fail(ref, ">")
    return f"{tool_name} did {ref} with {amount}"


def effects(path: Path) -> list[tuple[str, str, int, str]]:
    """Everything that was done: tool, reference, amount, idempotency key."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [(a, b, int(c), d) for a, b, c, d in (line.split() for line in lines)]


@tool(gate="approval", title="Pay {amount} for {ref}")
async def pay(ref: str, amount: int) -> str:
    """Pay.

    Args:
        ref: What for.
        amount: How much.
    """
    return effect("pay", ref, amount)


@tool(gate="review", title="Refund {amount} for {ref}")
async def refund(ref: str, amount: int) -> str:
    """Refund.

    Args:
        ref: What for.
        amount: How much.
    """
    return effect("refund", ref, amount)


@tool(gate="approval", title="Restart {ref} {amount} times", idempotent=True)
async def restart(ref: str, amount: int) -> str:
    """Restart; twice is as good as once.

    Args:
        ref: What.
        amount: How often.
    """
    return effect("restart", ref, amount)


@tool
async def look(ref: str) -> str:
    """Look something up.

    Args:
        ref: What.
    """
    return f"{ref} looks fine"


@tool
async def charge(ref: str, amount: int) -> str:
    """Charge what people say; it asks them by itself.

    Args:
        ref: What for.
        amount: How much.
    """
    _, has_answer, _ = get_resume_context(str)
    if not has_answer:
        interrupt(f"Shall {ref} be charged?")
    return effect("charge", ref, amount)


class Wiring(TypedDict, total=False):
    ref: str
    amount: int
    output: str


async def _wire(state: Wiring) -> Wiring:
    """A node that asks for an approval, and does what was decided."""
    ref, amount = state["ref"], state["amount"]
    asked = {"question": f"May {ref} be wired?", "ref": ref, "amount": amount}
    if not node_interrupt(asked, response_type=ApprovalResult).approved:
        return {"output": f"{ref} stays"}
    return {"output": effect("wire", ref, amount)}


def wire(ref: str, amount: int) -> dict[str, object]:
    """Wire.

    Args:
        ref: What for.
        amount: How much.
    """
    return {"ref": ref, "amount": amount}


WIRES = graph_tool(
    StateGraph(Wiring).add_node("wire", _wire).add_edge(START, "wire").compile(name="wiring"),
    wire,
    to_text=lambda values: str(values.get("output", "nothing")),
)


@tool
async def crash(ref: str) -> str:
    """End the process, whenever it is called.

    Args:
        ref: What for.
    """
    PLAN.die("by itself")


def answer(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    """What the model says next: it depends on the conversation alone."""
    prompts = [
        part
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    asked = [m for p in prompts if (m := re.search(r"job (\d+)", str(p.content)))]
    last = messages[-1]
    results = [p for p in last.parts if isinstance(p, ToolReturnPart)]
    # Somebody may answer a question a second time, when it is not open any more.
    if not asked or (not results and "job" not in str(prompts[-1].content)):
        return [say("There is no job in that.")]
    number = int(asked[-1][1])
    if not results:
        return _first(number)
    if results[0].tool_name == "ask_people":
        return [_call("pay", number, 1)]
    outcomes = " | ".join(part.model_response_str() for part in results)
    return [say(f"job {number} done: {outcomes}")]


def _first(number: int) -> list[ModelResponsePart]:
    words: ModelResponsePart = TextPart(f"I will do job {number}.")
    if str(number) in os.environ.get(CRASHING, "").split(","):
        return [words, call("crash", {"ref": f"job-{number}-0"}, id=f"x{number}")]
    questions = {"questions": [f"What about job {number}?"]}
    calls: list[list[ModelResponsePart]] = [
        [_call("pay", number, 1)],
        [_call("refund", number, 1)],
        [_call("pay", number, 1), _call("refund", number, 2)],
        [call("ask_people", questions, id=f"q{number}")],
        [call("look", {"ref": f"job-{number}-0"}, id=f"l{number}"), _call("pay", number, 1)],
        [_call("restart", number, 1), _call("pay", number, 2)],
        [_call("charge", number, 1)],
        [_call("wire", number, 1), _call("pay", number, 2)],
    ]
    return [words, *calls[number % KINDS]]


def _call(name: str, number: int, part: int) -> ModelResponsePart:
    arguments = {"ref": f"job-{number}-{part}", "amount": 10 * part}
    return call(name, arguments, id=f"c{number}-{part}")


def build(_: Model) -> ChatModelAgent:
    """Make the agent."""
    return ChatModelAgent(
        name="chaos",
        model=AnsweringModel(answer, name="chaos"),
        tools=[pay, refund, restart, look, crash, charge, WIRES, follow_up_tool()],
    )
