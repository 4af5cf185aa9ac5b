"""The runner: what it refuses, and what it keeps."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from agents import (
    CheckpointClosedError,
    InterruptEvent,
    MemoryCheckpointStore,
    Runner,
    idempotency_key,
    interrupt,
    session_values,
)
from agents.agent import AgentEvent, AgentInput, function_agent, make_message
from agents.core.codec import Json
from agents.core.component.state import get_interrupt_state
from agents.core.errors import (
    AmbiguousTargetError,
    CheckpointConflictError,
    CheckpointDecodeError,
    NoCheckpointStoreError,
    UnknownInterruptError,
)
from agents.core.messages import user_message
from agents.core.pending import InterruptNode
from agents.models import call, say
from agents.runs.answers import find_answers
from agents.runs.document import Claim
from agents.tools import event_key, publish
from tests.unit.agents.support import (
    Asker,
    AwayStore,
    Died,
    DyingStore,
    Plain,
    World,
    brief,
    collect,
    pay_world,
    yes,
)


async def test_without_a_store_nothing_is_pending_or_recovered() -> None:
    runner = Runner(Asker("a"))

    with pytest.raises(NoCheckpointStoreError):
        await runner.pending("1")
    with pytest.raises(NoCheckpointStoreError):
        await collect(runner.recover("1"))


async def test_without_an_id_a_run_is_not_kept() -> None:
    world, _ = pay_world(durability="step")

    events = await collect(world.runner().run([user_message("hi")]))

    assert brief(events)[-1] == "INT agent:A;tool:pay:c1"
    assert world.store._stored == {}  # type: ignore[attr-defined]


async def test_an_address_that_two_share_is_ambiguous() -> None:
    def leaf(number: str) -> InterruptNode:
        return InterruptNode(id=number, address=points.address, info="q")

    points = InterruptNode(id="p", address=InterruptNode.from_json(json_point()).address)
    both = InterruptNode(id="p", address=points.address, children=(leaf("1"), leaf("2")))

    with pytest.raises(AmbiguousTargetError, match="1, 2"):
        find_answers(both, {"agent:A": "x"})
    assert find_answers(both, {"2": "x", "1": "y"}) == {"2": "x", "1": "y"}


def json_point() -> Json:
    return {"id": "p", "at": "agent:A", "slot": "", "info": None, "state": None, "children": []}


@pytest.mark.parametrize("key", ["id", "at", "slot", "info", "state", "children"])
def test_a_damaged_interrupt_is_a_typed_error(key: str) -> None:
    data = json_point()
    assert isinstance(data, dict)
    del data[key]

    with pytest.raises(CheckpointDecodeError):
        InterruptNode.from_json(data)


async def test_of_two_runs_with_one_id_one_is_kept() -> None:
    world, _ = pay_world(call("pay", id="c1"), call("pay", id="c1"))
    first_run = world.runner().query("hi", checkpoint_id="1")
    await anext(first_run)
    await world.run()

    with pytest.raises(CheckpointConflictError):
        await collect(first_run)


async def test_session_values_are_a_mapping() -> None:
    seen: list[object] = []

    def body(_: dict[str, Json]) -> str:
        values = session_values()
        values["a"] = 1
        seen.extend([len(values), list(values)])
        del values["a"]
        return "ok"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    await world.run(session_values={"u": 1})

    assert seen == [2, ["u", "a"]]


@pytest.mark.parametrize(
    "text", ['{"schema":1}', "x", '{"schema":1,"answers":{},"untargeted":"x"}']
)
def test_a_damaged_claim_is_a_typed_error(text: str) -> None:
    with pytest.raises(CheckpointDecodeError):
        Claim.from_text(text)


async def test_what_a_tool_says_is_not_part_of_the_turn() -> None:
    def body(_: dict[str, Json]) -> str:
        publish(user_message("inside"))
        return f"{event_key()} {event_key()}"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    events = await world.run(log=("L", 1))

    (entry,) = await world.log.load("L", before_turn=2)
    assert "inside" not in entry
    assert json.loads(entry)["schema"] == 1
    assert brief(events)[1].endswith("agent:A;tool:t:c1/e1 agent:A;tool:t:c1/e2")


async def test_each_call_has_an_idempotency_key_of_its_own() -> None:
    keys: list[str] = []

    def body(_: dict[str, Json]) -> str:
        keys.append(idempotency_key())
        return "ok"

    parts = [call("t", id="c1"), call("t", id="c2")]
    world = World([parts, say("done"), parts, say("done")], [Plain("t", body)])
    await world.run("1")
    await world.run("2")

    assert len(set(keys)) == 4


async def test_155_a_stale_id_overwrites_nothing() -> None:
    world, _ = pay_world()
    await world.run()
    (old,) = await world.pending()
    await collect(world.runner().resume("1"))
    (new,) = await world.pending()
    before = await world.store.load("1")  # type: ignore[attr-defined]

    with pytest.raises(UnknownInterruptError, match=new.id):
        await world.resume({old.id: yes(old)})
    with pytest.raises(UnknownInterruptError):
        await world.resume({old.id: yes(old), new.id: yes(new)})

    assert await world.store.load("1") == before  # type: ignore[attr-defined]
    assert brief(await world.resume({new.id: yes(new)}))[-1] == "says done"


@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_157_a_crash_after_the_claim_never_runs_a_call_twice(at: int) -> None:
    world, pay = pay_world(call("pay", id="c1"), say("done"), say("done"))
    await world.run()
    (context,) = await world.pending()
    inner = world.store
    world.store = DyingStore(inner, at=at, before=False)  # type: ignore[arg-type]
    with pytest.raises(Died):
        await world.resume({context.id: yes(context)})
    world.store = inner

    if at == 4:
        with pytest.raises(CheckpointClosedError):
            await world.recover()
    else:
        events = await world.recover()
        is_in_doubt = at == 2
        assert isinstance(events[-1], InterruptEvent) == is_in_doubt
    assert len(pay.calls) == (at != 2)


async def test_a_store_that_refuses_a_new_id_is_believed() -> None:
    refusing = AwayStore("save", error=CheckpointConflictError("1", "not here"))
    runner = Runner(Asker("a"), checkpoint_store=refusing, durability="step")

    with pytest.raises(CheckpointConflictError, match="not here"):
        await collect(runner.query("hi", checkpoint_id="1"))


async def test_what_people_are_shown_is_what_was_stored() -> None:
    shown = {"amount": 1}

    async def work(_: AgentInput) -> AsyncIterator[AgentEvent]:
        if not get_interrupt_state(object)[0]:
            interrupt(shown)
        yield make_message("done")

    runner = Runner(function_agent("root", work), checkpoint_store=MemoryCheckpointStore())
    events = runner.query("Go.", checkpoint_id="1")
    event = await anext(events)
    shown["amount"] = 999
    assert isinstance(event, InterruptEvent)
    assert event.contexts[0].info == {"amount": 1}
    assert (await runner.pending("1"))[0].info == {"amount": 1}
