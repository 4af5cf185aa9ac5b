"""A refusal names the people who can decide now, and says when somebody can themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.layout.action_ids import ActionId
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, GUS, MIA, ROSA
from tests.scenario.people.payers import asked, policy_of
from tests.support.stage import APPROVE, Stage, write_policy

EDIT = ActionId.EDIT.value


PAIR = {"team": f"users: [{ADA}, {BEN}]"}


async def private_reply(stage: Stage, user: str, action: str = APPROVE) -> str:
    """Press a button, and give the private answer."""
    card = await stage.card(word=APPROVE)
    answer = await stage.answered(user, stage.click(user, card, action))
    return str(answer["text"])


async def test_who_is_out_of_the_policy_by_now_is_not_named(tmp_path: Path) -> None:
    ask = "approve: [{from: [team]}]"
    async with asked(tmp_path, ask) as stage:
        await stage.card(word=APPROVE)
        write_policy(tmp_path, policy_of(ask, {"team": f"users: [{BEN}, {MIA}]"}))
        assert stage.bot is not None
        assert stage.bot.policy is not None
        assert await stage.bot.policy.reload(anew=True)
        words = await private_reply(stage, "Ada")
        assert f"<@{ADA}>" not in words
        assert words == say("refuse.not_approver", who=f"<@{BEN}> or <@{MIA}>")


async def test_a_second_vote_of_one_person_hears_who_is_missing(tmp_path: Path) -> None:
    ask = "approve: [{from: [team], count: 2}]"
    async with asked(tmp_path, ask) as stage:
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        await stage.card(word="1 of 2")
        words = await private_reply(stage, "Ada")
        assert words == say("refuse.voted_already_who", who=f"<@{BEN}> or <@{MIA}>")


@pytest.mark.parametrize("action", [APPROVE, EDIT])
async def test_a_backup_hears_since_when_they_can_and_who_can_until_then(
    tmp_path: Path, action: str
) -> None:
    ask = "approve: [{from: [team]}], escalate: [{after: 1h, add: [boss]}], edit: yes"
    groups = {**PAIR, "boss": f"users: [{MIA}]"}
    async with asked(tmp_path, ask, groups) as stage:
        words = await private_reply(stage, "Mia", action=action)
        _, _, end = say("refuse.not_yet_backup", time="|", who=f"<@{ADA}> or <@{BEN}>").partition(
            "|"
        )
        assert words.endswith(end)
        assert "<!date^" in words


async def test_a_guest_hears_nothing_of_the_approvers(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [team]}]", PAIR) as stage:
        stage.sandbox.join(GUS, stage.channel)
        words = await private_reply(stage, "Gus")
        assert words == say("refuse.guest_here")
        assert ROSA not in words


async def test_who_had_a_vote_by_a_delegate_hears_that(tmp_path: Path) -> None:
    ask = "approve: [{from: [team], count: 2}]"
    async with asked(tmp_path, ask, PAIR) as stage:
        await stage.answered("Ben", stage.command("Ben", f"away until fri for <@{MIA}>"))
        await stage.click("Mia", await stage.card(word=APPROVE), APPROVE)
        await stage.card(word="1 of 2")
        assert "You, or someone for you, already voted." in await private_reply(stage, "Ben")
