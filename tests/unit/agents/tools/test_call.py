"""One call from its start to its result: what is noted, told, and counts as failure."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agents.core.address import Address
from agents.core.asking.infos import CallInfo
from agents.core.calls import BreakLoop, Exit, ToolReturn
from agents.core.codec import Json
from agents.core.errors import CheckpointConflictError, CheckpointDecodeError
from agents.core.events import ToolFinished, ToolInterrupted, ToolStarted
from agents.core.observers import RunEvent
from agents.core.scope import StartingCall
from agents.gates.approval import Gate, approval_gate
from agents.memory import MemoryCheckpointStore
from agents.middlewares import Middleware, ToolErrorHandler, ToolRetryMiddleware
from agents.models import call, say
from tests.unit.agents.support import (
    Died,
    Plain,
    World,
    brief,
    collect,
    contexts,
    die,
    follow,
    no,
    yes,
)


class ToolNews:
    """What observers are told of tool calls, one short line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, event: RunEvent) -> None:
        if not isinstance(event, ToolStarted | ToolFinished | ToolInterrupted):
            return
        assert event.checkpoint_id == "1"
        assert event.address == Address.parse(f"agent:A;tool:{event.call.name}:{event.call.id}")
        outcome = f" {event.outcome}" if isinstance(event, ToolFinished) else ""
        self.lines.append(f"{type(event).__name__} {event.call.name}#{event.call.id}{outcome}")


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


async def died_beside(action: ToolReturn) -> tuple[World, MemoryCheckpointStore, Plain]:
    """A run whose process died after the first of two calls had finished."""
    end, boom = Plain("end", lambda _: action), Plain("boom", die)
    calls = [call("end", id="c1"), call("boom", id="c2")]
    store = MemoryCheckpointStore()
    world = World([calls, say("never")], [end, boom], store=store, durability="step")
    world.options["sequential_tools"] = True
    with pytest.raises(Died):
        await world.run()
    boom.body = None
    return world, store, end


async def test_an_action_is_read_from_the_journal() -> None:
    world, _, end = await died_beside(ToolReturn("bye", action=BreakLoop()))

    events = await world.recover()

    assert brief(events)[1] == "tool end#c1 ran: bye"
    assert brief(events)[-1] == "action BreakLoop()"
    assert len(end.calls) == 1


async def test_an_entry_from_before_there_were_actions_is_readable() -> None:
    world, store, _ = await died_beside(ToolReturn("bye"))
    finished = [json.loads(entry) for entry in store._stored["1"].journal][-1]
    assert set(finished) == {"kind", "at", "text", "outcome", "session"}

    assert brief(await world.recover())[-1] == "says never"


async def test_a_damaged_action_is_a_typed_error() -> None:
    world, store, _ = await died_beside(ToolReturn("bye", action=Exit()))
    journal = store._stored["1"].journal
    journal[-1] = journal[-1].replace('"action":{', '"action":{"a":1},"old":{')

    with pytest.raises(CheckpointDecodeError, match="damaged action"):
        await world.recover()


@pytest.mark.parametrize("by", ["raising", "cancelling itself", "a part of it"])
@pytest.mark.parametrize("is_gated", [True, False])
async def test_32_a_tool_that_is_cancelled_by_its_own_code_has_failed(
    by: str, is_gated: bool
) -> None:
    async def cancelled() -> str:
        match by:
            case "raising":
                raise asyncio.CancelledError
            case "cancelling itself":
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.Event().wait()
            case _:
                part = asyncio.ensure_future(asyncio.Event().wait())
                part.cancel()
                await part
        return "never"

    bad, good = Plain("bad", lambda _: cancelled()), Plain("good")
    calls = [call("bad", id="c1"), call("good", id="c2")]
    world = World([calls, say("done")], [approval_gate(bad) if is_gated else bad, good])
    events = await world.run()
    if is_gated:
        asked = contexts(events)["c1"]
        events += await world.resume({asked.id: yes(asked)})

    lines = brief(events)
    assert "tool good#c2 ran: good ok {}" in lines
    (failed,) = [line for line in lines if line.startswith("tool bad")]
    assert failed == (
        "tool bad#c1 failed: The tool failed: ToolError: it was cancelled, and nobody had "
        "stopped the run"
    )
    assert lines[-1] == "says done"


def fail(_: dict[str, Json]) -> str:
    raise ValueError("bad day")


async def test_2_37_an_error_is_a_result_and_the_others_go_on() -> None:
    ok = Plain("ok")
    calls = [call("boom", id="c1"), call("ok", id="c2")]
    world = World([calls, say("done")], [Plain("boom", fail), ok])

    assert brief(await world.run())[1:] == [
        "tool boom#c1 failed: The tool failed: ValueError: bad day",
        "tool ok#c2 ran: ok ok {}",
        "says done",
    ]


async def test_2_40_an_error_beside_a_question_is_a_result_and_the_question_stays() -> None:
    pay = Plain("pay")
    calls = [call("boom", id="c1"), call("pay", id="c2")]
    world = World([calls, say("done")], [Plain("boom", fail), approval_gate(pay)])
    asked = contexts(await world.run())["c2"]

    assert brief(await world.resume({asked.id: yes(asked)})) == [
        "tool pay#c2 ran: pay ok {}",
        "says done",
    ]
    assert "tool-return:The tool failed: ValueError: bad day" in world.last_input


