"""What observers are told of a run, and when."""

from __future__ import annotations

import logging

import pytest

from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError, ModelError, UnknownInterruptError
from agents.core.events import RunFailed, RunFinished, RunInterrupted, RunResumed, RunStarted
from agents.core.observers import RunEvent
from agents.memory import MemoryCheckpointStore
from agents.models import say
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from tests.unit.agents.support import (
    Asker,
    AwayStore,
    Died,
    DyingStore,
    World,
    collect,
    pay_world,
    yes,
)


class Told(list[str]):
    """Keeps what was told of runs, one short line each. Events of tools are another's business."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[RunEvent] = []

    def __call__(self, event: RunEvent) -> None:
        if type(event).__name__.startswith("Run"):
            self.events.append(event)
            self.append(f"{type(event).__name__}({event.checkpoint_id})")


async def test_a_run_from_its_start_to_its_end() -> None:
    (world, _), observer = pay_world(), Told()
    await collect(world.runner(observers=[observer]).query("hi", checkpoint_id="1"))
    (context,) = await world.pending()

    runner = world.runner(observers=[observer])
    await collect(runner.resume("1", {context.id: yes(context)}))

    assert observer == ["RunStarted(1)", "RunInterrupted(1)", "RunResumed(1)", "RunFinished(1)"]
    started, interrupted, resumed, finished = observer.events
    assert started == RunStarted(checkpoint_id="1", agent_name="A")
    assert interrupted == RunInterrupted(checkpoint_id="1", contexts=(context,))
    assert resumed == RunResumed(checkpoint_id="1", targets=(context.id,))
    assert finished == RunFinished(checkpoint_id="1")


async def test_an_interrupt_is_told_when_it_is_stored() -> None:
    store, seen = MemoryCheckpointStore(), []

    def look(event: RunEvent) -> None:
        kept = store._stored.get("1")
        seen.append((type(event), kept.status if kept else None))

    runner = Runner(Asker("a"), checkpoint_store=store, observers=[look])
    await collect(runner.query("hi", checkpoint_id="1"))
    await collect(runner.resume("1", {"agent:a": "x"}))

    assert seen == [
        (RunStarted, None),
        (RunInterrupted, CheckpointStatus.PENDING),
        (RunResumed, CheckpointStatus.RUNNING),
        (RunFinished, CheckpointStatus.CLOSED),
    ]


async def test_157_a_recovery_is_told_with_its_answers() -> None:
    (world, _), observer = pay_world(durability="step"), Told()
    inner = world.store
    await world.run()
    (context,) = await world.pending()
    assert isinstance(inner, MemoryCheckpointStore)
    world.store = DyingStore(inner, at=2, before=True)
    with pytest.raises(Died):
        await world.resume({context.id: yes(context)})
    world.store = inner

    await collect(world.runner(observers=[observer]).recover("1"))

    assert observer == ["RunResumed(1)", "RunFinished(1)"]
    assert observer.events[0] == RunResumed(
        checkpoint_id="1", targets=(context.id,), is_recovery=True
    )


async def test_failures_are_told_with_their_error() -> None:
    world, observer = World([RuntimeError("down")]), Told()

    with pytest.raises(ModelError) as error:
        await collect(world.runner(observers=[observer]).query("hi", checkpoint_id="1"))

    assert observer == ["RunStarted(1)", "RunFailed(1)"]
    assert observer.events[1] == RunFailed(checkpoint_id="1", error=error.value)


async def test_16_what_cannot_be_stored_is_a_failure_and_no_interrupt() -> None:
    observer = Told()
    full = AwayStore("save", error=CheckpointConflictError("1", "it is full"))
    runner = Runner(Asker("a"), checkpoint_store=full, observers=[observer])

    with pytest.raises(CheckpointConflictError, match="full"):
        await collect(runner.query("hi", checkpoint_id="1"))
    assert observer == ["RunStarted(1)", "RunFailed(1)"]


async def test_an_end_that_cannot_be_stored_is_a_failure() -> None:
    observer = Told()
    lost = AwayStore("close", error=CheckpointConflictError("1"))
    world = World([say("done")], store=lost, durability="step")
    with pytest.raises(CheckpointConflictError):
        await collect(world.runner(observers=[observer]).query("hi", checkpoint_id="1"))
    assert observer == ["RunStarted(1)", "RunFailed(1)"]


async def test_what_was_refused_before_anything_ran_is_not_told() -> None:
    (world, _), observer = pay_world(), Told()
    await world.run()
    runner = world.runner(observers=[observer])

    with pytest.raises(UnknownInterruptError):
        await collect(runner.resume("1", {"nope": "x"}))
    await collect(runner.resume_with_params("1", ResumeParams()))
    await collect(runner.recover("1"))

    assert observer == []


async def test_an_observer_that_fails_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: RunEvent) -> None:
        raise RuntimeError("secret")

    observer = Told()
    runner = Runner(Asker("a"), observers=[broken, observer])
    with caplog.at_level(logging.WARNING):
        await collect(runner.query("hi"))

    assert observer == ["RunStarted()", "RunInterrupted()"]
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
