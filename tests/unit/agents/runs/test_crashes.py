"""A process may die at any write: nothing is lost, and nothing agreed runs twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agents import (
    AgentEvent,
    InDoubtInfo,
    InDoubtResult,
    InterruptContext,
    InterruptEvent,
    MemoryCheckpointStore,
    ResumeParams,
    Tool,
    ToolEvent,
    approval_gate,
)
from agents.core.checkpoint import CheckpointStatus
from agents.core.messages import read_log
from agents.models import call, say
from tests.unit.agents.support import (
    Died,
    DyingStore,
    Plain,
    World,
    brief,
    follow,
    no,
    step_world,
    yes,
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


@dataclass
class Game:
    """A batch of calls, answered bit by bit in random order, by processes that may die."""

    data: st.DataObject
    gated: list[bool]
    world: World
    store: MemoryCheckpointStore
    approved: set[str] = field(default_factory=set)
    finished: dict[str, ToolEvent] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    async def play(self) -> None:
        for _ in range(100):
            try:
                if await self.is_over():
                    return
            except Died:
                self.world.store = self.store
                if await self.store.load("1") is None:
                    self.ids.clear()
        pytest.fail("the run did not end")

    async def is_over(self) -> bool:
        stored = await self.store.load("1")
        if stored is not None and stored.status is CheckpointStatus.CLOSED:
            return True
        if stored is None:
            events = await self.world.run(log=("L", 1))
        elif stored.status is CheckpointStatus.RUNNING:
            events = await self.world.recover()
        else:
            events = await self.world.resume(await self.answers())
        for event in events:
            if isinstance(event, ToolEvent):
                assert self.finished.setdefault(event.key, event) == event
        return not isinstance(events[-1], InterruptEvent)

    async def answers(self) -> dict[str, object]:
        waiting = {c.address.segments[-1].sub_id: c for c in await self.world.pending()}
        for call_id, context in waiting.items():
            if not isinstance(context.info, InDoubtInfo):
                assert self.ids.setdefault(call_id, context.id) == context.id
        some = st.lists(st.sampled_from(sorted(waiting)), min_size=1, unique=True)
        return {waiting[at].id: self.answer(waiting[at], at) for at in self.data.draw(some)}

    def answer(self, context: InterruptContext, call_id: str) -> object:
        if isinstance(context.info, InDoubtInfo):
            return InDoubtResult(choice="give_up")
        if self.data.draw(st.booleans()):
            self.approved.add(call_id)
            return yes(context)
        return no(context)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    gated=st.lists(st.booleans(), min_size=1, max_size=6),
    durability=st.sampled_from(["step", "interrupt"]),
    dies_at=st.integers(0, 12),
)
async def test_i1_i6_any_batch_answered_in_any_order(
    data: st.DataObject, gated: list[bool], durability: str, dies_at: int
) -> None:
    tools = [Plain(f"t{n}") for n in range(len(gated))]
    wrapped: list[Tool] = [approval_gate(t) if g else t for t, g in zip(tools, gated, strict=True)]
    calls = [call(tool.name, {"n": n}, id=f"c{n}") for n, tool in enumerate(tools)]
    store = MemoryCheckpointStore()
    world = World([calls, say("done")], wrapped, durability=durability, by_history=True)
    world.store = DyingStore(store, at=dies_at, before=False) if dies_at else store
    game = Game(data, gated, world, store)

    await game.play()

    messages = read_log(await world.log.load("L", before_turn=2))
    returned = [p.tool_call_id for m in messages for p in m.parts if p.part_kind == "tool-return"]
    assert returned == [f"c{n}" for n in range(len(gated))]
    for n, tool in enumerate(tools):
        if gated[n]:
            assert len(tool.calls) <= (f"c{n}" in game.approved)
        else:
            assert tool.calls
            assert dies_at or len(tool.calls) == 1
