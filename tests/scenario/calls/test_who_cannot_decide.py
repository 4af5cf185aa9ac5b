"""What a policy names and Slack cannot give is said at the start, and on the card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.errors import FaultyPolicyError
from bot.words import say
from slack_sandbox import OPS
from tests.support.stage import APPROVE, Stage, a_stage, write_policy

POLICY = """\
version: 1
groups:
  deciders: {{{who}}}
rules:
  - name: everything
    when: {{gated: true}}
    then: {{ask: {{approve: [{{from: [deciders]}}]}}}}
default: allow
"""


async def restart(stage: Stage, folder: Path, who: str) -> None:
    """Start the bot anew with a policy in which some people decide."""
    path = write_policy(folder, POLICY.format(who=who))
    await stage.restart_bot(COUNTERSIGN_POLICY=path)


async def test_a_channel_that_is_too_large_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_stage(tmp_path, "http") as stage:
        room = stage.sandbox.workspace.channels[OPS]
        room.members.extend(stage.sandbox.add_person(f"person{n}").id for n in range(1_200))
        count = len(room.members)
        await restart(stage, tmp_path, f"channels: [{OPS}]")
        assert f"{OPS} has {count} members" in caplog.text
        await stage.say("Rosa", "@countersign deploy payments 1.4.2 to production")
        shown = f"<#{OPS}> has {count:,} members; at most 500 can decide"
        await stage.until(lambda: shown in str(stage.messages()))


async def test_a_plan_without_user_groups_is_named(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        stage.sandbox.fail("usergroups.list", error="plan_upgrade_required", times=1_000)
        with pytest.raises(FaultyPolicyError) as raised:
            await restart(stage, tmp_path, "usergroups: [S0ONCALL01]")
        assert "this Slack plan has none" in str(raised.value)
        assert "plan_upgrade_required" in str(raised.value)
        assert "name people with users:" in str(raised.value)


async def test_members_come_in_pages_that_are_not_full(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        stage.sandbox.features.page = 2
        await restart(stage, tmp_path, f"channels: [{OPS}]")
        card = await stage.asked("@countersign deploy payments 1.4.2 to production")
        await stage.click("Mia", card, APPROVE)
        await stage.card(word="pproved")


@pytest.mark.parametrize(
    ("facts", "may"),
    [
        ({"team_id": "T0OTHERONE", "is_hidden": True}, False),
        ({"team_id": "T0OTHERONE", "enterprise_id": "E1", "teams": ("T0OTHERONE",)}, False),
        ({"team_id": "T0OTHERONE", "enterprise_id": "E1", "teams": ("T0ACMEWORK",)}, True),
    ],
    ids=["a hidden stranger", "of the organization", "of this workspace, too"],
)
async def test_people_of_other_workspaces(tmp_path: Path, facts: dict[str, Any], may: bool) -> None:
    async with a_stage(tmp_path, "http") as stage:
        zoe = stage.sandbox.add_person("zoe", **facts)
        stage.sandbox.join(zoe.id, OPS)
        await restart(stage, tmp_path, f"users: [U0ADALINDQ], channels: [{OPS}]")
        card = await stage.asked("@countersign deploy payments 1.4.2 to production")
        click = stage.sandbox.payload_of_click(zoe.id, stage.channel, card["ts"], APPROVE)
        if zoe.enterprise_id:
            click["enterprise"] = {"id": zoe.enterprise_id, "name": "Acme"}
            click["user"]["enterprise_id"] = zoe.enterprise_id
        await stage.sandbox.send_interaction(click)
        if may:
            await stage.card(word="pproved")
        else:
            await stage.whispered("zoe", say("refuse.external_here")[:20])
