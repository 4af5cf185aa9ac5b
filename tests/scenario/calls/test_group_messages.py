"""Direct messages among several people work as channels do."""

from __future__ import annotations

from pathlib import Path

from tests.support.stage import APPROVE, a_stage, buttons


async def test_members_of_a_group_message_are_heard_and_decide(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        people = [stage.user(name) for name in ("Rosa", "Ada", "Ben")]
        stage.room = stage.sandbox.add_group_message(people).name
        await stage.restart_bot(COUNTERSIGN_CHANNELS=stage.channel)
        root = await stage.say("Rosa", "@countersign deploy payments")
        await stage.card()
        await stage.say("Rosa", "1.4.2 to production", thread_ts=root)
        card = await stage.card(number=2, word=APPROVE)
        await stage.click("Ben", card, APPROVE)
        assert buttons(await stage.card(number=2, word="pproved")) == []
