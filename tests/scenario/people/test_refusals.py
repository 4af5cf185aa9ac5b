"""A refusal names the people who can decide now, and says when somebody can themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, GUS, MIA, ONCALL, ROSA
from tests.scenario.people.payers import RAN, write_policy
from tests.scenario.people.test_commands import listed
from tests.scenario.test_main_job import APPROVE
from tests.support.stage import Stage, a_stage

EDIT = ActionId.EDIT.value


@asynccontextmanager
async def asked(tmp_path: Path, users: str, ask: str) -> AsyncIterator[Stage]:
    RAN.clear()
    environ = {
        "COUNTERSIGN_AGENT": "tests.scenario.people.payers:once",
        "COUNTERSIGN_POLICY": write_policy(tmp_path, policy(users, ask)),
    }
    async with a_stage(tmp_path, "socket", **environ) as stage:
        await stage.say("Rosa", "@countersign pay")
        yield stage


def policy(users: str, ask: str) -> str:
    groups = f"groups:\n  team: {{users: [{users}]}}\n  duty: {{usergroups: [{ONCALL}]}}\n"
    groups += f"  boss: {{users: [{MIA}]}}\n"
    return f"version: 1\n{groups}rules: []\ndefault:\n  ask: {{{ask}}}\n"


async def private_reply(stage: Stage, user: str, number: int = 1, action: str = APPROVE) -> str:
    """Press a button, and give the private answer."""
    person = stage.user(user)
    before = len(stage.sandbox.ephemerals(person))
    await stage.click(user, await stage.card(number=number, word=APPROVE), action)
    await stage.until(lambda: len(stage.sandbox.ephemerals(person)) > before)
    return str(stage.sandbox.ephemerals(person)[-1]["text"])


async def test_who_is_out_of_the_policy_by_now_is_not_named(tmp_path: Path) -> None:
    ask = "approve: [{from: [team]}]"
    async with asked(tmp_path, f"{ADA}, {BEN}, {MIA}", ask) as stage:
        await stage.card(word=APPROVE)
        write_policy(tmp_path, policy(f"{BEN}, {MIA}", ask))
        assert stage.bot is not None
        assert stage.bot.policy is not None
        assert await stage.bot.policy.reload(anew=True)
        words = await private_reply(stage, "Ada")
        assert f"<@{ADA}>" not in words
        assert words == say("refuse.not_approver", who=f"<@{BEN}> or <@{MIA}>")


async def test_a_second_vote_of_one_person_hears_who_is_missing(tmp_path: Path) -> None:
    ask = "approve: [{from: [team], count: 2}]"
    async with asked(tmp_path, f"{ADA}, {BEN}, {MIA}", ask) as stage:
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        await stage.card(word="1 of 2")
        words = await private_reply(stage, "Ada")
        assert words == say("refuse.voted_already_who", who=f"<@{BEN}> or <@{MIA}>")


@pytest.mark.parametrize("action", [APPROVE, EDIT])
async def test_a_backup_hears_since_when_they_can_and_who_can_until_then(
    tmp_path: Path, action: str
) -> None:
    ask = "approve: [{from: [team]}], escalate: [{after: 1h, add: [boss]}], edit: yes"
    async with asked(tmp_path, f"{ADA}, {BEN}", ask) as stage:
        words = await private_reply(stage, "Mia", action=action)
        _, _, end = say("refuse.not_yet_backup", time="|", who=f"<@{ADA}> or <@{BEN}>").partition(
            "|"
        )
        assert words.endswith(end)
        assert "<!date^" in words


async def test_a_guest_hears_nothing_of_the_approvers(tmp_path: Path) -> None:
    async with asked(tmp_path, f"{ADA}, {BEN}", "approve: [{from: [team]}]") as stage:
        stage.sandbox.join(GUS, stage.channel)
        words = await private_reply(stage, "Gus")
        assert words == say("refuse.guest_here")
        assert ROSA not in words


async def test_who_had_a_vote_by_a_delegate_hears_that(tmp_path: Path) -> None:
    ask = "approve: [{from: [team], count: 2}]"
    async with asked(tmp_path, f"{ADA}, {BEN}", ask) as stage:
        await listed(stage, "Ben", f"away until fri for <@{MIA}>")
        await stage.click("Mia", await stage.card(word=APPROVE), APPROVE)
        await stage.card(word="1 of 2")
        assert "You, or someone for you, already voted." in await private_reply(stage, "Ben")
