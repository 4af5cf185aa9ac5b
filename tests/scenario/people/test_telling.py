"""Whom a message calls: exactly the people who can act now; requesters by their plain names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.layout.action_ids import ActionId
from slack_sandbox.workspace.people import ADA, BEN, GUS, MIA, ONCALL, ROSA
from tests.scenario.people.payers import TEAM, asked
from tests.support.stage import APPROVE, Stage, values_of

GROUPS = {"oncall": f"usergroups: [{ONCALL}]", **TEAM}


def bell(stage: Stage, user: str) -> list[dict[str, Any]]:
    """The notifications of somebody's phone that say that they are mentioned."""
    shown = stage.sandbox._hub.notifications.shown(user)
    return [notification for notification in shown if notification["why"] == "mention"]


def rung(stage: Stage) -> set[str]:
    return {user_id for user_id in (ROSA, ADA, BEN, MIA, GUS) if bell(stage, user_id)}


async def test_the_phones_of_a_user_group_ring_and_say_what_waits(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [oncall]}]", GROUPS) as stage:
        card = await stage.card(word=APPROVE)
        assert rung(stage) == {ADA, BEN}
        (notification,) = bell(stage, ADA)
        assert notification["text"].startswith(f"<!subteam^{ONCALL}>")
        assert "Pay 10 to acme" in notification["text"]
        assert "Rosa Ortiz" in notification["text"]
        assert f"<@{ROSA}>" not in str(card)


async def test_a_requester_who_is_an_approver_is_not_called(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [team]}]", words="") as stage:
        await stage.say("Ada", "@countersign pay")
        await stage.card(word=APPROVE)
        assert rung(stage) == {BEN, MIA}


async def test_the_phone_of_who_asks_a_question_does_not_ring(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [oncall]}]", GROUPS) as stage:
        card = await stage.card(word=APPROVE)
        before = len(bell(stage, ADA))
        await stage.choose("Ada", card, ActionId.ASK_BACK)
        form = await stage.modal("Ada")
        values = values_of(form)
        for name, state in values.items():
            if name == "question":
                next(iter(state.values()))["value"] = "Which invoice is it?"
        assert "errors" not in await stage.sandbox.submit(ADA, form, values)
        await stage.until(lambda: bool(bell(stage, ROSA)))
        assert "Which invoice" in str(bell(stage, ROSA))
        assert len(bell(stage, ADA)) == before
