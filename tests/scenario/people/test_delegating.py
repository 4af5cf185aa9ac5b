"""A right to decide that is handed over from a card, through Slack's own payloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import ADA
from tests.support.stage import Stage, a_stage, values_of


async def form_of(stage: Stage, card: dict[str, Any]) -> dict[str, Any]:
    """The form that delegates, as Ada opens it from a card."""
    await stage.choose("Ada", card, ActionId.DETAILS)
    views = stage.sandbox.open_views
    await stage.until(lambda: ActionId.HAND_OVER in str(views(ADA)))
    review = await stage.modal("Ada")
    await stage.sandbox.click_in_view(ADA, review, ActionId.HAND_OVER)
    return await stage.modal("Ada")


async def test_one_request_is_delegated_and_no_other(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_APPROVERS=ADA) as stage:
        await stage.asked("@countersign deploy payments 1.4.2 to production", word=ActionId.APPROVE)
        second = await stage.asked(
            "@countersign deploy search 2.0.1 to production", number=2, word=ActionId.APPROVE
        )
        view = await form_of(stage, second)
        (what,) = [block for block in view["blocks"] if block.get("block_id") == "what"]
        assert what["element"]["initial_option"]["text"]["text"] == say("form.hand_this")
        values = values_of(view)
        values["to"]["countersign:value"]["selected_user"] = stage.user("Mia")
        await stage.sandbox.submit(ADA, view, values)
        first, second = stage.cards()
        await stage.click("Mia", first, ActionId.APPROVE)
        await stage.whispered("Mia", "not an approver")
        await stage.click("Mia", second, ActionId.APPROVE)
        done = await stage.card(number=2, word="Approved")
        assert stage.user("Mia") in str(done)
        assert ActionId.APPROVE in str(stage.cards()[0])
