"""What acts on an answer acts once, though its process is killed: then people say what happened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.calls.answered_agents import ASKED
from tests.scenario.storage.test_restarts import (
    Process,
    environ_of,
    stage as stage,  # noqa: PLC0414 - a fixture
)
from tests.support.stage import APPROVE, Stage, buttons

AGAIN, LEAVE = "countersign:again", "countersign:give_up"
AGENTS = (
    "approved_node",
    "answered_node",
    "old_node",
    "asking_tool",
    "stage",
    "function",
    "hook",
)


def has_button(stage: Stage, action_id: str) -> list[dict[str, Any]]:
    return [message for message in stage.messages() if action_id in buttons(message)]


async def message_with(stage: Stage, action_id: str) -> dict[str, Any]:
    await stage.until(lambda: bool(has_button(stage, action_id)))
    return has_button(stage, action_id)[0]


@pytest.mark.parametrize(
    ("agent", "choice"),
    [(agent, AGAIN) for agent in AGENTS] + [("approved_node", LEAVE), ("asking_tool", LEAVE)],
)
async def test_i5_what_acted_on_an_answer_before_a_crash_is_in_doubt(
    tmp_path: Path, stage: Stage, agent: str, choice: str
) -> None:
    acted = tmp_path / "acted"
    environ = environ_of(stage.sandbox, tmp_path / "data") | {
        "ACTED": str(acted),
        "COUNTERSIGN_AGENT": f"tests.scenario.calls.answered_agents:{agent}",
    }
    process = Process(environ, tmp_path / "log")
    try:
        await process.start()
        asked = await stage.asked("@countersign go", word=APPROVE if agent == "stage" else ASKED)
        if agent in {"approved_node", "stage"}:
            await stage.click("Ada", asked, APPROVE)
        else:
            await stage.say("Ada", "yes", thread_ts=asked.get("thread_ts"))
        assert process.child is not None
        await asyncio.to_thread(process.child.join, 20)
        assert acted.read_text(encoding="utf-8") == "deleted\n"
        await process.start()
        doubt = await message_with(stage, choice)
        assert acted.read_text(encoding="utf-8") == "deleted\n"
        await stage.click("Ben", doubt, choice)  # whoever answered led to it
        if choice == AGAIN:
            await stage.said(r"It is gone\.")
        else:
            await stage.until(lambda: not has_button(stage, choice))
        times = len(acted.read_text(encoding="utf-8").splitlines())
    finally:
        process.close()
    assert times == (2 if choice == AGAIN else 1)
