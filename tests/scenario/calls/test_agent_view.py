"""Slack's surface for agents, whole: things to begin with, a title, and the stop button."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scenario import agents
from tests.support.stage import Stage, a_stage

AGENT = "tests.scenario.agents:patient"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    agents.RAN.clear()
    agents.GATES[:] = [asyncio.Event()]
    async with a_stage(tmp_path, "socket", COUNTERSIGN_AGENT=AGENT) as opened:
        yield opened
        agents.GATES[0].set()
    agents.GATES.clear()


async def test_the_stop_button_stops_the_agent_at_the_end_of_its_call(stage: Stage) -> None:
    sandbox, view = stage.sandbox, stage.sandbox.workspace.agent_view
    root = await stage.say("Rosa", "@countersign measure it, password=hunter2secret")
    key = (stage.channel, root)
    await sandbox.until(lambda: key in view.sessions)
    assert view.sessions[key].status == "processing"
    assert view.sessions[key].title.startswith("measure it")
    assert "hunter2secret" not in view.sessions[key].title
    sandbox.stop_agent(stage.user("Rosa"), *key)
    await sandbox.until(lambda: _is_told(stage))
    agents.GATES[0].set()
    await stage.said("Stopped by Rosa")
    await sandbox.until(lambda: view.sessions[key].status == "active")
    assert agents.RAN == ["measuring height"]


def _is_told(stage: Stage) -> bool:
    assert stage.bot is not None
    return not stage.bot.turns.stopping.is_running(stage.thread_id())


async def test_who_opens_the_conversation_is_offered_something_to_begin_with(stage: Stage) -> None:
    sandbox, rosa = stage.sandbox, stage.user("Rosa")
    direct = sandbox.workspace.direct_message(rosa).id
    sandbox.open_home(rosa, "messages")
    prompts = sandbox.workspace.agent_view.prompts
    await sandbox.until(lambda: direct in prompts)
    assert [prompt["title"] for prompt in prompts[direct]["prompts"]] == ["What can you do?"]


async def test_without_the_agent_view_all_goes_on(stage: Stage) -> None:
    stage.sandbox.features.agent_view = False
    await stage.say("Rosa", "@countersign measure it")
    await stage.until(lambda: bool(agents.RAN))
    stage.sandbox.open_home(stage.user("Rosa"), "messages")
    agents.GATES[0].set()
    await stage.said("Both are 7")


def tasks_of(stage: Stage) -> dict[str, str]:
    """The tasks that stand in the thread."""
    blocks = [block for message in stage.messages() for block in message.get("blocks") or ()]
    tasks = [block for block in blocks if block["type"] == "task_card"]
    return {task["title"]: task["status"] for task in tasks}


async def test_a_tool_that_takes_its_time_is_a_task_until_it_has_run(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign measure it")
    await stage.until(lambda: tasks_of(stage) == {"Measure": "in_progress"})
    agents.GATES[0].set()
    await stage.said("Both are 7")
    await stage.rest()
    assert tasks_of(stage) == {"Measure": "complete"}
    assert not any(
        message.is_streaming for message in stage.sandbox.workspace.public(stage.channel)
    )
