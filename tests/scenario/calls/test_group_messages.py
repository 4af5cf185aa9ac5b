"""Direct messages among several people work as channels do."""

from __future__ import annotations

from pathlib import Path

from tests.support.stage import Stage, a_stage, buttons

APPROVE = "countersign:approve"


async def in_a_group_message(stage: Stage) -> None:
    """Take the play into a direct message of Rosa, Ada, Ben and the bot."""
    people = [stage.user(name) for name in ("Rosa", "Ada", "Ben")]
    stage.room = stage.sandbox.add_group_message(people).name
    await stage.stop_bot()
    await stage.start_bot(COUNTERSIGN_CHANNELS=stage.channel)


async def test_members_of_a_group_message_decide(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket") as stage:
        await in_a_group_message(stage)
        await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
        card = await stage.card()
        await stage.click("Ben", card, APPROVE)
        assert buttons(await stage.card(word="pproved")) == []


async def test_a_reply_in_the_thread_of_a_group_message_is_heard(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        await in_a_group_message(stage)
        root = await stage.say("Rosa", "@countersign deploy payments")
        await stage.card()
        await stage.say("Rosa", "1.4.2 to production", thread_ts=root)
        await stage.card(number=2, word=APPROVE)