async def test_observers_hear_of_starts_waits_and_results() -> None:
    news = ToolNews()
    pay, look = Plain("pay"), Plain("look")
    calls = [call("pay", id="c1"), call("look", id="c2"), call("gone", id="c3")]
    world = World([calls, say("done")], [approval_gate(pay), look])

    events = await collect(world.runner(observers=[news]).query("hi", checkpoint_id="1"))

    assert sorted(news.lines) == [
        "ToolFinished gone#c3 refused",
        "ToolFinished look#c2 ran",
        "ToolInterrupted pay#c1",
        "ToolStarted look#c2",
        "ToolStarted pay#c1",
    ]
    news.lines.clear()
    asked = contexts(events)["c1"]
    await collect(world.runner(observers=[news]).resume("1", {asked.id: no(asked)}))
    assert news.lines == ["ToolStarted pay#c1", "ToolFinished pay#c1 rejected"]


async def test_observers_hear_nothing_of_what_is_not_touched_or_read_from_a_journal() -> None:
    news = ToolNews()
    calls = [call("a", id="c1"), call("b", id="c2"), call("look", id="c3")]
    a, b = Plain("a"), Plain("b", die)
    world = World([calls, say("done")], [approval_gate(a), approval_gate(b), Plain("look")])
    world.durability = "step"
    asked = contexts(await world.run())
    with pytest.raises(Died):
        await world.resume({asked["c2"].id: yes(asked["c2"])})

    await collect(world.runner(observers=[news]).recover("1"))

    assert news.lines == ["ToolInterrupted b#c2"]  # the question whether it ran; nothing started


@pytest.mark.parametrize(
    ("text", "kept"),
    [("a\ud83d", "a\ufffd"), ("\ud83d\ude00", "\U0001f600"), ("\udc00b", "\ufffdb"), ("é", "é")],
)
async def test_halves_of_surrogate_pairs_are_replaced(text: str, kept: str) -> None:
    look = Plain("look", lambda _: text)
    store = MemoryCheckpointStore()
    world = World([call("look", id="c1"), RuntimeError("down")], [look], store=store)
    world.durability = "step"
    received: list[object] = []

    with pytest.raises(Exception, match="down"):
        await follow(world.runner().query("hi", checkpoint_id="1"), received)  # type: ignore[arg-type]

    assert brief(received)[-1] == f"tool look#c1 ran: {kept}"  # type: ignore[arg-type]
    assert json.loads(store._stored["1"].journal[-1])["text"] == kept


async def test_what_is_no_text_is_written_as_json() -> None:
    class Odd(Plain):
        async def call(self, arguments: dict[str, Json]) -> str:
            return {"n": 1}  # type: ignore[return-value]  # the mistake that is tested

    world = World([call("odd", id="c1"), say("done")], [Odd("odd")])

    assert brief(await world.run())[1] == 'tool odd#c1 ran: {"n":1}'


@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_what_ends_the_process_goes_before_what_ends_the_run(order: str) -> None:
    def conflict(_: dict[str, Json]) -> str:
        raise CheckpointConflictError("1")

    bodies = {"a": conflict, "b": die}
    calls = [call(name, id=name) for name in order]
    world = World([calls], [Plain(name, body) for name, body in bodies.items()])

    with pytest.raises(Died):
        await world.run()


async def test_a_call_whose_task_is_cancelled_by_somebody_else_ends_the_run() -> None:
    """As a loop does that shuts down: it cancels every task there is."""

    async def shut_down() -> str:
        for task in asyncio.all_tasks():
            if getattr(task.get_coro(), "__name__", "") == "execute":
                task.cancel()
        await asyncio.Event().wait()
        return "never"

    world = World([call("t", id="c1"), say("done")], [Plain("t", lambda _: shut_down())])

    with pytest.raises(asyncio.CancelledError):
        await world.run()


class Unsure:
    """A look before the start that fails the first time."""

    def __init__(self) -> None:
        self.faults: list[Exception] = [ConnectionError("reset")]

    async def __call__(self, _: StartingCall) -> dict[str, Json]:
        if self.faults:
            raise self.faults.pop()
        return {}


@pytest.mark.parametrize(
    "middlewares", [[], [ToolErrorHandler()], [ToolRetryMiddleware(sleep=no_sleep)]]
)
async def test_an_error_before_the_start_is_no_result_of_the_tool(
    middlewares: list[Middleware],
) -> None:
    """R3: the run ends with it, and the same answer lets the call run when it is repeated."""
    pay = Plain("pay")
    world = World([call("pay", id="c1"), say("done")], [approval_gate(pay)])
    world.options["middlewares"] = middlewares
    world.before_start = Unsure()
    waits = contexts(await world.run())["c1"]

    with pytest.raises(ConnectionError):
        await world.resume({waits.id: yes(waits)})
    assert pay.calls == []

    assert brief(await world.recover())[-1] == "says done"
    assert len(pay.calls) == 1


async def test_a_gate_that_fails_after_the_answer_keeps_it() -> None:
    faults: list[Exception] = [ConnectionError("reset")]

    class Failing(Gate):
        def _wanted(self, info: CallInfo, answer: object, arguments: dict[str, Json]) -> Any:
            if faults:
                raise faults.pop()
            return super()._wanted(info, answer, arguments)

    pay = Plain("pay")
    world = World([call("pay", id="c1"), say("done")], [Failing(pay, "approval")])
    waits = contexts(await world.run())["c1"]

    with pytest.raises(ConnectionError):
        await world.resume({waits.id: yes(waits)})
    assert pay.calls == []

    assert brief(await world.resume({waits.id: yes(waits)}))[-1] == "says done"
    assert len(pay.calls) == 1
