"""What `/countersign` lists, through Slack's own payloads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from bot.words import say
from tests.support.stage import PATIENCE_S, Stage, a_stage

DEPLOY = "deploy payments 1.4.2 to production"
WAITING = [f"{DEPLOY}\n{say('command.stop_waits')} · #ops"] * 12

NOTHING = say("command.none")


async def listed(stage: Stage, user: str, text: str) -> dict[str, Any]:
    """What the command answers, privately."""
    return await stage.answered(user, stage.command(user, text))


async def test_stop_counts_all_threads_and_has_two_lines_a_row(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        for _ in range(12):
            await stage.say("Rosa", f"@countersign {DEPLOY}")
        answer: dict[str, Any] = {"text": ""}
        rows: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while rows != WAITING and time.monotonic() < until:
            await stage.later(seconds=1)  # Slack limits a channel's messages: some are posted later
            answer = await listed(stage, "Rosa", "stop")
            rows = [
                block["text"]["text"]
                for block in answer.get("blocks", [])
                if block["type"] == "section"
            ]
        assert (answer["text"], rows) == (say("command.stop", n=12), WAITING)
        assert "↵" not in str(answer)


async def reviewed(stage: Stage, user: str) -> None:
    """Approve in the form that is open."""
    view = await stage.modal(user)
    assert view["callback_id"] == ActionId.REVIEW_MODAL
    await stage.sandbox.submit(stage.user(user), view)


async def test_a_list_changes_after_its_button_was_used(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await stage.asked(f"@countersign {DEPLOY}", word=ActionId.APPROVE)
        answer = await listed(stage, "Ada", "list")
        assert "Deploy payments" in str(answer["blocks"])
        await stage.click("Ada", answer, ActionId.DETAILS)
        await reviewed(stage, "Ada")
        shown = stage.sandbox.ephemerals
        await stage.until(lambda: shown(stage.user("Ada"))[-1]["text"] == NOTHING)
        assert "Deploy payments" not in str(shown(stage.user("Ada"))[-1])


async def test_a_stopped_thread_leaves_the_list(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await stage.asked(f"@countersign {DEPLOY}", word=ActionId.APPROVE)
        await stage.rest()
        answer = await listed(stage, "Rosa", "stop")
        await stage.click("Rosa", answer, ActionId.STOP_AGENT)
        texts = say("command.stop_nothing"), say("command.stop_done")

        def shown() -> list[str]:
            return [message["text"] for message in stage.sandbox.ephemerals(stage.user("Rosa"))]

        await stage.until(lambda: sorted(shown()) == sorted(texts))


async def test_the_home_of_who_decided_changes_at_once(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await stage.asked(f"@countersign {DEPLOY}", word=ActionId.APPROVE)
        await stage.rest()
        ada = stage.user("Ada")
        home = await stage.home(ada, ActionId.DETAILS)
        # No time passes on the bot's clock, so that nothing is published by its pace.
        await stage.sandbox.click_in_view(ada, home, ActionId.DETAILS)
        await reviewed(stage, "Ada")
        await stage.until(lambda: say("home.empty") in str(stage.sandbox.home(ada)))
