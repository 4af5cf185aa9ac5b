"""Stopping an agent from outside, at its safe points."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import ChatModelAgent, MemoryCheckpointStore, Runner
from agents.agent import AgentEvent, TextDelta
from agents.core.cancel import CancelInfo, CancelMode, CancelToken
from agents.core.errors import RunCancelledError
from agents.models import call, say
from tests.unit.agents.support import Plain, World, brief, collect, follow


async def stopped(world: World, token: CancelToken) -> tuple[list[str], RunCancelledError]:
    received: list[AgentEvent] = []
    with pytest.raises(RunCancelledError) as caught:
        await follow(world.runner().query("hi", checkpoint_id="1", cancel=token), received)
    return [line for line in brief(received) if not line.startswith("INT")], caught.value


async def test_e151_after_the_tools() -> None:
    token = CancelToken()
    tool = Plain("t", lambda _: token.cancel("after_tools"))
    world = World([call("t", id="c1"), say("done")], [tool])

    lines, error = await stopped(world, token)

    assert lines == ["calls t#c1", "tool t#c1 ran: t ok {}"]
    (context,) = error.contexts
    assert str(context.address) == "agent:A"
    assert context.info == CancelInfo(mode="after_tools")
    assert brief(await collect(world.runner().resume("1"))) == ["says done"]
    assert len(tool.calls) == 1
    assert sum(model.calls for model in world.models) == 2


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_after_the_model(durability: str) -> None:
    token = CancelToken()
    token.cancel("after_model")
    tool = Plain("t")
    world = World([call("t", id="c1"), say("done")], [tool], durability=durability)

    lines, error = await stopped(world, token)

    assert lines == ["calls t#c1"]
    assert error.contexts[0].info == CancelInfo(mode="after_model")
    assert tool.calls == []
    assert brief(await collect(world.runner().resume("1"))) == [
        "tool t#c1 ran: t ok {}",
        "says done",
    ]
    assert sum(model.calls for model in world.models) == 2


@pytest.mark.parametrize("mode", ["after_model", "after_tools"])
async def test_a_run_that_ends_before_that_just_ends(mode: CancelMode) -> None:
    token = CancelToken()
    token.cancel(mode)
    world = World([say("done")])

    events = await collect(world.runner().query("hi", checkpoint_id="1", cancel=token))

    assert brief(events) == ["says done"]


async def test_before_it_has_begun() -> None:
    token = CancelToken()
    token.cancel()
    world = World([say("done")])

    lines, error = await stopped(world, token)

    assert lines == []
    assert error.contexts[0].info == CancelInfo(mode="now")
    assert sum(model.calls for model in world.models) == 0
    assert brief(await collect(world.runner().resume("1"))) == ["says done"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_while_the_model_thinks(streaming: bool) -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()
    answers: list[str] = []

    async def hang() -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def answer(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not answers:
            answers.append("first")
            await hang()
        return ModelResponse(parts=[say("done")])

    async def stream(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        if not answers:
            answers.append("first")
            yield "half a "
            await hang()
        yield "done"

    model = FunctionModel(answer, stream_function=stream)
    agent = ChatModelAgent(name="A", model=model)
    runner = Runner(agent, checkpoint_store=MemoryCheckpointStore(), streaming=streaming)
    token, received = CancelToken(), list[AgentEvent]()
    task = asyncio.create_task(
        follow(runner.query("hi", checkpoint_id="1", cancel=token), received)
    )
    await asked.wait()
    token.cancel()

    with pytest.raises(RunCancelledError) as caught:
        await task
    assert cancelled.is_set()
    assert caught.value.contexts[0].info == CancelInfo(mode="now")
    texts = [event.text for event in received if isinstance(event, TextDelta)]
    assert texts == (["half a "] if streaming else [])
    assert brief(await collect(runner.resume("1")))[-1] == "says done"
