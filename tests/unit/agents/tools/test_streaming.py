"""Tools that yield: their pieces are told while they run, and all together are the result."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator

import pytest

from agents.agent import AgentEvent, InterruptEvent, ToolDelta, ToolEvent
from agents.core.calls import ToolReturn
from agents.core.cancel import CancelInfo, CancelToken
from agents.core.codec import Json
from agents.core.component.context import stream_text
from agents.core.component.state import address_segment, get_interrupt_state, get_resume_context
from agents.core.errors import CheckpointConflictError, RunCancelledError, ToolError
from agents.core.interrupt import stateful_interrupt
from agents.core.observers import ToolOutcome
from agents.core.scope import current_address
from agents.core.tools import Tool
from agents.gates.decorator import tool
from agents.models import call, say
from agents.runs.answers import ResumeParams
from agents.tools.function import _AHEAD, _pieces
from tests.unit.agents.support import Plain, World, brief, collect, contexts, yes

Streams = Callable[[], AsyncIterator[str]] | Callable[[], Iterator[str]]


@tool
async def count(upto: int) -> AsyncIterator[str]:
    """Count."""
    for number in range(1, upto + 1):
        yield f"{number} "


@tool
def spell(word: str) -> Iterator[str]:
    """Spell."""
    yield from word


def one_call(made: Tool, arguments: dict[str, Json] | None = None) -> World:
    name = made.definition.name
    return World([call(name, arguments, id="c1"), say("done")], [made])


async def streamed(world: World) -> list[AgentEvent]:
    return await collect(world.runner(streaming=True).query("hi", checkpoint_id="1"))


def of_tools(events: list[AgentEvent]) -> list[str]:
    return [
        line
        for event, line in zip(events, brief(events), strict=True)
        if isinstance(event, ToolDelta | ToolEvent | InterruptEvent)
    ]


@pytest.mark.parametrize(
    ("made", "arguments", "pieces"),
    [(count, {"upto": 3}, ["1 ", "2 ", "3 "]), (spell, {"word": "abc"}, ["a", "b", "c"])],
    ids=["async", "in a thread"],
)
async def test_pieces_are_told_and_together_are_the_result(
    made: Tool, arguments: dict[str, Json], pieces: list[str]
) -> None:
    name = made.definition.name
    events = await streamed(one_call(made, arguments))

    assert of_tools(events) == [
        *(f"piece {name}#c1 {piece}" for piece in pieces),
        f"tool {name}#c1 ran: {''.join(pieces)}",
    ]
    keys = {event.key for event in events if isinstance(event, ToolDelta | ToolEvent)}
    assert keys == {f"agent:A;tool:{name}:c1/r"}

    plain = await one_call(made, arguments).run()
    assert of_tools(plain) == [f"tool {name}#c1 ran: {''.join(pieces)}"]


async def test_pieces_need_not_be_texts() -> None:
    @tool
    async def odd() -> AsyncIterator[object]:
        yield 1
        yield None
        yield {"a": "b"}

    @tool
    async def nothing() -> AsyncIterator[str]:
        for piece in "":
            yield piece

    assert await odd.call({}) == '1{"a":"b"}'
    assert await nothing.call({}) == "done"


async def test_a_function_may_give_a_generator_or_a_return_of_its_own() -> None:
    @tool
    def later() -> Iterator[str]:
        return (piece for piece in "ab")

    @tool
    async def own() -> ToolReturn:
        return ToolReturn("nobody came", ToolOutcome.EXPIRED)

    assert await later.call({}) == "ab"
    assert of_tools(await one_call(own).run()) == ["tool own#c1 expired: nobody came"]


async def test_a_generator_stays_in_one_thread_and_one_context() -> None:
    threads, addresses = set(), []

    @tool
    def where() -> Iterator[str]:
        with address_segment("part", "p"):
            for number in range(200):
                threads.add(threading.get_ident())
                yield str(number % 10)
            addresses.append(str(current_address()))

    events = await streamed(one_call(where))

    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert addresses == ["agent:A;tool:where:c1;part:p"]
    assert sum(isinstance(event, ToolDelta) for event in events) == 200


async def test_a_plain_function_may_pass_on_pieces_from_its_thread() -> None:
    @tool
    def work() -> str:
        stream_text("half ")
        stream_text("done\ud83d")
        return "half done"

    assert of_tools(await streamed(one_call(work))) == [
        "piece work#c1 half ",
        "piece work#c1 done\ufffd",
        "tool work#c1 ran: half done",
    ]
    assert of_tools(await one_call(work).run()) == ["tool work#c1 ran: half done"]


async def test_59_a_stream_behind_a_gate_and_the_checkpoint_says_whether_to_stream() -> None:
    ran: list[int] = []

    @tool(gate="approval")
    async def pay(amount: int) -> AsyncIterator[str]:
        ran.append(amount)
        yield "paid "
        yield str(amount)

    ok = Plain("ok")
    calls = [call("pay", {"amount": 5}, id="c1"), call("ok", id="c2")]
    world = World([calls, say("all is done")], [pay, ok])
    events = await streamed(world)
    assert of_tools(events) == ["tool ok#c2 ran: ok ok {}", "INT agent:A;tool:pay:c1"]
    asked = contexts(events)["c1"]

    resumed = await world.resume({asked.id: yes(asked)})  # by a runner that does not stream

    assert brief(resumed) == [
        "piece pay#c1 paid ",
        "piece pay#c1 5",
        "tool pay#c1 ran: paid 5",
        "delta all ",
        "delta is ",
        "delta done",
        "says all is done",
    ]
    assert (ran, len(ok.calls)) == ([5], 1)


def async_stream(fail: Exception) -> Tool:
    @tool(name="read")
    async def read() -> AsyncIterator[str]:
        yield "one "
        yield "two"
        raise fail

    return read


def thread_stream(fail: Exception) -> Tool:
    @tool(name="read")
    def read() -> Iterator[str]:
        yield "one "
        yield "two"
        raise fail

    return read


@pytest.mark.parametrize("make", [async_stream, thread_stream])
@pytest.mark.parametrize(
    ("fail", "text"), [(OSError("cut"), "cut"), (ToolError("no"), "no"), (KeyError(), "KeyError")]
)
async def test_61_an_error_in_the_middle_comes_after_what_came_before_it(
    make: Callable[[Exception], Tool], fail: Exception, text: str
) -> None:
    assert of_tools(await streamed(one_call(make(fail)))) == [
        "piece read#c1 one ",
        "piece read#c1 two",
        f"piece read#c1 \n[tool error] {text}",
        f"tool read#c1 failed: one two\n[tool error] {text}",
    ]
    plain = await one_call(make(fail)).run()
    assert of_tools(plain) == [f"tool read#c1 failed: one two\n[tool error] {text}"]


async def test_an_error_before_the_first_piece_is_an_error_as_any_other() -> None:
    @tool
    async def read() -> AsyncIterator[str]:
        for piece in pieces():
            yield piece

    def pieces() -> Iterator[str]:
        raise OSError("closed")

    assert of_tools(await streamed(one_call(read))) == [
        "tool read#c1 failed: The tool failed: OSError: closed"
    ]


async def test_an_error_of_the_runtime_in_the_middle_ends_the_run() -> None:
    with pytest.raises(CheckpointConflictError):
        await streamed(one_call(async_stream(CheckpointConflictError("1"))))


def asks_async(begun: list[str]) -> Tool:
    @tool(name="read")
    async def read() -> AsyncIterator[str]:
        begun.append("async")
        yield "partial "
        _, _, state = get_interrupt_state(str)
        is_target, _, answer = get_resume_context(str)
        if not is_target:
            stateful_interrupt("go on?", "kept")
        yield f"{state} {answer}"

    return read


def asks_in_a_thread(begun: list[str]) -> Tool:
    @tool(name="read")
    def read() -> Iterator[str]:
        begun.append("thread")
        yield "partial "
        _, _, state = get_interrupt_state(str)
        is_target, _, answer = get_resume_context(str)
        if not is_target:
            stateful_interrupt("go on?", "kept")
        yield f"{state} {answer}"

    return read


@pytest.mark.parametrize("make", [asks_async, asks_in_a_thread])
@pytest.mark.parametrize("durability", ["step", "interrupt"])
async def test_67_an_interrupt_in_the_middle_of_a_stream_is_one_interrupt(
    durability: str, make: Callable[[list[str]], Tool]
) -> None:
    begun: list[str] = []
    world = one_call(make(begun))
    world.durability = durability

    events = await streamed(world)

    assert of_tools(events) == ["piece read#c1 partial ", "INT agent:A;tool:read:c1"]
    (asked,) = await world.pending()
    assert asked.info == "go on?"
    resumed = await world.resume({asked.id: "yes"})
    assert of_tools(resumed) == [
        "piece read#c1 partial ",
        "piece read#c1 kept yes",
        "tool read#c1 ran: partial kept yes",
    ]
    assert len(begun) == 2
    assert world.last_input[-1] == "tool-return:partial kept yes"


async def test_67_without_streaming_too() -> None:
    world = one_call(asks_async([]))

    assert of_tools(await world.run()) == ["INT agent:A;tool:read:c1"]


async def test_pieces_of_calls_side_by_side_are_told_apart() -> None:
    turns = [asyncio.Event(), asyncio.Event()]

    def stream(own: int) -> Tool:
        async def body() -> AsyncIterator[str]:
            for piece in "ab":
                await turns[own].wait()
                turns[own].clear()
                turns[1 - own].set()
                yield piece

        return tool(name=f"t{own}")(body)

    turns[0].set()
    calls = [call("t0", id="c0"), call("t1", id="c1")]
    world = World([calls, say("done")], [stream(0), stream(1)])

    lines = of_tools(await streamed(world))

    assert [line for line in lines if line.startswith("piece")] == [
        "piece t0#c0 a",
        "piece t1#c1 a",
        "piece t0#c0 b",
        "piece t1#c1 b",
    ]
    assert sorted(lines[-2:]) == ["tool t0#c0 ran: ab", "tool t1#c1 ran: ab"]


async def test_a_stopped_stream_is_closed_and_begins_again() -> None:
    closed, begun, is_quick = [], [], False

    @tool
    async def read() -> AsyncIterator[str]:
        begun.append(1)
        try:
            yield "one "
            if not is_quick:
                await asyncio.Event().wait()
            yield "two"
        finally:
            closed.append(1)

    world, token, received = one_call(read), CancelToken(), []
    events = world.runner(streaming=True).query("hi", checkpoint_id="1", cancel=token)

    async def stop_at_the_first_piece() -> None:
        async for event in events:
            received.append(event)
            if isinstance(event, ToolDelta):
                token.cancel()

    with pytest.raises(RunCancelledError):
        await stop_at_the_first_piece()

    assert of_tools(received) == ["piece read#c1 one "]
    (context,) = await world.pending()
    assert isinstance(context.info, CancelInfo)
    assert (begun, closed) == ([1], [1])
    is_quick = True
    again = await collect(world.runner().resume_with_params("1", ResumeParams()))
    assert of_tools(again)[-1] == "tool read#c1 ran: one two"


async def test_a_generator_in_a_thread_that_nobody_reads_stops_at_its_next_piece() -> None:
    closed, pieces = threading.Event(), []

    @tool
    def endless() -> Iterator[str]:
        try:
            while True:
                pieces.append(1)
                yield "x"
        finally:
            closed.set()

    async with contextlib.aclosing(
        one_call(endless).runner(streaming=True).query("hi", checkpoint_id="1")
    ) as events:
        async for event in events:
            if isinstance(event, ToolDelta):
                break

    assert await asyncio.to_thread(closed.wait, 10)


async def test_a_generator_in_a_thread_never_runs_far_ahead() -> None:
    ahead: list[int] = []
    taken = 0
    is_far = threading.Event()

    def fast() -> Generator[str, None, None]:
        for made in range(500):
            ahead.append(made - taken)
            if made - taken >= _AHEAD:
                is_far.set()
            yield "x"

    pieces = _pieces(fast())
    async for _ in pieces:
        taken += 1
        if taken == 1:  # whoever reads stands still: the generator comes to its limit, and waits
            assert await asyncio.to_thread(is_far.wait, 10)

    assert taken == 500
    assert max(ahead) <= _AHEAD + 1
