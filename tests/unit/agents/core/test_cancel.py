"""Stopping a run from outside, and going on with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from agents.agent import AgentEvent, AgentInput, InterruptEvent, make_message
from agents.core.cancel import CancelInfo, CancelToken
from agents.core.checkpoint import CheckpointStatus
from agents.core.component.state import get_interrupt_state, get_resume_context
from agents.core.errors import (
    AgentConfigError,
    CheckpointClosedError,
    ResumeDataError,
    RunCancelledError,
)
from agents.core.events import RunCancelled, RunFinished, RunResumed, RunStarted
from agents.core.interrupt import (
    keep_waiting,
    stateful_interrupt,
)
from agents.core.observers import RunEvent
from agents.core.scope import current_scope
from agents.memory import MemoryCheckpointStore, MemoryMessageLog
from agents.runner import Runner
from agents.runs.answers import ResumeParams
from agents.workflows import ParallelAgent
from tests.unit.agents.support import Asker, brief, collect


@dataclass
class Stepper:
    """An agent of three steps, which asks between them whether it shall stop."""

    name: str = "S"
    description: str = ""
    token: CancelToken | None = None
    cancel_after: int = 0
    steps: list[int] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        async for event in self._go(0):
            yield event

    async def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
        _, _, done = get_interrupt_state(int)
        is_target, has_data, data = get_resume_context(object)
        assert done is not None
        assert is_target
        self.answers.append(data if has_data else None)
        async for event in self._go(done):
            yield event

    async def _go(self, done: int) -> AsyncIterator[AgentEvent]:
        for step in range(done + 1, 4):
            self.steps.append(step)
            yield make_message(f"step {step}")
            if self.token and step == self.cancel_after:
                self.token.cancel("after_tools")
            if current_scope("a test").run.cancel.wants("after_tools"):
                stateful_interrupt(CancelInfo(mode="after_tools"), step)


def waiting(error: RunCancelledError) -> list[str]:
    return [f"{context.address} {context.info}" for context in error.contexts]


async def stopped(runner: Runner, token: CancelToken) -> RunCancelledError:
    """Run until it is stopped."""
    with pytest.raises(RunCancelledError) as error:
        await collect(runner.query("hi", checkpoint_id="1", cancel=token))
    return error.value


@pytest.mark.parametrize("way", ["resume", "targets", "recover"])
async def test_151_a_stopped_run_goes_on_where_it_was(way: str) -> None:
    token, store = CancelToken(), MemoryCheckpointStore()
    agent = Stepper(token=token, cancel_after=2)
    runner = Runner(agent, checkpoint_store=store)

    error = await stopped(runner, token)
    assert "with_params('1', Res" in str(error)
    assert waiting(error) == ["agent:S stopped from outside (after_tools)"]
    stored = await store.load("1")
    assert stored is not None
    assert stored.status is CheckpointStatus.PENDING
    again = Runner(later := Stepper(), checkpoint_store=store)
    events = {
        "resume": again.resume("1"),
        "targets": again.resume_with_params("1", ResumeParams()),
        "recover": again.recover("1"),
    }
    assert brief(await collect(events[way])) == ["says step 3"]
    assert (agent.steps, later.steps, later.answers) == ([1, 2], [3], [None])
    with pytest.raises(CheckpointClosedError):
        await collect(again.resume("1"))


async def test_151_a_run_may_be_stopped_again_and_again() -> None:
    store = MemoryCheckpointStore()
    for expected in ([1], [2], [3]):
        token = CancelToken()
        agent = Stepper(token=token, cancel_after=expected[0])
        runner = Runner(agent, checkpoint_store=store)
        events = (
            runner.query("hi", checkpoint_id="1", cancel=token)
            if expected == [1]
            else runner.resume("1", cancel=token)
        )
        with pytest.raises(RunCancelledError):
            await collect(events)
        assert agent.steps == expected
    assert await collect(Runner(Stepper(), checkpoint_store=store).resume("1")) == []


async def test_151_a_token_that_was_used_before_stops_at_the_first_safe_point() -> None:
    token = CancelToken()
    token.cancel()
    agent = Stepper()

    with pytest.raises(RunCancelledError):
        await collect(Runner(agent).query("hi", cancel=token))
    assert agent.steps == [1]


async def test_151_a_run_that_ends_before_the_point_just_ends() -> None:
    token = CancelToken()
    token.cancel("after_model")
    runner = Runner(Stepper(), checkpoint_store=MemoryCheckpointStore())

    events = await collect(runner.query("hi", checkpoint_id="1", cancel=token))

    assert brief(events) == ["says step 1", "says step 2", "says step 3"]


async def test_151_the_timeout_makes_it_urgent() -> None:
    token = CancelToken()
    token.cancel("after_model", timeout=timedelta(0))
    await token.stop_now.wait()

    with pytest.raises(RunCancelledError):
        await collect(Runner(Stepper()).query("hi", cancel=token))
    token.cancel("after_model")
    assert token.mode == "now"


async def test_151_what_is_not_kept_cannot_go_on_and_says_so() -> None:
    for store in (None, MemoryCheckpointStore()):
        token = CancelToken()
        token.cancel()
        with pytest.raises(RunCancelledError, match="give the runner a store") as error:
            await collect(Runner(Stepper(), checkpoint_store=store).query("hi", cancel=token))
        assert error.value.checkpoint_id == ""


async def test_151_a_question_that_comes_while_stopping_waits_and_is_no_event() -> None:
    token, store = CancelToken(), MemoryCheckpointStore()
    step = Stepper(token=token, cancel_after=1)
    runner = Runner(ParallelAgent("P", [step, Asker("a")]), checkpoint_store=store)

    error = await stopped(runner, token)

    assert waiting(error) == [
        "agent:P;agent:S stopped from outside (after_tools)",
        "agent:P;agent:a a?",
    ]
    before = {str(c.address): c.id for c in await runner.pending("1")}
    later = Runner(ParallelAgent("P", [second := Stepper(), Asker("a")]), checkpoint_store=store)
    events = await collect(later.resume_with_params("1", ResumeParams()))
    assert brief(events) == ["says step 2", "says step 3", "INT agent:P;agent:a"]
    (context,) = await later.pending("1")
    assert context.id == before["agent:P;agent:a"]
    last = await collect(later.resume("1", {context.id: "yes"}))
    assert brief(last) == ["says a got yes"]
    assert second.steps == [2, 3]


async def test_151_only_a_question_may_wait_when_the_stop_came_too_late() -> None:
    token, store = CancelToken(), MemoryCheckpointStore()
    token.cancel()
    runner = Runner(Asker("a"), checkpoint_store=store)

    error = await stopped(runner, token)

    assert waiting(error) == ["agent:a a?"]
    (event,) = await collect(runner.resume_with_params("1", ResumeParams()))
    assert isinstance(event, InterruptEvent)
    assert [c.id for c in event.contexts] == [error.contexts[0].id]


async def test_151_an_answer_for_another_lets_the_stopped_part_go_on_too() -> None:
    token, store = CancelToken(), MemoryCheckpointStore()
    runner = Runner(
        ParallelAgent("P", [Stepper(token=token, cancel_after=1), Asker("a"), Asker("b")]),
        checkpoint_store=store,
    )
    await stopped(runner, token)

    later = Runner(ParallelAgent("P", [Stepper(), Asker("a"), Asker("b")]), checkpoint_store=store)

    assert brief(await collect(later.resume("1", {"agent:P;agent:b": "B"}))) == [
        "says step 2",
        "says step 3",
        "says b got B",
        "INT agent:P;agent:a",
    ]


async def test_151_a_stopped_part_may_be_told_something() -> None:
    token, store = CancelToken(), MemoryCheckpointStore()
    token.cancel()
    runner = Runner(Stepper(), checkpoint_store=store)
    error = await stopped(runner, token)

    later = Runner(agent := Stepper(), checkpoint_store=store)
    await collect(later.resume("1", {error.contexts[0].id: "be brief"}))

    assert agent.answers == ["be brief"]


async def test_a_refused_answer_is_not_lost_behind_the_stop() -> None:
    class Picky(Asker):
        async def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002
            yield make_message("hm")
            keep_waiting(ResumeDataError("not that"))

    token, store = CancelToken(), MemoryCheckpointStore()
    runner = Runner(Picky("a"), checkpoint_store=store)
    await collect(runner.query("hi", checkpoint_id="1"))
    token.cancel()

    with pytest.raises(RunCancelledError) as error:
        await collect(runner.resume("1", {"agent:a": "x"}, cancel=token))
    assert isinstance(error.value.__cause__, ResumeDataError)


async def test_a_crash_after_the_resume_of_a_stopped_run_is_recovered() -> None:
    store = MemoryCheckpointStore()
    token = CancelToken()
    runner = Runner(Stepper(token=token, cancel_after=1), checkpoint_store=store)
    await stopped(runner, token)
    cut = Runner(Stepper(), checkpoint_store=store).resume_with_params("1", ResumeParams())
    await anext(cut)
    await cut.aclose()

    events = await collect(Runner(Stepper(), checkpoint_store=store).recover("1"))

    assert brief(events) == ["says step 2", "says step 3"]


async def test_observers_are_told_of_a_stop_when_it_is_stored() -> None:
    events: list[RunEvent] = []
    token, store, log = CancelToken(), MemoryCheckpointStore(), MemoryMessageLog()
    token.cancel()
    runner = Runner(Stepper(), checkpoint_store=store, message_log=log, observers=[events.append])
    error = await stopped(runner, token)
    await collect(runner.resume("1"))

    assert events == [
        RunStarted(checkpoint_id="1", agent_name="S"),
        RunCancelled(checkpoint_id="1", contexts=error.contexts),
        RunResumed(checkpoint_id="1"),
        RunFinished(checkpoint_id="1"),
    ]


def test_a_place_that_does_not_exist_is_no_place_to_stop() -> None:
    token = CancelToken()

    with pytest.raises(AgentConfigError, match="'now', 'finish_tools', 'next', 'after_model'"):
        token.cancel("after_tool")  # type: ignore[arg-type]
    assert token.mode is None


async def test_who_waits_is_called_when_the_run_shall_stop_at_once() -> None:
    token, called = CancelToken(), list[str]()

    with token.calling(lambda: called.append("first")):
        with token.calling(lambda: called.append("second")):
            token.cancel("after_model")
            assert called == []
            token.cancel()
            assert called == ["first", "second"]
        token.cancel()
    token.cancel()
    assert called == ["first", "second", "first"]


async def test_who_begins_to_wait_too_late_is_called_soon_and_not_at_once() -> None:
    token, called = CancelToken(), asyncio.Event()
    token.cancel()

    with token.calling(called.set):
        assert not called.is_set()
        await called.wait()
