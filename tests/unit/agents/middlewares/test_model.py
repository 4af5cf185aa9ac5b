"""Asking a model again, or another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents import AgentConfigError, Runner, ScriptedModel, get_resume_context, interrupt
from agents.agent import TextDelta
from agents.backoff import doubling
from agents.chat.agent import ChatModelAgent
from agents.core.errors import ModelError
from agents.middlewares.base import CallNext, Middleware, ModelCall
from agents.middlewares.retry import ModelFallbackMiddleware, ModelRetryMiddleware
from agents.models import Turn, call, say
from tests.unit.agents.support import Plain, World, brief, collect, contexts, follow

DOWN = ModelHTTPError(503, "m")
DENIED = ModelHTTPError(401, "m")


class Naps:
    """Does not sleep, and remembers."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def agent(model: object, *middlewares: Middleware) -> ChatModelAgent:
    return ChatModelAgent(name="A", model=model, middlewares=middlewares)  # type: ignore[arg-type]


async def test_e069_a_failing_model_is_asked_again() -> None:
    naps = Naps()
    model = ScriptedModel([DOWN, RuntimeError("cut"), say("here")])

    events = await collect(Runner(agent(model, ModelRetryMiddleware(3, sleep=naps))).query("hi"))

    assert brief(events) == ["says here"]
    assert model.calls == 3
    assert naps.taken == [0.5, 1.0]


async def test_attempts_end() -> None:
    model = ScriptedModel([DOWN, DOWN, say("too late")])
    retry = ModelRetryMiddleware(2, sleep=Naps(), backoff=lambda _: timedelta())

    with pytest.raises(ModelError, match="503"):
        await collect(Runner(agent(model, retry)).query("hi"))
    assert model.calls == 2


@pytest.mark.parametrize("error", [DENIED, UserError("wrong"), AgentConfigError("mistake")])
async def test_what_would_fail_again_is_not_repeated(error: Exception) -> None:
    model = ScriptedModel([error, say("no")])

    with pytest.raises((ModelError, AgentConfigError)):
        await collect(Runner(agent(model, ModelRetryMiddleware(sleep=Naps()))).query("hi"))
    assert model.calls == 1


async def test_others_may_be_worth_an_attempt() -> None:
    model = ScriptedModel([DENIED, say("here")])
    retry = ModelRetryMiddleware(only=lambda _: True, sleep=Naps())

    assert brief(await collect(Runner(agent(model, retry)).query("hi"))) == ["says here"]


def test_waits_double_and_have_a_limit() -> None:
    assert [doubling(n).total_seconds() for n in (1, 2, 3, 20)] == [0.5, 1, 2, 30]


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_stream_that_has_shown_nothing_is_repeated(streaming: bool) -> None:
    model = ScriptedModel([[DOWN], say("one two")])
    runner = Runner(agent(model, ModelRetryMiddleware(sleep=Naps())), streaming=streaming)

    events = await collect(runner.query("hi"))

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (
        "one two" if streaming else ""
    )
    assert brief(events)[-1] == "says one two"


@pytest.mark.parametrize(
    "middleware",
    [ModelRetryMiddleware(sleep=Naps()), ModelFallbackMiddleware([ScriptedModel([say("twice")])])],
)
async def test_a_text_that_people_have_seen_is_not_begun_again(middleware: Middleware) -> None:
    async def stream(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "The sum is "
        raise RuntimeError("connection lost")

    events: list[object] = []
    runner = Runner(agent(FunctionModel(stream_function=stream), middleware), streaming=True)

    with pytest.raises(ModelError, match="connection lost"):
        await follow(runner.query("hi"), events)  # type: ignore[arg-type]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["The sum is "]


async def test_another_model_answers() -> None:
    first, second, third = (ScriptedModel([t]) for t in (DENIED, DOWN, say("third")))

    events = await collect(
        Runner(agent(first, ModelFallbackMiddleware([second, third]))).query("hi")
    )

    assert brief(events) == ["says third"]
    assert [model.calls for model in (first, second, third)] == [1, 1, 1]


async def test_when_all_models_fail_the_last_error_counts() -> None:
    first, second = ScriptedModel([DENIED]), ScriptedModel([DOWN])

    with pytest.raises(ModelError, match="503"):
        await collect(Runner(agent(first, ModelFallbackMiddleware([second]))).query("hi"))


async def test_each_model_is_tried_several_times() -> None:
    first, second = ScriptedModel([DOWN, DOWN]), ScriptedModel([DOWN, say("here")])
    middlewares = [ModelFallbackMiddleware([second]), ModelRetryMiddleware(2, sleep=Naps())]

    events = await collect(Runner(agent(first, *middlewares)).query("hi"))

    assert brief(events) == ["says here"]
    assert (first.calls, second.calls) == (2, 2)


async def test_a_mistake_does_not_fail_over() -> None:
    second = ScriptedModel([say("no")])

    with pytest.raises(AgentConfigError, match="script"):
        await collect(
            Runner(agent(ScriptedModel([]), ModelFallbackMiddleware([second]))).query("hi")
        )
    assert second.calls == 0


class Asks(Middleware):
    """Asks people before each call of the model."""

    entered = 0

    async def around_model(self, call: ModelCall, call_next: CallNext) -> ModelResponse:
        self.entered += 1
        _, has_data, _ = get_resume_context(str)
        if not has_data:
            interrupt("may I?")
        return await call_next(call)


@pytest.mark.parametrize("kind", ["retry", "failover"])
async def test_e271_an_interrupt_is_not_repeated(kind: str) -> None:
    naps, second, asks = Naps(), ScriptedModel([]), Asks()
    outer = (
        ModelRetryMiddleware(5, sleep=naps)
        if kind == "retry"
        else ModelFallbackMiddleware([second])
    )
    world = World([say("done")], options={"middlewares": [outer, asks]})

    (context,) = contexts(await world.run()).values()

    assert asks.entered == 1
    assert naps.taken == []
    assert second.calls == 0
    assert brief(await world.resume({context.id: "yes"})) == ["says done"]


async def test_tools_are_offered_to_the_other_model_too() -> None:
    turns: list[Turn] = [call("t", id="c1"), say("done")]
    second = ScriptedModel(turns)
    first = ScriptedModel([DOWN, DOWN])
    a = ChatModelAgent(
        name="A", model=first, tools=[Plain("t")], middlewares=[ModelFallbackMiddleware([second])]
    )

    events = await collect(Runner(a).query("hi"))

    assert brief(events) == ["calls t#c1", "tool t#c1 ran: t ok {}", "says done"]
    assert second.tools == [("t",), ("t",)]


def test_numbers_and_models_are_checked() -> None:
    with pytest.raises(AgentConfigError, match="at least 1"):
        ModelRetryMiddleware(0)
    with pytest.raises(AgentConfigError, match="fall back"):
        ModelFallbackMiddleware([])
