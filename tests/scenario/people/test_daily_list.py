"""One list a day through Slack's own payloads: a direct message with buttons that stays true."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.records.people import PersonRecord
from slack_sandbox.workspace.people import ONCALL
from tests.scenario.people.payers import write_policy
from tests.support.stage import Stage, a_stage

OPEN_LIST = "countersign:home_list"
APPROVE, DETAILS = "countersign:approve", "countersign:details"
ADA, BEN = "U0ADALINDQ", "U0BENOKAFO"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    settings = {
        "COUNTERSIGN_APPROVERS": ADA,
        "COUNTERSIGN_REMIND_AFTER": "40h",
        "COUNTERSIGN_EXPIRE_AFTER": "72h",
        "COUNTERSIGN_DAILY_LIST": "yes",
    }
    async with a_stage(tmp_path, "http", **settings) as opened:
        yield opened


def lists(stage: Stage, user: str = "Ada") -> list[dict[str, Any]]:
    """The lists in somebody's direct messages."""
    channel = stage.sandbox.workspace.direct_message(stage.user(user)).id
    return [
        one
        for one in stage.sandbox.messages(channel)
        if (one.get("metadata") or {}).get("event_type") == "countersign_digest"
    ]


async def kept(stage: Stage, user_id: str = ADA) -> PersonRecord | None:
    assert stage.bot is not None
    found = await stage.bot.storage.people.of(stage.sandbox.workspace.team_id, [user_id])
    return found.get(user_id)


async def planned(stage: Stage) -> int:
    """Wait until the next list is planned; return when it is due."""
    async with asyncio.timeout(60):
        while True:
            await stage.tick()
            await stage.rest()
            person = await kept(stage)
            if person is not None and person.next_ms is not None:
                return person.next_ms
            stage.clock.forward(minutes=1)


async def go_to(stage: Stage, at_ms: int) -> None:
    await stage.rest()
    stage.clock.forward(seconds=(at_ms - stage.clock()) / 1000 + 1)
    await stage.tick()
    await stage.rest()


async def test_a_list_comes_in_the_morning_has_buttons_and_stays_true(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    card = await stage.card(word=APPROVE)
    await go_to(stage, await planned(stage))
    await stage.until(lambda: len(lists(stage)) == 1)
    (shown,) = lists(stage)
    assert shown["text"].startswith("1 request is waiting for you. The first expires <!date^")
    assert "Deploy payments 1.4.2 to production" in str(shown["blocks"])
    assert "|Open the card>" in str(shown["blocks"])
    assert lists(stage, "Ben") == []

    channel = stage.sandbox.workspace.direct_message(ADA).id
    await stage.sandbox.click(ADA, channel, shown["ts"], OPEN_LIST)
    form = await stage.modal("Ada")
    assert form["title"]["text"] == "My approvals"
    assert "Deploy payments 1.4.2" in str(form["blocks"])
    await stage.sandbox.close_view(ADA, form)

    await stage.sandbox.click(ADA, channel, shown["ts"], DETAILS)
    form = await stage.modal("Ada")
    assert "Deploy payments 1.4.2" in str(form["blocks"])

    await stage.click("Ada", card, APPROVE)
    await stage.said("1.4.2.*production")
    await stage.rest()
    stage.clock.forward(minutes=2)
    await stage.tick()
    await stage.until(lambda: "Nothing here" in lists(stage)[0]["text"])
    assert "Approved by" in str(lists(stage)[0]["blocks"])
    await stage.rest()
    person = await kept(stage)
    assert person is not None
    assert person.posted is None


async def test_a_restart_sends_no_second_one(stage: Stage) -> None:
    await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
    await stage.card(word=APPROVE)
    at_ms = await planned(stage)
    await stage.stop_bot()
    stage.clock.forward(seconds=(at_ms - stage.clock()) / 1000 + 3 * 3600)
    await stage.start_bot()
    await stage.until(lambda: len(lists(stage)) == 1)
    await stage.stop_bot()
    await stage.start_bot()
    for _ in range(3):
        stage.clock.forward(minutes=5)
        await stage.tick()
        await stage.rest()
    assert len(lists(stage)) == 1


async def test_quiet_hours_are_set_by_a_command_and_kept_over_a_restart(stage: Stage) -> None:
    await stage.sandbox.command(ADA, stage.channel, "/countersign", "quiet 22:00-07:00")
    await stage.whispered("Ada", "Direct messages muted from 10:00 PM to 7:00 AM")
    await stage.stop_bot()
    await stage.start_bot()
    await stage.sandbox.command(ADA, stage.channel, "/countersign", "quiet")
    await stage.until(
        lambda: str(stage.sandbox.ephemerals(ADA)).count("Direct messages muted from") >= 2
    )


async def test_five_that_wait_come_at_once_and_take_the_place_of_reminders(tmp_path: Path) -> None:
    policy = f"""
version: 1
groups: {{oncall: {{users: [{BEN}], usergroups: [{ONCALL}]}}, ada: {{users: [{ADA}]}}}}
rules: []
default:
  ask: {{approve: [{{from: [ada]}}, {{from: [oncall]}}], remind: 30m, expires: 3d}}
"""
    settings = {
        "COUNTERSIGN_AGENT": "tests.scenario.people.payers:once",
        "COUNTERSIGN_POLICY": write_policy(tmp_path, policy),
        "COUNTERSIGN_DAILY_LIST": "yes",
    }
    async with a_stage(tmp_path, "http", **settings) as stage:
        for number in range(5):
            await stage.say("Rosa", "@countersign pay")
            await stage.card(number=number + 1, word=APPROVE)
            await stage.rest()
        for _ in range(4):
            await stage.later(minutes=1)
        await stage.until(lambda: len(lists(stage)) == 1)
        await stage.until(lambda: len(lists(stage, "Ben")) == 1)
        assert lists(stage)[0]["text"].startswith("5 requests are waiting for you.")
        await stage.later(minutes=45)
        await stage.rest()
        assert stage.texts() == []
        for _ in range(3):
            await stage.later(minutes=20)
        await stage.until(lambda: str(stage.texts()).count("Still waiting for you") == 5)
        assert (len(lists(stage)), len(lists(stage, "Ben"))) == (1, 1)
