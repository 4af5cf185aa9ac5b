"""The conformance scenarios, by number, with the results that our decisions ask for."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pydantic_ai.messages import ModelResponse

from agents import (
    AgentEvent,
    ApprovalInfo,
    ApprovalResult,
    InterruptEvent,
    MemoryCheckpointStore,
    ResumeDataError,
    ResumeParams,
    Runner,
    approval_gate,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    session_values,
    stateful_interrupt,
)
from agents.core.checkpoint import CheckpointStatus, StoredCheckpoint
from agents.core.codec import Json
from agents.core.errors import (
    CheckpointConflictError,
    CheckpointDecodeError,
    CheckpointVersionError,
    NoCheckpointStoreError,
    UnknownInterruptError,
)
from agents.models import call, say
from tests.unit.agents.support import (
    AwayStore,
    CountingStore,
    Plain,
    World,
    brief,
    collect,
    contexts,
    follow,
    pay_world,
    yes,
)


async def test_1_an_approval_interrupts() -> None:
    world, pay = pay_world()
    store = world.store = CountingStore()

    events = await world.run()

    assert brief(events) == ["calls pay#c1", "INT agent:A;tool:pay:c1"]
    context = contexts(events)["c1"]
    assert isinstance(context.info, ApprovalInfo)
    assert (context.info.tool_name, context.info.arguments) == ("pay", {"x": 1})
    assert context.is_root_cause
    assert str(uuid.UUID(context.id)) == context.id
    assert context.parent is not None
    assert (str(context.parent.address), context.parent.is_root_cause) == ("agent:A", False)
    assert context.parent.parent is None
    assert all((e.agent_name, e.run_path) == ("A", ("A",)) for e in events)
    assert (world.models[0].calls, len(pay.calls), len(store.saved)) == (1, 0, 1)


async def test_2_an_approved_call_runs_and_nothing_is_told_twice() -> None:
    world, pay = pay_world()
    context = contexts(await world.run())["c1"]

    events = await world.resume({context.id: yes(context)})

    assert brief(events) == ['tool pay#c1 ran: pay ok {"x": 1}', "says done"]
    assert pay.calls == [{"x": 1}]
    assert world.last_input == ["user-prompt:hi", "tool-call:", 'tool-return:pay ok {"x": 1}']


async def test_7_an_answered_id_is_unknown() -> None:
    world, pay = pay_world(call("pay", {}, id="c1"), call("pay", {}, id="c2"), say("done"))
    first = contexts(await world.run())["c1"]
    second = contexts(await world.resume({first.id: yes(first)}))["c2"]

    with pytest.raises(UnknownInterruptError, match=second.id):
        await world.resume({first.id: yes(first)})

    assert len(pay.calls) == 1
    assert [c.id for c in await world.pending()] == [second.id]


async def test_8_without_answers_nothing_runs_and_ids_stay() -> None:
    world, _ = pay_world()
    store = world.store = CountingStore()
    context = contexts(await world.run())["c1"]

    events = await world.resume({})

    assert brief(events) == ["INT agent:A;tool:pay:c1"]
    assert contexts(events)["c1"].id == context.id
    assert len(store.saved) == 1


async def test_8_a_plain_resume_enters_all_and_asks_again_with_new_ids() -> None:
    world, pay = pay_world()
    context = contexts(await world.run())["c1"]

    again = contexts(await collect(world.runner().resume("1")))["c1"]

    assert again.id != context.id
    assert again.info == context.info
    assert pay.calls == []


async def test_14_without_a_store_a_run_interrupts_and_cannot_be_resumed() -> None:
    world, _ = pay_world()
    runner = Runner(world.agent())

    events = await collect(runner.query("hi"))

    assert brief(events)[-1] == "INT agent:A;tool:pay:c1"
    with pytest.raises(NoCheckpointStoreError):
        await collect(runner.resume("1"))


async def test_an_id_of_a_run_needs_a_store() -> None:
    world, _ = pay_world()

    with pytest.raises(NoCheckpointStoreError, match="checkpoint_store"):
        await collect(Runner(world.agent()).query("hi", checkpoint_id="1"))


async def test_16_what_cannot_be_stored_is_not_asked() -> None:
    world, _ = pay_world()
    world.store = AwayStore("save")
    seen: list[AgentEvent] = []

    with pytest.raises(OSError, match="store down"):
        await follow(world.runner().query("hi", checkpoint_id="1"), seen)

    assert brief(seen) == ["calls pay#c1"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", CheckpointDecodeError),
        ("[]", CheckpointDecodeError),
        ('{"schema":1}', CheckpointDecodeError),
        ('{"schema":4}', CheckpointVersionError),
        ("{}", CheckpointVersionError),
    ],
)
async def test_17_a_damaged_checkpoint_is_a_typed_error(text: str, error: type[Exception]) -> None:
    world, _ = pay_world()
    store = world.store = MemoryCheckpointStore()
    await store.save("1", text, status=CheckpointStatus.PENDING, expected_version=0)

    with pytest.raises(error):
        await world.resume({})


async def test_20_two_runs_with_one_call_id_are_apart() -> None:
    world, pay = pay_world(
        call("pay", {"x": 1}, id="c1"), call("pay", {"x": 2}, id="c1"), say("done")
    )
    first = contexts(await world.run("s1"))["c1"]
    two = contexts(await world.run("s2"))["c1"]

    with pytest.raises(UnknownInterruptError):
        await world.resume({first.id: yes(first)}, "s2")
    with pytest.raises(ResumeDataError):
        await world.resume({two.id: yes(first)}, "s2")
    await world.resume({first.id: yes(first)}, "s1")

    assert pay.calls == [{"x": 1}]


async def test_22_of_two_resumes_at_once_one_runs() -> None:
    both_loaded = asyncio.Barrier(2)

    class Slow(MemoryCheckpointStore):
        async def load(self, checkpoint_id: str) -> StoredCheckpoint | None:
            stored = await super().load(checkpoint_id)
            if stored is not None and stored.status is CheckpointStatus.PENDING:
                await both_loaded.wait()
            return stored

    world, pay = pay_world()
    world.store = Slow()
    context = contexts(await world.run())["c1"]

    done = await asyncio.gather(
        *(world.resume({context.id: yes(context)}) for _ in range(2)), return_exceptions=True
    )

    lost = [result for result in done if isinstance(result, BaseException)]
    assert [type(error) for error in lost] == [CheckpointConflictError]
    assert len(pay.calls) == 1


async def test_23_a_call_id_that_comes_again_is_a_new_call() -> None:
    world, pay = pay_world(
        call("pay", {"x": 1}, id="c1"), call("pay", {"x": 2}, id="c1"), say("done")
    )
    first = contexts(await world.run())["c1"]

    events = await world.resume({first.id: yes(first)})

    assert brief(events)[1:] == ["calls pay#c1-2", "INT agent:A;tool:pay:c1-2"]
    second = contexts(events)["c1-2"]
    assert (second.id != first.id, second.info.arguments) == (True, {"x": 2})  # type: ignore[attr-defined]
    await world.resume({second.id: yes(second)})
    assert pay.calls == [{"x": 1}, {"x": 2}]


async def test_25_a_stateless_interrupt_gets_its_arguments_again() -> None:
    seen: list[object] = []

    def body(arguments: dict[str, Json]) -> str:
        seen.append((arguments, get_interrupt_state(str)[:2], get_resume_context(str)[:2]))
        _, has_data, data = get_resume_context(str)
        return str(data) if has_data else interrupt("name?")

    ask = Plain("ask", body)
    world = World([call("ask", {"x": 1}, id="c1"), say("done")], [ask])
    await world.run()
    context = contexts(await collect(world.runner().resume("1")))["c1"]

    events = await world.resume({context.id: "Ada"})

    assert brief(events) == ["tool ask#c1 ran: Ada", "says done"]
    assert seen == [
        ({"x": 1}, (False, False), (False, False)),
        ({"x": 1}, (True, False), (False, False)),
        ({"x": 1}, (True, False), (True, True)),
    ]


async def test_26_a_state_of_another_type_is_not_given() -> None:
    seen: list[object] = []

    def body(_: dict[str, Json]) -> str:
        seen.append(get_interrupt_state(int))
        if not get_resume_context(str)[0]:
            stateful_interrupt("q", "text")
        return "ok"

    world = World([call("ask", id="c1"), say("done")], [Plain("ask", body)])
    context = contexts(await world.run())["c1"]
    await world.resume({context.id: "x"})

    assert seen == [(False, False, None), (True, False, None)]


async def test_5_a_new_process_needs_only_the_store() -> None:
    world, pay = pay_world()
    context = contexts(await world.run())["c1"]
    other = World([say("ok")], [approval_gate(pay)], store=world.store)

    events = await other.resume({context.id: json_round_trip(yes(context))})

    assert brief(events)[-1] == "says ok"
    said = [m for m in other.models[-1].inputs[-1] if isinstance(m, ModelResponse)]
    assert [part.tool_call_id for part in said[0].parts] == ["c1"]  # type: ignore[union-attr]


def json_round_trip(answer: object) -> object:
    assert isinstance(answer, ApprovalResult)
    data = {"approved": answer.approved, "digest": answer.digest, "by": answer.by}
    return ApprovalResult(**json.loads(json.dumps(data)))


# ---- batches of calls, session values, stored values ---------------------------------------------


@pytest.mark.parametrize("is_sequential", [False, True])
async def test_34_40_a_batch_asks_once_for_all_in_call_order(is_sequential: bool) -> None:
    a, ok, b = Plain("a"), Plain("ok"), Plain("b")
    calls = [call("a", id="c1"), call("ok", {"x": 2}, id="c2"), call("b", id="c3")]
    world = World([calls, say("done")], [approval_gate(a), ok, approval_gate(b)])
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
    assert (a.calls, ok.calls, b.calls) == ([], [{"x": 2}], [])


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
