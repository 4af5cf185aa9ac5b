"""What Details says of a request that waits, and whom its approvers can ask."""

from __future__ import annotations

from pathlib import Path

from bot.demo import POLICY
from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import BOT_USER
from tests.support.stage import a_stage, values_of


async def test_details_say_who_voted_and_that_an_edit_removes_votes(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(POLICY)) as stage:
        card = await stage.asked(
            "@countersign deploy payments 1.4.2 to production", word=ActionId.APPROVE
        )
        await stage.click("Ada", card, ActionId.APPROVE)
        card = await stage.card(word=say("status.votes", have=1, need=2))
        await stage.choose("Ben", card, ActionId.DETAILS)
        views, ben = stage.sandbox.open_views, stage.user("Ben")
        await stage.until(lambda: ActionId.EDIT in str(views(ben)))
        shown = str((await stage.modal("Ben"))["blocks"])
        assert say("status.votes", have=1, need=2) in shown
        assert f"✅ <@{stage.user('Ada')}>" in shown or f"<@{stage.user('Ada')}>, " in shown
        assert say("line.edit_voids", n=1) in shown


async def test_the_bot_is_nobody_to_be_asked(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(POLICY)) as stage:
        card = await stage.asked(
            "@countersign deploy payments 1.4.2 to production", word=ActionId.APPROVE
        )
        await stage.choose("Ada", card, ActionId.ASK_BACK)
        view = await stage.modal("Ada")
        values = values_of(view, question="why now?", your="why now?")
        values["whom"]["countersign:value"]["selected_option"] = {"value": "other"}
        values["person"]["countersign:value"]["selected_user"] = BOT_USER
        values["question"]["countersign:value"]["value"] = "why now?"
        outcome = await stage.sandbox.submit(stage.user("Ada"), view, values)
        assert outcome["errors"] == {"person": say("refuse.ask_app")}
