"""Signed events that are none of the bot's start no agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.words import say
from slack_sandbox import RANDOM
from tests.support.stage import Stage, a_stage

ASK = "<@U0COUNTERS> deploy payments 1.4.2 to production"


def a_mention(stage: Stage, **changes: Any) -> dict[str, Any]:
    """A mention by Rosa that stands in no channel of the stand-in for Slack."""
    ts = stage.sandbox.workspace.ids.ts()
    event = {"type": "app_mention", "user": stage.user("Rosa"), "text": ASK, "ts": ts}
    return {**event, "channel": stage.channel, "event_ts": ts, **changes}


async def settled(stage: Stage) -> None:
    await stage.sandbox.idle()
    await stage.rest()


@pytest.mark.parametrize("changes", [{"hidden": True}, {"channel": RANDOM}], ids=str)
async def test_a_hidden_event_or_one_from_outside_starts_no_agent(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    async with a_stage(tmp_path, "http") as stage:
        stage.sandbox.emit(a_mention(stage, **changes))
        await settled(stage)
        methods = {call.method for call in stage.sandbox.calls}
        assert not [method for method in methods if method.startswith(("chat.", "reactions."))]


async def test_an_installation_for_an_organisation_is_said_not_to_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_stage(tmp_path, "http") as stage:
        envelope = {
            "type": "event_callback",
            "team_id": stage.sandbox.workspace.team_id,
            "api_app_id": stage.sandbox.workspace.app_id,
            "event_id": "Ev0ORGWIDE",
            "event": a_mention(stage),
            "authorizations": [
                {
                    "enterprise_id": "E0ACME",
                    "team_id": None,
                    "user_id": stage.sandbox.workspace.bot_user,
                    "is_bot": True,
                    "is_enterprise_install": True,
                }
            ],
        }
        stage.sandbox.announce(envelope)
        await stage.whispered("Rosa", say("refuse.organisation"))
        await settled(stage)
        assert stage.cards() == []
        records = [
            record
            for record in caplog.records
            if record.__dict__.get("action") == "install_unsupported"
        ]
        assert [record.levelname for record in records] == ["WARNING"]
