"""Slack's rate limits are never in the way of a decision: look-ups are few, and paced."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from slack_sandbox.workspace.records import UserGroup
from tests.support.sizes import size
from tests.support.stage import APPROVE, Stage, a_stage, write_policy

GROUP = "S0ONCALL01"
LOOKUPS = ("users.", "usergroups.", "conversations.members")
POLICY = """\
version: 1
groups:
{groups}
rules:
  - name: everything
    when: {{gated: true}}
    then: {{ask: {{approve: [{{from: [{named}], count: {count}}}]}}}}
default: allow
"""


def a_policy(folder: Path, groups: dict[str, str], *, count: int = 1) -> str:
    """Write a policy in which one of some user groups decides; return its path."""
    lines = "\n".join(
        f"  {name}: {{usergroups: [{group_id}]}}" for name, group_id in groups.items()
    )
    return write_policy(folder, POLICY.format(groups=lines, named=", ".join(groups), count=count))


def lookups(stage: Stage, since: int = 0) -> list[str]:
    """The look-ups that Slack answered or refused."""
    calls = stage.sandbox.calls[since:]
    return [call.method for call in calls if call.method.startswith(LOOKUPS)]


async def crowd(stage: Stage, number: int) -> list[str]:
    """Add people to the group that decides; return their ids."""
    people = [stage.sandbox.add_person(f"person{n}").id for n in range(number)]
    for user_id in people:
        stage.sandbox.join(user_id, stage.channel)
        stage.sandbox.join_group(user_id, GROUP)
    await stage.sandbox.idle()
    return people


async def ask_for(stage: Stage, number: int) -> list[dict[str, Any]]:
    """Have Rosa ask for many calls, each in a thread of its own; return their cards."""
    for n in range(number):
        await stage.asked(f"@countersign deploy payments 1.4.{n} to production", number=n + 1)
    return stage.cards()


async def all_approved(stage: Stage, number: int) -> None:
    """Let time pass until all cards say that their calls are approved."""

    def approved() -> int:
        return len([card for card in stage.cards() if "Approved" in str(card)])

    for _ in range(60):
        with suppress(TimeoutError):
            await stage.until(lambda: approved() == number, within=0.5)
            return
        await stage.later(seconds=5)
    raise AssertionError([card["text"] for card in stage.cards()])


async def test_a_hundred_clicks_in_a_minute_need_few_look_ups(tmp_path: Path) -> None:
    policy = a_policy(tmp_path, {"oncall": GROUP}, count=10)
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=policy) as stage:
        people = await crowd(stage, 10)
        cards = await ask_for(stage, 10)
        stage.clock.forward(minutes=10)  # all that was looked up is too old to decide
        since, room = len(stage.sandbox.calls), stage.channel
        for card in cards:  # all at once
            await asyncio.gather(
                *(stage.sandbox.click(user_id, room, card["ts"], APPROVE) for user_id in people)
            )
        made = lookups(stage, since)
        assert len(made) <= 5, made
        await all_approved(stage, 10)
        assert [m["text"] for user_id in people for m in stage.sandbox.ephemerals(user_id)] == []


async def test_many_requests_in_two_minutes_are_all_decided(tmp_path: Path) -> None:
    count = size(20, 40)
    policy = a_policy(tmp_path, {"oncall": GROUP})
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=policy) as stage:
        for number in range(count):
            card = await stage.asked(
                f"@countersign deploy payments 1.4.{number} to production", number=number + 1
            )
            await stage.click("Ada", card, APPROVE)
        await all_approved(stage, count)
        assert stage.sandbox.ephemerals(stage.user("Ada")) == []
        assert len(lookups(stage)) <= 4, lookups(stage)


async def test_a_policy_with_sixty_groups_starts_three_times_in_a_minute(tmp_path: Path) -> None:
    groups = {f"group{n}": f"S0GROUP{n:03d}" for n in range(60)}
    async with a_stage(tmp_path, "http") as stage:
        for name, group_id in groups.items():
            group = UserGroup(id=group_id, handle=name, name=name, members=[stage.user("Ada")])
            stage.sandbox.workspace.groups[group_id] = group
        policy = a_policy(tmp_path, groups)
        since = len(stage.sandbox.calls)
        for _ in range(3):
            await stage.restart_bot(COUNTERSIGN_POLICY=policy)
        assert lookups(stage, since) == ["usergroups.list"] * 3


async def test_a_start_waits_while_slack_allows_no_look_up(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "http") as stage:
        policy = a_policy(tmp_path, {"oncall": GROUP})
        await stage.stop_bot()
        stage.sandbox.fail("auth.test", error="ratelimited", retry_after=20)
        stage.sandbox.fail("usergroups.list", error="ratelimited", retry_after=20)
        await stage.start_bot(COUNTERSIGN_POLICY=policy)
        assert stage.bot is not None


async def test_i13_who_was_taken_out_of_the_group_decides_nothing(tmp_path: Path) -> None:
    policy = a_policy(tmp_path, {"oncall": GROUP})
    async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=policy) as stage:
        (card,) = await ask_for(stage, 1)
        stage.sandbox.leave_group(stage.user("Ada"), GROUP)
        await stage.sandbox.idle()
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "not an approver for this")
        stage.sandbox.deactivate(stage.user("Ben"))
        await stage.sandbox.idle()
        await stage.click("Ben", card, APPROVE)
        await stage.whispered("Ben", "deactivated")


async def test_i13_a_removal_that_no_event_told_counts_after_ten_minutes(tmp_path: Path) -> None:
    policy = a_policy(tmp_path, {"oncall": GROUP})
    async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=policy) as stage:
        (card,) = await ask_for(stage, 1)
        stage.sandbox.workspace.groups[GROUP].members = [stage.user("Ben")]
        stage.clock.forward(minutes=10)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "not an approver for this")


async def test_who_clicks_while_slack_allows_no_look_up_is_told_when_to_click_again(
    tmp_path: Path,
) -> None:
    policy = a_policy(tmp_path, {"oncall": GROUP})
    async with a_stage(tmp_path, "http", COUNTERSIGN_POLICY=policy) as stage:
        (card,) = await ask_for(stage, 1)
        stage.clock.forward(minutes=10)
        stage.sandbox.fail("usergroups.list", error="ratelimited", retry_after=20)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", r"Slack lets me check this again in (20|19) s\.")
