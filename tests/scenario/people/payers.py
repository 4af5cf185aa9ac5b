"""Agents that pay, for scenarios about people; named by COUNTERSIGN_AGENT as in `agents`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import Model

from agents import Agent, ChatModelAgent, tool
from agents.models import AnsweringModel, call, say
from slack_sandbox.workspace.people import ADA, BEN, MIA
from tests.support.stage import Stage, a_stage, write_policy

RAN: list[tuple[str, int]] = []
"""What was paid; a test that looks at it clears it first."""
HEARD: list[str] = []
"""What the agent was told of its calls, in order."""
GATES: list[asyncio.Event] = []
"""A payment waits for these after it was made."""


@tool(title="Pay {amount} to {to}", gate="review")
async def pay(to: str, amount: int) -> str:
    """Pay.

    Args:
        to: Who gets it.
        amount: How much.
    """
    RAN.append((to, amount))
    for gate in GATES:
        await gate.wait()
    return f"paid {amount} to {to}"


def _returned(messages: list[ModelMessage]) -> list[str]:
    """Give what the calls of the newest turn came to, in order."""
    contents: list[str] = []
    for part in [part for message in messages for part in message.parts]:
        if isinstance(part, UserPromptPart):
            contents = []
        elif isinstance(part, ToolReturnPart):
            contents.append(str(part.content))
    return contents


def _pays(*payments: tuple[str, int]) -> Callable[[Model], Agent]:
    """Make an agent that makes these payments, one after the other, in each turn."""

    def answer(messages: list[ModelMessage]) -> list[ModelResponsePart]:
        HEARD[:] = _returned(messages)
        if len(HEARD) == len(payments):
            return [say("All done.")]
        to, amount = payments[len(HEARD)]
        return [call("pay", {"to": to, "amount": amount}, id=f"c{len(messages)}")]

    model = AnsweringModel(answer, name="payer")
    return lambda _: ChatModelAgent(name="clerk", model=model, tools=[pay])


once = _pays(("acme", 10))
twice = _pays(("acme", 10), ("mallory", 9000))


TEAM = {"team": f"users: [{ADA}, {BEN}, {MIA}]"}
"""A group of three."""


def policy_of(ask: str, groups: Mapping[str, str]) -> str:
    """A policy that asks about each call in this way; who is in a group, by its name."""
    members = "".join(f"  {name}: {{{who}}}\n" for name, who in groups.items())
    return f"version: 1\ngroups:\n{members}rules: []\ndefault:\n  ask: {{{ask}}}\n"


@asynccontextmanager
async def asked(
    tmp_path: Path,
    ask: str,
    groups: Mapping[str, str] = TEAM,
    *,
    agent: str = "tests.scenario.people.payers:once",
    words: str = "pay",
) -> AsyncIterator[Stage]:
    """A bot under such a policy, which Rosa has told these words, if any."""
    RAN.clear()
    GATES.clear()
    path = write_policy(tmp_path, policy_of(ask, groups))
    environ = {"COUNTERSIGN_AGENT": agent, "COUNTERSIGN_POLICY": path}
    async with a_stage(tmp_path, "socket", **environ) as stage:
        if words:
            await stage.say("Rosa", f"@countersign {words}")
        yield stage
