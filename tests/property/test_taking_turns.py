"""Two processes that take turns at one thread, each going on from what it knows of it.

A process remembers what its last pass left, so that it need not read that again. Whoever had the
thread since, and whether it is still the same thread: nothing that waits is called off, and nothing
that people have let run is forgotten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents import Agent, ChatModelAgent, ScriptedModel, tool
from bot.maintenance.retention import Forgetting
from bot.records.approval import Status
from bot.records.approval_queries import newest_of
from tests.support.fakes import FakeClock, FakeNotifier
from tests.support.halves import first
from tests.support.stores import SqliteStores
from tests.unit.bot.office import BEN, ROOT, THREAD_ID, Office

MOST_CALLS = 3
"""Calls of one turn: one, and then two at once."""
STEPS = 25
ENDED = {Status.PENDING, Status.APPROVED}


def an_agent(ran: list[str]) -> Agent:
    """An agent that pays somebody, then two others at once, and says so; each with a yes."""

    @tool(gate="approval")
    def pay(to: str) -> str:
        """Pay."""
        ran.append(to)
        return f"paid {to}"

    async def go_on(
        messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        asked = [at for at, message in enumerate(messages) if _is_asked(message)]
        done = sum(map(_calls, messages[asked[-1] :]))
        if done >= MOST_CALLS:
            yield "All paid."
        for at in range(min(done + 1, MOST_CALLS - done)):
            name = f"{len(asked)}-{done + at}"
            yield {at: DeltaToolCall("pay", f'{{"to": "{name}"}}', tool_call_id=name)}

    return ChatModelAgent(name="A", model=FunctionModel(stream_function=go_on), tools=[pay])


def _is_asked(message: ModelMessage) -> bool:
    return any(isinstance(part, UserPromptPart) for part in message.parts)


def _calls(message: ModelMessage) -> int:
    parts = message.parts if isinstance(message, ModelResponse) else ()
    return sum(isinstance(part, ToolCallPart) for part in parts)


@pytest.mark.parametrize("seed", first(1, range(3)))
async def test_i6_whoever_has_the_thread_next_leaves_alone_what_waits(
    storage: SqliteStores, seed: int
) -> None:
    chance, ran, decided = Random(seed), list[str](), 0  # noqa: S311 - not for secrets
    clock, notifier = FakeClock(), FakeNotifier()

    def make(_: ScriptedModel) -> Agent:
        return an_agent(ran)

    offices = [
        Office(storage, [], clock=clock, notifier=notifier, owner=name, make_agent=make)
        for name in ("first", "second")
    ]
    forgetting = Forgetting(storage=storage, clock=clock, owner="keeper")
    await offices[0].hear("<@UBOT> pay")
    for step in range(STEPS):
        clock.forward(seconds=1)
        office, act = chance.choice(offices), chance.random()
        waiting = await office.open_approvals()
        if waiting and act < 0.6:
            await office.decide(chance.choice(waiting), by=BEN)
            decided += 1
        elif not waiting and act < 0.3:
            assert not (await forgetting.forget(THREAD_ID, how="forget")).refusal
            await office.hear("<@UBOT> pay", ts=ROOT)
        else:
            await office.hear("<@UBOT> and be quick", ts=f"1800000000.{step + 2:06d}")
        approvals = await newest_of(storage.approvals, THREAD_ID, limit=STEPS * MOST_CALLS)
        assert {approval.status for approval in approvals} <= ENDED
        assert len(ran) == decided
