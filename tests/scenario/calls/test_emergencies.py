"""An override in an emergency: its form, who is told, and who has seen it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bot.audit.report import story
from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, MIA, OPS, ROSA
from tests.scenario.people.payers import RAN, asked
from tests.support.stage import Stage, values_of

ASK = (
    "approve: [{from: [team], count: 2}], exclude: [requesters, editors], "
    f"break_glass: {{by: [boss], alert: {OPS}}}"
)
GROUPS = {"team": f"users: [{ADA}, {BEN}]", "boss": f"users: [{MIA}, {ADA}]"}


def alerts(stage: Stage, channel: str) -> list[dict[str, Any]]:
    return [message for message in stage.sandbox.messages(channel) if ActionId.SEEN in str(message)]


def filled(form: dict[str, Any], **given: str) -> dict[str, Any]:
    """The values of the form; its box is ticked unless `sure` is empty."""
    values = values_of(form)
    for name in ("what", "why_now"):
        ((_, state),) = values[name].items()
        state["value"] = given[name]
    ((_, box),) = values["sure"].items()
    (element,) = [block["element"] for block in form["blocks"] if block.get("block_id") == "sure"]
    box["selected_options"] = element["options"] if given.get("sure", "yes") else []
    return values


async def acts(stage: Stage, *wanted: str) -> list[str]:
    entries = await story(stage.storage, thread_id=stage.thread_id())
    return [f"{entry.action} {entry.actor_id}" for entry in entries if entry.action in wanted]


async def test_everybody_who_was_passed_over_is_told_and_says_so_once(tmp_path: Path) -> None:
    async with asked(tmp_path, ASK, GROUPS) as stage:
        card = await stage.card(word=ActionId.APPROVE)
        await stage.choose("Mia", card, ActionId.DETAILS)
        details = await stage.modal("Mia")
        await stage.sandbox.click_in_view(MIA, details, ActionId.OVERRIDE)
        await stage.until(lambda: "sure" in str(stage.sandbox.open_views(MIA)[-1]))
        form = await stage.modal("Mia")
        given = {"what": "The shop is down.", "why_now": "Nobody else is awake."}
        twice = filled(form, **{**given, "why_now": given["what"]})
        outcome = await stage.sandbox.submit(MIA, form, twice)
        assert outcome["errors"] == {"why_now": say("error.same_reason")}
        await stage.sandbox.submit(MIA, form, filled(form, **given))
        await stage.said("All done")
        assert RAN == [("acme", 10)]
        direct = {who: stage.sandbox.dm_id(who) for who in (ADA, BEN, MIA)}
        places = (OPS, direct[ADA], direct[BEN])
        await stage.until(lambda: all(len(alerts(stage, channel)) == 1 for channel in places))
        assert alerts(stage, direct[MIA]) == []
        for who, place in ((MIA, OPS), (ADA, direct[ADA]), (ROSA, OPS)):
            (alert,) = alerts(stage, place)
            await stage.sandbox.click(who, place, alert["ts"], ActionId.SEEN)
        await stage.whispered("Mia", re.escape(say("refuse.override_seen")))
        seen = f"Seen by <@{ADA}> <@{ROSA}>"
        await stage.until(lambda: seen in str(stage.sandbox.messages(direct[ADA])[-1]))
        await stage.rest()
        assert await acts(stage, "alert_seen", "broke_glass", "refused") == [
            f"refused {MIA}",
            f"broke_glass {MIA}",
            f"alert_seen {ADA}",
            f"alert_seen {ROSA}",
        ]
