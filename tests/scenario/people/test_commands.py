"""What `/countersign` lists, through Slack's own payloads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bot.words import say
from tests.support.stage import PATIENCE_S, Stage, a_stage

DEPLOY = "deploy payments 1.4.2 to production"
WAITING = [f"{DEPLOY}\n{say('command.stop_waits')} #ops"] * 12


async def listed(stage: Stage, user: str, text: str) -> dict[str, Any]:
    """What the command answers, privately."""
    count = len(stage.sandbox.ephemerals(stage.user(user)))
    await stage.sandbox.command(stage.user(user), stage.channel, "/countersign", text)
    await stage.sandbox.until(lambda: len(stage.sandbox.ephemerals(stage.user(user))) > count)
    answer: dict[str, Any] = stage.sandbox.ephemerals(stage.user(user))[-1]
    return answer


async def test_stop_counts_all_threads_and_has_two_lines_a_row(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        for _ in range(12):
            await stage.say("Rosa", f"@countersign {DEPLOY}")
        rows: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while rows != WAITING and time.monotonic() < until:
            answer = await listed(stage, "Rosa", "stop")
            rows = [
                one["text"]["text"] for one in answer.get("blocks", []) if one["type"] == "section"
            ]
        assert (answer["text"], rows) == (say("command.stop", n=12), WAITING)
        assert "↵" not in str(answer)
