"""Freezes of turns: none begins or goes on, and nothing is lost until the lifting (11.18)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic_ai.models.function import FunctionModel

from agents import tool
from agents.agent import Agent
from agents.chat.agent import ChatModelAgent
from agents.models import ScriptedModel, call, say
from bot.records.switch import FreezeScope
from storage.errors import RecordNotFoundError, StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, Office

HALTED = "I'm halted by "


async def freeze(office: Office, scope: FreezeScope | None = None, *, turns: bool = True) -> None:
    scope = scope or FreezeScope()
    await office.freezes.freeze(scope, by="UBEN", why="An agent runs wild.", turns=turns)
    office.clock.forward(seconds=2)


async def lift(office: Office) -> None:
    await office.freezes.lift("f1", by="UBEN", why="It is mended.", count=1)
    await office.later()


def notices(office: Office) -> list[str]:
    return [text for text in office.shown() if text.startswith(HALTED)]


async def test_a_running_turn_stops_before_its_next_request_to_the_model(
    storage: SqliteStores,
) -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    def make_agent(model: ScriptedModel) -> Agent:
        @tool(cancellable=True)
        async def look() -> str:
            """Look."""
            begun.set()
            await ended.wait()
            return "seen"

        return ChatModelAgent(name="A", model=model, tools=[look])

    office = Office(storage, [call("look", {}, id="c1"), say("I saw it.")], make_agent=make_agent)
    turn = asyncio.create_task(office.hear("<@UBOT> look"))
    await begun.wait()
    await freeze(office)
    ended.set()
    await turn
    assert office.model.calls == 1
    assert len(notices(office)) == 1

    await lift(office)

    assert office.shown()[-1] == "I saw it."
    assert office.model.calls == 2
    assert (await storage.threads.get(THREAD_ID)).parked_by == ""


async def test_a_stream_of_the_model_is_cut(storage: SqliteStores) -> None:
    begun, beat = asyncio.Event(), asyncio.Event()
    asked = 0

    async def stream(_: object, __: object) -> AsyncIterator[str]:
        nonlocal asked
        asked += 1
        yield "Half of "
        begun.set()
        if asked == 1:
            await asyncio.Event().wait()
        yield "it."

    async def beats(_: float) -> None:
        await beat.wait()
        beat.clear()

    model = FunctionModel(stream_function=stream)
    agent = ChatModelAgent(name="A", model=model, tools=[])
    office = Office(storage, make_agent=lambda _: agent)
    office.process = replace(office.process, beat=beats)
    turn = asyncio.create_task(office.hear("<@UBOT> go"))
    await begun.wait()
    await freeze(office)
    beat.set()
    await turn
    assert len(notices(office)) == 1
    assert "it." not in str(office.shown()[:-1])

    await lift(office)

    assert office.shown()[-1] == "Half of it."


async def test_no_turn_begins_while_the_switch_cannot_be_read(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [say("Hello.")])

    async def unreadable() -> None:
        raise RecordNotFoundError("switch", "switch")

    with monkeypatch.context() as patched:
        patched.setattr(office.switch, "in_force", unreadable)
        with pytest.raises(StoreUnavailableError):
            await office.hear("<@UBOT> hi")
    assert office.model.calls == 0
    office.clock.forward(minutes=1)
    await office.later()
    assert office.shown() == ["Hello."]
