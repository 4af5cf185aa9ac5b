"""Middlewares around tools: gates, safe tools, and trying again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from agents import (
    AgentConfigError,
    InterruptEvent,
    ReviewEditInfo,
    Runner,
    ScriptedModel,
    ToolDelta,
    ToolOutcome,
    ToolReturn,
    approval_gate,
    follow_up_tool,
    get_resume_context,
    interrupt,
    review_edit_gate,
    tool,
)
from agents.chat.agent import ChatModelAgent
from agents.core.codec import Json
from agents.core.errors import CheckpointConflictError, ResumeError
from agents.core.interrupt import InterruptSignal
from agents.core.tools import Tool
from agents.middlewares.base import Middleware
from agents.middlewares.gates import approval_middleware, review_middleware
from agents.middlewares.retry import ToolRetryMiddleware
from agents.middlewares.tools import ToolErrorHandler
from agents.models import call, say
from agents.tools import stream_text
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes


async def no_sleep(seconds: float) -> None:
    assert seconds >= 0


def fails(*errors: BaseException | None) -> Callable[[dict[str, Json]], object]:
    """Raise one after the other; None succeeds."""
    left = list(errors)

    def body(_: dict[str, Json]) -> object:
        error = left.pop(0)
        if error is not None:
            raise error
        return "worked"

    return body


def a_world(tools: list[Tool], *middlewares: Middleware, name: str = "t") -> World:
    return World([call(name, id="c1"), say("done")], tools, options={"middlewares": middlewares})


@pytest.mark.parametrize("is_inside", [True, False])
async def test_e058_safe_and_approval_in_both_orders(is_inside: bool) -> None:
    middlewares = [approval_middleware("pay"), ToolErrorHandler()]
    pay = Plain("pay", fails(RuntimeError("exit 1")))
    world = a_world([pay], *(middlewares if is_inside else reversed(middlewares)), name="pay")

    context = contexts(await world.run())["c1"]
    events = await world.resume({context.id: yes(context)})

    assert brief(events) == ["tool pay#c1 failed: [tool error] exit 1", "says done"]
    assert len(pay.calls) == 1


async def test_e061_an_error_in_the_middle_of_a_stream() -> None:
    def body(_: dict[str, Json]) -> str:
        stream_text("half ")
        stream_text("a result")
        raise RuntimeError("pipe broke")

    agent = ChatModelAgent(
        name="A",
        model=ScriptedModel([call("t", id="c1"), say("done")]),
        tools=[Plain("t", body)],
        middlewares=[ToolErrorHandler()],
    )

    events = await collect(Runner(agent, streaming=True).query("hi"))

    pieces = [event.text for event in events if isinstance(event, ToolDelta)]
    assert pieces == ["half ", "a result", "\n[tool error] pipe broke"]
    assert "tool t#c1 failed: half a result\n[tool error] pipe broke" in brief(events)


async def test_e061_nobody_reads_the_stream() -> None:
    def body(_: dict[str, Json]) -> str:
        stream_text("half")
        raise ValueError

    events = await a_world([Plain("t", body)], ToolErrorHandler(["t"])).run()

    assert brief(events)[1] == "tool t#c1 failed: half\n[tool error] ValueError"


@pytest.mark.parametrize("error", [CheckpointConflictError("1"), AgentConfigError("no")])
async def test_what_ends_a_run_is_no_result(error: Exception) -> None:
    with pytest.raises(type(error)):
        await a_world([Plain("t", fails(error))], ToolErrorHandler()).run()


async def test_e056_an_interrupt_passes_safe_tools_and_waits_for_a_real_answer() -> None:
    world = World(
        [call("ask_people", {"questions": ["Where?"]}, id="c1"), say("done")],
        [follow_up_tool()],
        options={"middlewares": [ToolErrorHandler()]},
    )
    context = contexts(await world.run())["c1"]

    with pytest.raises(ResumeError):
        await world.resume({context.id: ""})
    events = await world.resume({context.id: "Berlin"})

    assert brief(events)[0] == "tool ask_people#c1 answered: Berlin"


@pytest.mark.parametrize("wrapper", [ToolErrorHandler(), ToolRetryMiddleware(5, sleep=no_sleep)])
async def test_a_swallowed_question_stays_refused(wrapper: Middleware) -> None:
    def body(_: dict[str, Json]) -> str:
        with contextlib.suppress(InterruptSignal):
            interrupt("sure?")
        raise RuntimeError("went on")

    swallows = Plain("t", body)

    events = await a_world([swallows], wrapper).run()

    assert "caught the interrupt signal" in brief(events)[1]
    assert len(swallows.calls) == 1


async def test_the_last_error_counts_and_safe_tools_see_it() -> None:
    flaky = Plain("t", fails(OSError("one"), OSError("two")))

    events = await a_world(
        [flaky], ToolErrorHandler(), ToolRetryMiddleware(2, sleep=no_sleep)
    ).run()

    assert brief(events)[1] == "tool t#c1 failed: [tool error] two"


async def test_only_some_errors_and_some_tools_are_tried_again() -> None:
    flaky = Plain("t", fails(ValueError("bad")))
    await a_world([flaky], ToolRetryMiddleware(3, only=OSError, sleep=no_sleep)).run()
    assert len(flaky.calls) == 1

    other = Plain("t", fails(OSError("net")))
    await a_world([other, Plain("u")], ToolRetryMiddleware(3, tools="u", sleep=no_sleep)).run()
    assert len(other.calls) == 1


async def test_what_ends_a_run_is_not_tried_again() -> None:
    flaky = Plain("t", fails(CheckpointConflictError("1"), None))

    with pytest.raises(CheckpointConflictError):
        await a_world([flaky], ToolRetryMiddleware(3, sleep=no_sleep)).run()
    assert len(flaky.calls) == 1


async def test_e271_a_question_is_not_tried_again() -> None:
    def body(arguments: dict[str, Json]) -> object:
        _, has_data, data = get_resume_context(str)
        if not has_data:
            interrupt("which?")
        return f"got {data}"

    asks = Plain("t", body)
    world = a_world([asks], ToolRetryMiddleware(5, sleep=no_sleep))

    context = contexts(await world.run())["c1"]
    assert len(asks.calls) == 1
    events = await world.resume({context.id: "blue"})

    assert brief(events)[0] == "tool t#c1 ran: got blue"


@pytest.mark.parametrize("idempotent", [True, False])
async def test_an_answer_is_found_again_by_the_next_attempt_if_that_is_harmless(
    idempotent: bool,
) -> None:
    left = [OSError("net")]

    def body(arguments: dict[str, Json]) -> object:
        _, has_data, data = get_resume_context(str)
        if not has_data:
            interrupt("which?")
        if left:
            raise left.pop()
        return f"got {data}"

    world = a_world(
        [Plain("t", body, idempotent=idempotent)], ToolRetryMiddleware(2, sleep=no_sleep)
    )
    context = contexts(await world.run())["c1"]

    events = await world.resume({context.id: "blue"})

    failed = "tool t#c1 failed: The tool failed: OSError: net"
    assert brief(events)[0] == ("tool t#c1 ran: got blue" if idempotent else failed)


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("idempotent", [True, False])
async def test_a_started_gated_call_runs_again_only_if_that_is_harmless(
    is_inside: bool, idempotent: bool
) -> None:
    pay = Plain("pay", fails(OSError("net"), None), idempotent=idempotent)
    middlewares = [approval_middleware("pay"), ToolRetryMiddleware(3, sleep=no_sleep)]
    world = a_world([pay], *(middlewares if is_inside else reversed(middlewares)), name="pay")
    context = contexts(await world.run())["c1"]

    events = await world.resume({context.id: yes(context)})

    outcome = "ran: worked" if idempotent else "failed: The tool failed: OSError: net"
    assert brief(events) == [f"tool pay#c1 {outcome}", "says done"]
    assert len(pay.calls) == (2 if idempotent else 1)


async def test_a_piece_of_a_result_is_not_streamed_twice() -> None:
    def body(_: dict[str, Json]) -> str:
        stream_text("half")
        raise OSError("net")

    halves = Plain("t", body)
    await a_world([halves], ToolRetryMiddleware(3, sleep=no_sleep)).run()

    assert len(halves.calls) == 1


async def test_review_as_middleware_takes_edits() -> None:
    pay = Plain("pay")
    world = World(
        [call("pay", {"x": 1}, id="c1"), say("done")],
        [pay],
        options={"middlewares": [review_middleware()]},
    )
    context = contexts(await world.run())["c1"]
    assert isinstance(context.info, ReviewEditInfo)

    await world.resume({context.id: context.info.edit({"x": 2}, by="U1")})

    assert pay.calls == [{"x": 2}]


def gates_of(*middlewares: Middleware, tools: list[Tool]) -> dict[str, tuple[str, ...]]:
    agent = ChatModelAgent(name="A", model=ScriptedModel([]), tools=tools, middlewares=middlewares)
    return {name: spec.definition.gates for name, spec in agent._tools.items()}


def test_all_tools_are_gated_unless_they_are_excepted() -> None:
    tools: list[Tool] = [
        Plain("pay"),
        approval_gate(Plain("send")),
        review_edit_gate(Plain("edit")),
        Plain("look"),
    ]

    assert gates_of(approval_middleware(except_for=["look"]), tools=tools) == {
        "pay": ("approval",),
        "send": ("approval",),
        "edit": ("approval", "review"),
        "look": (),
    }


def test_a_rule_picks_tools_and_a_name_asks_twice() -> None:
    tools: list[Tool] = [approval_gate(Plain("send")), Plain("look", idempotent=True), Plain("x")]

    assert gates_of(approval_middleware(lambda spec: not spec.idempotent), tools=tools) == {
        "send": ("approval",),
        "look": (),
        "x": ("approval",),
    }
    assert gates_of(approval_middleware("send"), tools=tools)["send"] == ("approval", "approval")


@pytest.mark.parametrize(
    "make",
    [
        lambda: approval_middleware("pya"),
        lambda: approval_middleware(["pay", "pya"]),
        lambda: review_middleware("*", except_for=["pya"]),
        lambda: ToolErrorHandler(["pya"]),
        lambda: ToolRetryMiddleware(tools=["pya"]),
    ],
)
def test_a_misspelled_name_is_a_mistake(make: Callable[[], Middleware]) -> None:
    with pytest.raises(AgentConfigError, match="names 'pya', and there is no such tool"):
        gates_of(make(), tools=[Plain("pay")])


@pytest.mark.parametrize("make", [lambda: approval_middleware([]), lambda: review_middleware(())])
def test_a_gate_around_nothing_is_a_mistake(make: Callable[[], Middleware]) -> None:
    with pytest.raises(AgentConfigError, match="names no tool"):
        make()
    with pytest.raises(AgentConfigError, match="at least 1"):
        ToolRetryMiddleware(0)


def test_a_gate_that_names_a_tool_needs_tools() -> None:
    with pytest.raises(AgentConfigError, match="tools are: none"):
        gates_of(approval_middleware("pay"), tools=[])


async def test_a_person_edits_against_the_tool_behind_the_middlewares() -> None:
    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    agent = ChatModelAgent(
        name="A",
        model=ScriptedModel([]),
        tools=[pay],
        middlewares=[review_middleware(), ToolErrorHandler(), ToolRetryMiddleware()],
    )

    assert agent.validate_call("pay", {"amount": 5}) == {"amount": 5}
    assert agent._tools["pay"].describe({"amount": 5}).title == "Pay"
    assert set(agent.components()) == {("tool", "pay")}


async def test_outcomes_pass_wrappers() -> None:
    kept = Plain("t", lambda _: ToolReturn("nobody", ToolOutcome.EXPIRED))

    events = await a_world([kept], ToolErrorHandler(), ToolRetryMiddleware(sleep=no_sleep)).run()

    assert brief(events)[1] == "tool t#c1 expired: nobody"
    assert not isinstance(events[-1], InterruptEvent)
