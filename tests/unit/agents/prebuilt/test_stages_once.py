"""Calls that people let run at a stage start at most once, at whichever write the process dies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart

from agents import InDoubtInfo, InDoubtResult, MemoryCheckpointStore, Runner, tool
from agents.core.checkpoint import CheckpointStatus
from agents.models import AnsweringModel, call, say
from agents.prebuilt import StageInfo, create_react_agent
from tests.unit.agents.support import Died, DyingStore, brief, collect


def _answer(messages: Sequence[ModelMessage]) -> list[ModelResponsePart]:
    has_called = any(isinstance(message, ModelResponse) for message in messages)
    return [say("done") if has_called else call("delete", id="c1")]


class Office:
    """An agent whose tools people let run together, in processes that may die."""

    def __init__(self, stage: str, durability: str) -> None:
        before = ["tools"] if stage == "before" else []
        after = ["agent"] if stage == "after" else []
        self.options = {"interrupt_before": before, "interrupt_after": after}
        self.durability = durability
        self.acted = 0
        self.asked: list[object] = []
        self.store = MemoryCheckpointStore()

    def runner(self, store: object) -> Runner:
        @tool
        def delete() -> str:
            """Delete."""
            self.acted += 1
            return "deleted"

        model = AnsweringModel(_answer, name="m")
        agent = create_react_agent(model, [delete], name="A", **self.options)  # type: ignore[arg-type]
        return Runner(agent, checkpoint_store=store, durability=self.durability)  # type: ignore[arg-type]

    async def play(self, runner: Runner) -> str:
        """Let all go on, and say of each doubt that it ran; return the last line."""
        last = ""
        for _ in range(20):
            stored = await self.store.load("1")
            if stored is None:
                events = await collect(runner.query("Go.", checkpoint_id="1"))
            elif stored.status is CheckpointStatus.RUNNING:
                events = await collect(runner.recover("1"))
            elif stored.status is CheckpointStatus.CLOSED:
                return last
            else:
                asked = {context.id: context.info for context in await runner.pending("1")}
                self.asked += asked.values()
                answers = {name: _yes(info) for name, info in asked.items()}
                events = await collect(runner.resume("1", answers))
            last = brief(events)[-1] if events else last
        pytest.fail("the run did not end")


def _yes(info: object) -> object:
    if isinstance(info, InDoubtInfo):
        return InDoubtResult(choice="ran")
    assert isinstance(info, StageInfo)
    return info.go_on()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("durability", ["step", "interrupt"])
@pytest.mark.parametrize("stage", ["before", "after"])
async def test_i5_calls_of_a_stage_run_once_and_are_asked_about_once(
    stage: str, durability: str, *, before: bool
) -> None:
    doubts = 0
    for at in itertools.count(1):
        office, has_died = Office(stage, durability), False
        dying = DyingStore(office.store, at=at, before=before)
        try:
            last = await office.play(office.runner(dying))
        except Died:
            has_died = True
            last = await office.play(office.runner(office.store))
        in_doubt = sum(isinstance(info, InDoubtInfo) for info in office.asked)
        assert office.acted <= 1, f"write {at}"
        assert office.acted == 1 or in_doubt, f"write {at}"
        assert last in {"says done", ""}
        shown = [info for info in office.asked if isinstance(info, StageInfo) and info.calls]
        assert len({info.digest for info in shown}) == 1, f"write {at}"
        doubts += in_doubt
        if not has_died:
            break
    assert doubts > 0
