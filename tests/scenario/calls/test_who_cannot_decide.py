"""What a policy names and Slack cannot give is said at the start, and on the card."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import FaultyPolicyError
from bot.sandbox import OPS
from tests.support.stage import Stage, a_stage

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
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(who=who))
    await stage.stop_bot()
    await stage.start_bot(COUNTERSIGN_POLICY=str(path))


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
        await stage.sandbox.until(lambda: shown in str(stage.messages()))


async def test_a_plan_without_user_groups_is_named(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        stage.sandbox.fail("usergroups.list", error="plan_upgrade_required", times=1_000)
        with pytest.raises(FaultyPolicyError) as raised:
            await restart(stage, tmp_path, "usergroups: [S0ONCALL01]")
        assert "this Slack plan has none" in str(raised.value)
        assert "plan_upgrade_required" in str(raised.value)
        assert "name people with users:" in str(raised.value)
