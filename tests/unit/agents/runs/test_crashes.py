"""A process may die at any write: nothing is lost, and nothing agreed runs twice."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agents import (
    AgentEvent,
    InDoubtInfo,
    InDoubtResult,
    MemoryCheckpointStore,
    ResumeParams,
)
from agents.core.checkpoint import CheckpointStatus
from agents.core.messages import read_log
from tests.unit.agents.support import (
    Died,
    DyingStore,
    World,
    brief,
    follow,
    step_world,
)


async def drive(world: World, received: list[AgentEvent], *, doubt: str = "ran") -> None:
    """Do what a bot does: look at the checkpoint, and go on from whatever it says."""
    stored = await world.store.load("1")  # type: ignore[attr-defined]
    while stored is None or stored.status is not CheckpointStatus.CLOSED:
        runner = world.runner()
        if stored is None:
            events: AsyncIterator[AgentEvent] = runner.query("hi", checkpoint_id="1", log=("L", 1))
            await follow(events, received)
        elif stored.status is CheckpointStatus.RUNNING:
            await follow(runner.recover("1"), received)
        else:
            answers = {c.id: answer_to(c, doubt) for c in await runner.pending("1")}
            await follow(runner.resume_with_params("1", ResumeParams(targets=answers)), received)
        stored = await world.store.load("1")  # type: ignore[attr-defined]


def answer_to(context: object, doubt: str) -> object:
    info = context.info  # type: ignore[attr-defined]
    return InDoubtResult(choice=doubt) if isinstance(info, InDoubtInfo) else info.approve(by="U1")  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 13))
@pytest.mark.parametrize("durability", ["step", "interrupt"])
async def test_i4_i5_a_process_may_die_at_any_write(durability: str, at: int, before: bool) -> None:
    world, pay, _ = step_world()
    world.durability, world.by_history = durability, True
    store = MemoryCheckpointStore()
    world.store = DyingStore(store, at=at, before=before)
    received: list[AgentEvent] = []
    try:
        await drive(world, received)
    except Died:
        world.store = store
        await drive(world, received)

    assert len(pay.calls) <= 1
    assert pay.calls in ([{"x": 2}], [])
    (entry,) = await world.log.load("L", before_turn=2)
    said = [part.part_kind for message in read_log([entry]) for part in message.parts]
    assert said.count("tool-return") == 3
    assert said[-1] == "text"
    by_key: dict[str, set[str]] = {}
    for event in received:
        if not event.key.startswith("interrupt/"):
            by_key.setdefault(event.key, set()).add(brief([event])[0])
    assert {"agent:A/m1", "agent:A/m2", "agent:A/m3"} <= set(by_key)
    assert all(len(lines) == 1 for lines in by_key.values()), by_key
