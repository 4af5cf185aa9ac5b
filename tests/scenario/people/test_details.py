"""What Details says of a request that waits: the same as its card."""

from __future__ import annotations

from pathlib import Path

from bot.demo import POLICY
from bot.layout.action_ids import ActionId
from bot.words import say
from tests.support.stage import a_stage


async def test_details_say_who_voted_and_that_an_edit_removes_votes(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(POLICY)) as stage:
        await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
        await stage.click("Ada", await stage.card(word=ActionId.APPROVE), ActionId.APPROVE)
        card = await stage.card(word=say("status.votes", have=1, need=2))
        await stage.choose("Ben", card, ActionId.DETAILS)
        views, ben = stage.sandbox.open_views, stage.user("Ben")
        await stage.sandbox.until(lambda: ActionId.EDIT in str(views(ben)))
        shown = str((await stage.modal("Ben"))["blocks"])
        assert say("status.votes", have=1, need=2) in shown
        assert f"✅ <@{stage.user('Ada')}>" in shown or f"<@{stage.user('Ada')}>, " in shown
        assert say("line.edit_voids", n=1) in shown
