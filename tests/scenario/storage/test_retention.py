"""COUNTERSIGN_RETENTION: what rests for longer is deleted, and what waits for people stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.layout.action_ids import ActionId
from storage.errors import RecordNotFoundError
from tests.support.stage import a_stage


async def test_a_thread_that_rests_is_deleted_and_one_that_waits_is_not(tmp_path: Path) -> None:
    settings = {
        "COUNTERSIGN_AGENT": "tests.scenario.people.payers:once",
        "COUNTERSIGN_RETENTION": "1d",
        "COUNTERSIGN_EXPIRE_AFTER": "7d",
        "COUNTERSIGN_REMIND_AFTER": "6d",
    }
    async with a_stage(tmp_path, "socket", **settings) as stage:
        storage = stage.storage
        ended = await stage.say("Rosa", "@countersign pay")
        card = await stage.card(word=ActionId.APPROVE)
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.said("All done")
        waits = await stage.say("Rosa", "@countersign pay")
        await stage.card(number=2, word=ActionId.APPROVE)
        await stage.command("Ada", "quiet off")
        await stage.command("Ada", "away for 1 hour")
        await stage.whispered("Ada", "You won't be mentioned")
        for _ in range(2):
            await stage.later(hours=25)
            await stage.rest()
        with pytest.raises(RecordNotFoundError):
            await storage.threads.get(stage.thread_id(ended))
        assert set(await storage.retention.counts(stage.thread_id(ended))) == {"audit"}
        assert (await storage.threads.get(stage.thread_id(waits))).turn_open
        card = stage.cards()[1]
        await stage.click("Ada", card, ActionId.APPROVE)
        await stage.until(lambda: stage.texts().count("All done.") == 2)
