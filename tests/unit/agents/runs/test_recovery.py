"""Recovery: what a dead process left is gone on with, and calls in doubt are asked about."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from agents import (
    AgentEvent,
    Cancelled,
    Expired,
    InDoubtInfo,
    InDoubtResult,
    MemoryCheckpointStore,
    ToolEvent,
    ToolOutcome,
    approval_gate,
    idempotency_key,
    session_values,
)
from agents.core.codec import Json
from agents.core.errors import (
    AgentChangedError,
    CheckpointConflictError,
    CheckpointDecodeError,
    ModelError,
)
from agents.core.tools import CallText
from agents.models import call, say
from agents.tools import start_call
from tests.unit.agents.support import (
    AwayStore,
    Died,
    Plain,
    Watchman,
    World,
    brief,
    collect,
    contexts,
    dies_in,
    no,
    step_world,
    yes,
)

FROZEN: Mapping[str, Json] = {"approvers": ["UBEN"]}


async def died_in_pay(world: World, pay: Plain) -> tuple[MemoryCheckpointStore, str]:
    """Run to the approval, approve, and die right after the tool ran."""
    store = MemoryCheckpointStore()
    world.store = store
    context = contexts(await world.run())["c2"]

    await dies_in(pay, world.resume({context.id: yes(context)}))
    return store, context.id


@pytest.mark.parametrize(
    ("answer", "runs", "outcome"),
    [
        (InDoubtResult(choice="ran", result="paid 7"), 1, ToolOutcome.RAN),
        (InDoubtResult(choice="ran"), 1, ToolOutcome.RAN),
        (InDoubtResult(choice="again"), 2, ToolOutcome.RAN),
        (InDoubtResult(choice="give_up"), 1, ToolOutcome.FAILED),
        (Expired(waited="2 hours"), 1, ToolOutcome.EXPIRED),
        (Cancelled(by="U1"), 1, ToolOutcome.CANCELLED),
    ],
    ids=str,
)
@pytest.mark.parametrize("durability", ["step", "interrupt"])
async def test_i5_people_decide_about_a_call_in_doubt(
    durability: str, answer: object, runs: int, outcome: ToolOutcome
) -> None:
    world, pay, _ = step_world()
    world.durability = durability
    _, old = await died_in_pay(world, pay)

    asked = contexts(await world.recover())["c2"]
    assert asked.info == InDoubtInfo(
        tool_name="pay", arguments={"x": 2}, title="Do pay", call_id="c2"
    )
    assert asked.id != old
    assert len(pay.calls) == 1

    events = await world.resume({asked.id: answer})

    first = events[0]
    assert isinstance(first, ToolEvent)
    assert (first.call.id, first.outcome, len(pay.calls)) == ("c2", outcome, runs)
    assert brief(events)[-1] == "says done"


async def test_i5_an_idempotent_call_runs_again_with_the_same_key() -> None:
    world, pay, _ = step_world(idempotent=True)
    keys: list[str] = []
    store = MemoryCheckpointStore()
    world.store = store
    context = contexts(await world.run())["c2"]

    def pay_once(_: dict[str, Json]) -> str:
        keys.append(idempotency_key())
        if len(keys) == 1:
            raise Died
        return "paid"

    pay.body = pay_once
    with pytest.raises(Died):
        await world.resume({context.id: yes(context)})

    events = await world.recover()

    assert brief(events)[0] == "tool pay#c2 ran: paid"
    assert len(set(keys)) == 1
    assert len(keys) == 2


async def test_f3_doubt_knows_what_was_frozen_when_the_call_started() -> None:
    world, pay, _ = step_world()
    watch = Watchman(frozen=FROZEN)
    world.before_start = watch
    await died_in_pay(world, pay)
    world.before_start = None
    asked = contexts(await world.recover())["c2"]
    assert isinstance(asked.info, InDoubtInfo)
    assert asked.info.frozen == {"approvers": ["UBEN"]}

    await dies_in(pay, world.resume({asked.id: InDoubtResult(choice="again")}))
    again = contexts(await world.recover())["c2"]
    assert isinstance(again.info, InDoubtInfo)
    assert again.info.frozen == asked.info.frozen


async def test_doubt_about_what_the_tool_has_no_words_for_is_asked_all_the_same() -> None:
    world, pay, _ = step_world()
    await died_in_pay(world, pay)

    def fail(arguments: Mapping[str, Json]) -> CallText:
        raise KeyError

    pay.describe = fail  # type: ignore[method-assign]
    asked = contexts(await world.recover())["c2"]
    assert isinstance(asked.info, InDoubtInfo)
    assert asked.info.title == "Run pay"


async def test_f3_start_of_an_earlier_program_has_nothing_frozen() -> None:
    world, pay, _ = step_world()
    await died_in_pay(world, pay)
    world.before_start = Watchman(frozen=FROZEN)
    asked = contexts(await world.recover())["c2"]
    assert isinstance(asked.info, InDoubtInfo)
    assert asked.info.frozen == {}


async def test_f7_decision_to_run_again_lapses_too() -> None:
    world, pay, _ = step_world()
    world.before_start = Watchman(frozen=FROZEN)
    await died_in_pay(world, pay)
    asked = contexts(await world.recover())["c2"]
    late = Watchman(["it was decided a month ago"])
    world.before_start = late
    again = contexts(await world.resume({asked.id: InDoubtResult(choice="again")}))["c2"]
    assert isinstance(again.info, InDoubtInfo)
    assert again.info.asked_again == "it was decided a month ago"
    assert again.info.frozen == FROZEN
    assert again.id != asked.id
    assert len(pay.calls) == 1
    assert [call.decisions for call in late.seen] == [(asked.id,)]
    world.before_start = Watchman(frozen=FROZEN)
    await world.resume({again.id: InDoubtResult(choice="again")})
    assert len(pay.calls) == 2


async def test_f7_call_that_began_in_time_goes_on_after_a_crash_however_late() -> None:
    world, pay, _ = step_world(idempotent=True)
    world.before_start = Watchman(frozen=FROZEN)
    await died_in_pay(world, pay)
    late = Watchman(["it was decided a month ago"])
    world.before_start = late
    events = await world.recover()
    assert brief(events)[0] == 'tool pay#c2 ran: pay ok {"x": 2}'
    assert [call.repeats for call in late.seen] == [True]


async def test_i6_a_doubt_that_is_not_answered_stays() -> None:
    pay = Plain("pay")
    world = World(
        [[call("pay", id="c1"), call("pay", id="c2")], say("done")],
        [approval_gate(pay)],
        durability="step",
    )
    asked = contexts(await world.run())

    await dies_in(pay, world.resume({asked["c1"].id: yes(asked["c1"])}))
    doubts = contexts(await world.recover())
    assert doubts["c2"].id == asked["c2"].id

    left = contexts(await world.resume({doubts["c2"].id: yes(doubts["c2"])}))

    assert left == {"c1": doubts["c1"]}
    reentered = contexts(await collect(world.runner().resume("1")))["c1"]
    assert (reentered.id != left["c1"].id, reentered.info) == (True, left["c1"].info)


async def test_i1_a_started_tool_that_is_gone_is_not_called_refused() -> None:
    world, pay, look = step_world()
    await died_in_pay(world, pay)
    world.tools = [look]

    with pytest.raises(AgentChangedError):
        await world.recover()

    assert len(pay.calls) == 1


async def test_i4_a_model_that_fails_is_asked_again_and_no_tool_runs_again() -> None:
    world, pay, look = step_world()
    world.script[1] = RuntimeError("overloaded")
    context = contexts(await world.run())["c2"]

    with pytest.raises(ModelError, match="overloaded"):
        await world.resume({context.id: yes(context)})
    world.script[1:2] = [RuntimeError("overloaded"), call("look", id="c3")]
    events = await world.recover()

    assert brief(events)[0] == 'tool pay#c2 ran: pay ok {"x": 2}'
    assert brief(events)[-1] == "says done"
    assert (len(pay.calls), len(look.calls)) == (1, 2)


async def test_an_error_before_anything_is_on_record_takes_the_resume_back() -> None:
    world, pay, _ = step_world()
    world.durability = "interrupt"
    context = contexts(await world.run())["c2"]
    world.script[1:1] = [RuntimeError("down")]

    with pytest.raises(ModelError):
        await world.resume({context.id: no(context)})

    assert [c.id for c in await world.pending()] == [context.id]
    assert brief(await world.resume({context.id: no(context)}))[-1] == "says done"
    assert pay.calls == []


async def test_taking_back_may_fail_and_the_first_error_is_told() -> None:
    world, _, _ = step_world()
    store = AwayStore("save", "amend", is_away=False)
    world.durability, world.store = "interrupt", store
    context = contexts(await world.run())["c2"]
    world.script[1:1] = [RuntimeError("down")]
    store.is_away = True

    with pytest.raises(ModelError):
        await world.resume({context.id: no(context)})

    assert brief(await world.recover())[-1] == "says done"


async def test_i5_a_process_that_was_taken_for_dead_stops_before_the_tool() -> None:
    world, pay, _ = step_world()
    context = contexts(await world.run())["c2"]
    slow = world.runner()
    events = slow.resume("1", {context.id: yes(context)})

    store = world.store
    original = store.append  # type: ignore[attr-defined]
    rivals: list[list[AgentEvent]] = []

    async def append(checkpoint_id: str, entry: str, *, base: int, index: int) -> None:
        if not rivals:
            rivals.append([])
            store.append = original  # type: ignore[attr-defined]
            rivals[0].extend(await world.recover())
        await original(checkpoint_id, entry, base=base, index=index)

    store.append = append  # type: ignore[attr-defined]
    with pytest.raises(CheckpointConflictError):
        await collect(events)

    assert len(pay.calls) == 1
    assert brief(rivals[0])[-1] == "says done"


async def test_i4_a_journal_that_cannot_be_written_stops_the_run_before_the_tool() -> None:
    world, pay, _ = step_world()
    store = world.store = AwayStore("append", is_away=False)
    context = contexts(await world.run())["c2"]
    store.is_away = True

    with pytest.raises(OSError, match="store down"):
        await world.resume({context.id: yes(context)})

    assert pay.calls == []


async def test_a_call_that_was_let_through_may_be_in_doubt_too() -> None:
    """A gate that does not ask, as a policy may want, marks the start all the same."""

    async def let_through() -> str:
        await start_call(pay.definition, {"x": 1})
        raise Died

    pay = Plain("pay", lambda _: let_through())
    world = World([call("pay", id="c1"), say("done")], [pay], durability="step")
    with pytest.raises(Died):
        await world.run()
    world.tools = []
    with pytest.raises(AgentChangedError, match="has started"):
        await world.recover()
    world.tools = [pay]

    doubt = contexts(await world.recover())["c1"]

    assert isinstance(doubt.info, InDoubtInfo)
    assert len(pay.calls) == 1


def without_state(change: object) -> object:
    """The same change, but for the state of the question that it adds."""
    if isinstance(change, list):
        return [without_state(part) for part in change]
    if not isinstance(change, dict):
        return change
    return {
        key: {"new": "lost"} if key == "state" else without_state(part)
        for key, part in change.items()
    }


async def test_a_doubt_that_lost_its_state_runs_nothing() -> None:
    world, pay, _ = step_world()
    store, _ = await died_in_pay(world, pay)
    doubt = contexts(await world.recover())["c2"]
    kept = store._stored["1"]
    (change,) = kept.changes
    kept.changes = (json.dumps(without_state(json.loads(change))),)

    with pytest.raises(CheckpointDecodeError, match="is damaged"):
        await world.resume({doubt.id: InDoubtResult(choice="again")})

    assert len(pay.calls) == 1


async def test_session_values_of_finished_tools_are_repeated() -> None:
    def put(_: dict[str, Json]) -> str:
        session_values()["k"] = (1, 2)
        session_values().pop("u", None)
        return "put"

    world = World(
        [call("put", id="c1"), RuntimeError("down")], [Plain("put", put)], durability="step"
    )
    with pytest.raises(ModelError):
        await world.run(session_values={"u": 1})
    seen: list[object] = []
    tools = [Plain("put", put), Plain("see", lambda _: seen.append(dict(session_values())))]
    world.tools = tools
    world.script += [call("see", id="c2"), say("done")]

    await world.recover()

    assert seen == [{"k": (1, 2)}]
    assert tools[0].calls == []
