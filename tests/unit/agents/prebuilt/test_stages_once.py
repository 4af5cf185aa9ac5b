"""Calls that people let run at a stage start at most once, at whichever write the process dies."""

from __future__ import annotations

import itertools
from functools import partial

import pytest

from agents import Agent, InDoubtInfo, InDoubtResult, InterruptContext
from agents.models import Turn, call, say
from agents.prebuilt import StageInfo, create_react_agent
from tests.unit.agents.support import DyingStore, Plain, brief
from tests.unit.agents.team import Team


def letting(stage: dict[str, list[str]], delete: Plain, durability: str) -> Team:
    """An agent whose calls people let run together."""

    def build(team: Team) -> Agent:
        return create_react_agent(team.model("A"), [delete], name="A", **stage)  # type: ignore[arg-type]

    script: list[Turn] = [call("delete", id="c1"), say("done")]
    return Team(build, {"A": script}, durability=durability, by_history=True)


def go_on(asked: list[object], context: InterruptContext) -> object:
    """Let all go on, and say of each doubt that it ran."""
    asked.append(context.info)
    if isinstance(context.info, InDoubtInfo):
        return InDoubtResult(choice="ran")
    assert isinstance(context.info, StageInfo)
    return context.info.go_on()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("durability", ["step", "interrupt"])
@pytest.mark.parametrize("stage", [{"interrupt_before": ["tools"]}, {"interrupt_after": ["agent"]}])
async def test_i5_calls_of_a_stage_run_once_and_are_asked_about_once(
    stage: dict[str, list[str]], durability: str, *, before: bool
) -> None:
    doubts = 0
    for at in itertools.count(1):
        delete, asked = Plain("delete"), list[object]()
        team = letting(stage, delete, durability)
        events = await team.dies_once(partial(go_on, asked), at=at, before=before)
        in_doubt = sum(isinstance(info, InDoubtInfo) for info in asked)
        assert len(delete.calls) <= 1, f"write {at}"
        assert delete.calls or in_doubt, f"write {at}"
        assert brief(events)[-1] == "says done"
        shown = [info for info in asked if isinstance(info, StageInfo) and info.calls]
        assert len({info.digest for info in shown}) == 1, f"write {at}"
        doubts += in_doubt
        if isinstance(team.store, DyingStore):  # it has not died
            break
    assert doubts > 0
