"""Conformance scenarios, by number: batches of calls, session values, stored values."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from agents import (
    AgentEvent,
    InterruptEvent,
    ResumeParams,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    session_values,
    stateful_interrupt,
)
from agents.core.codec import Json
from agents.models import Turn, call, say
from tests.unit.agents.support import (
    Plain,
    World,
    brief,
    collect,
    contexts,
    yes,
)


def batch_world() -> tuple[World, dict[str, Plain]]:
    tools = {name: Plain(name) for name in ("a", "ok", "b")}
    script: list[Turn] = [
        [call("a", {"x": 1}, id="c1"), call("ok", {"x": 2}, id="c2"), call("b", {"x": 3}, id="c3")],
        say("done"),
    ]
    gated = [approval_gate(tools["a"]), tools["ok"], approval_gate(tools["b"])]
    return World(script, gated), tools


def counts(tools: dict[str, Plain]) -> dict[str, int]:
    return {name: len(tool.calls) for name, tool in tools.items()}


@pytest.mark.parametrize("is_sequential", [False, True])
async def test_34_40_a_batch_asks_once_for_all_in_call_order(is_sequential: bool) -> None:
    world, tools = batch_world()
    world.options["sequential_tools"] = is_sequential

    events = await world.run()

    assert brief(events) == [
        "calls a#c1, ok#c2, b#c3",
        'tool ok#c2 ran: ok ok {"x": 2}',
        "INT agent:A;tool:a:c1, agent:A;tool:b:c3",
    ]
    assert isinstance(events[-1], InterruptEvent)
    first, two = events[-1].contexts
    assert first.parent is two.parent
    assert counts(tools) == {"a": 0, "ok": 1, "b": 0}


async def test_43_44_call_ids_are_made_unique() -> None:
    pay = Plain("pay")
    parts = [call("pay", {"x": n}, id="dup") for n in (1, 2)]
    empty = call("pay", {"x": 3}, id="e")
    empty.tool_call_id = ""
    world = World([[*parts, empty], say("done")], [approval_gate(pay)])

    asked = contexts(await world.run())
    assert list(asked) == ["dup", "dup-2", "call"]
    events: list[AgentEvent] = []
    for call_id in ("dup-2", "call", "dup"):
        events = await world.resume({asked[call_id].id: yes(asked[call_id])})

    assert pay.calls == [{"x": 2}, {"x": 3}, {"x": 1}]
    assert brief(events)[-1] == "says done"
    assert [line for line in world.last_input if "ok" in line] == [
        f'tool-return:pay ok {{"x": {n}}}' for n in (1, 2, 3)
    ]


async def test_145_session_values_are_shared_stored_and_overridden() -> None:
    seen: list[dict[str, object]] = []

    def body(_: dict[str, Json]) -> str:
        session_values()["k"] = Decimal("1.50")
        return "set"

    def look(_: dict[str, Json]) -> str:
        seen.append(dict(session_values()))
        return "seen"

    tools = [Plain("put", body), approval_gate(Plain("look", look))]
    world = World([[call("put", id="c1"), call("look", id="c2")], say("done")], tools)
    context = contexts(await world.run(session_values={"u": "U1", "n": 5}))["c2"]
    runner = world.runner()
    params = ResumeParams(targets={context.id: yes(context)})
    await collect(runner.resume_with_params("1", params, session_values={"u": "U2"}))

    assert seen == [{"u": "U2", "n": 5, "k": Decimal("1.50")}]


VALUES = [
    "text",
    7,
    1.5,
    float("inf"),
    True,
    b"\x00\xff",
    ["a", "b"],
    {"a": {"$type": "forged", "value": [1, None]}},
    (1, ("x", [2])),
    Decimal("0.10"),
    datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
async def test_146_149_values_come_back_as_they_were(value: object) -> None:
    seen: list[object] = []

    def body(arguments: dict[str, Json]) -> str:
        was_interrupted, _, state = get_interrupt_state(object)
        if not was_interrupted:
            stateful_interrupt(value, value)
        seen.extend([state, get_resume_context(object)[2], session_values()["v"]])
        return "ok"

    world = World([call("ask", id="c1"), say("done")], [Plain("ask", body)])
    await world.run(session_values={"v": value})
    (context,) = await world.pending()
    await world.resume({context.id: value})

    assert context.info == value
    assert seen == [value, value, value]
    assert [type(answer) for answer in seen] == [type(value)] * 3
