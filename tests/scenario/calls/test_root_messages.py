"""Signs at the root of a thread, and the word that stops the agent, as people see them in Slack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.stage import Stage, a_stage


def reactions(stage: Stage) -> list[str]:
    root: dict[str, Any] = stage.messages()[0]
    return [reaction["name"] for reaction in root.get("reactions", [])]


async def test_the_root_says_what_waits_and_how_it_ended(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        card = await stage.asked("@countersign deploy payments 1.4.2 to production")
        await stage.until(lambda: reactions(stage) == ["hourglass_flowing_sand"])
        await stage.click("Ada", card, "countersign:approve")
        await stage.said(r"^Done\. ")
        await stage.until(lambda: reactions(stage) == ["white_check_mark"])


async def test_stop_ends_it_and_the_root_says_so(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        root = await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
        await stage.card()
        await stage.say("Rosa", "stop", thread_ts=root)
        text = await stage.said("^Stopped by Rosa")
        assert "Didn't run: Deploy payments 1.4.2 to production." in text
        await stage.until(lambda: reactions(stage) == ["black_square_for_stop"])


async def test_without_the_scope_a_line_in_the_channel_says_it(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        stage.sandbox.scopes.discard("reactions:write")
        card = await stage.asked("@countersign deploy payments 1.4.2 to production")
        await stage.rest()
        lines = [
            message
            for message in stage.messages()
            if "thread_ts" not in message and message.get("bot_id")
        ]
        is_broadcast = card.get("subtype") == "thread_broadcast"
        assert bool(lines) != is_broadcast
        await stage.rest()
        await stage.click("Ada", card, "countersign:approve")
        await stage.said(r"^Done\. ")  # and the app is not taken for refused


async def test_who_are_you_is_answered_privately_and_costs_no_model(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await stage.say("Rosa", "@countersign who are you?")
        text = await stage.whispered("Rosa", "^I'm \\*oncall\\*")
        assert "Without asking, I can: get status" in text
        assert "With approval, I can: deploy, roll back" in text
        assert "the members of this channel can approve" in text
        await stage.rest()
        assert stage.texts() == []
