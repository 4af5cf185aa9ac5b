"""A group's key in the policy file is nobody's to read: people read its title, or who is in it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from bot.demo import POLICY
from bot.layout.action_ids import ActionId
from bot.slack.cards.secondary_actions import PERSON, QUESTION
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, MIA, ONCALL, ROSA
from tests.scenario.people import payers
from tests.support.stage import APPROVE, Stage, a_stage

GROUPS = {
    "zkey-duty": f"usergroups: [{ONCALL}]",
    "zkey-team": f"users: [{ADA}, {BEN}, {MIA}], title: The whole team",
    "zkey-boss": f"users: [{MIA}]",
}
asked = partial(payers.asked, groups=GROUPS)


def everything(stage: Stage) -> str:
    """All that the bot has ever sent to Slack."""
    return str([(call.method, call.args) for call in stage.sandbox.calls])


def no_key(stage: Stage) -> None:
    sent = everything(stage)
    assert [key for key in GROUPS if key in sent] == []


async def test_one_line_says_who_voted_and_what_is_missing(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [zkey-duty], count: 2}]") as stage:
        await stage.click("Ada", await stage.card(word=APPROVE), APPROVE)
        card = await stage.card(word="1 of 2")
        lines = [line for line in _texts(card["blocks"]) if f"<@{ADA}>" in line]
        assert len(lines) == 1
        assert say("line.vote_left", n=1, who="|").partition("|")[0] in lines[0]
        assert f"<!subteam^{ONCALL}>" in lines[0]
        await stage.choose("Ben", card, ActionId.DETAILS)
        await stage.modal("Ben")
        no_key(stage)


async def test_a_title_stands_for_a_group(tmp_path: Path) -> None:
    ask = "approve: [{from: [zkey-team], count: 2}, {from: [zkey-duty]}], delegation: true"
    async with asked(tmp_path, ask) as stage:
        card = await stage.card(word="The whole team")
        await stage.click("Mia", card, APPROVE)
        await stage.card(word="1 of 3")
        await stage.choose("Ben", card, ActionId.DETAILS)
        form = await stage.modal("Ben")
        await stage.sandbox.click_in_view(BEN, form, ActionId.HAND_OVER)
        await stage.until(lambda: "The whole team" in str(stage.sandbox.open_views(BEN)))
        no_key_but_values(stage)


async def test_an_escalated_card_names_the_backup_and_since_when(tmp_path: Path) -> None:
    ask = "approve: [{from: [zkey-duty], count: 2}], escalate: [{after: 1h, add: [zkey-boss]}]"
    async with asked(tmp_path, ask) as stage:
        await stage.card(word=APPROVE)
        await stage.later(hours=1, minutes=1)
        card = await stage.card(word=f"<@{MIA}>")
        (line,) = [text for text in _texts(card["blocks"]) if f"<@{MIA}>" in text]
        assert "Since <!date^" in line
        no_key(stage)


async def test_a_direct_message_says_who_could_approve_and_where(tmp_path: Path) -> None:
    async with a_stage(tmp_path, "socket", COUNTERSIGN_POLICY=str(POLICY)) as stage:
        direct = stage.sandbox.dm_id(ROSA)
        await stage.sandbox.say(ROSA, direct, "deploy payments 1.4.2 to staging")
        await stage.until(lambda: "countersign_undecidable" in _sent(stage, direct))
        assert say("nobody.only_here") in _sent(stage, direct)
        assert say("nobody.ask_in_channel") in _sent(stage, direct)
        assert "anybody" not in _sent(stage, direct)


async def test_too_few_people_are_named_without_a_key(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [zkey-boss], count: 2}]") as stage:
        await stage.until(lambda: "countersign_undecidable" in str(stage.messages()))
        assert "Mia Chen" in str(stage.messages()[-2:])
        no_key(stage)


def no_key_but_values(stage: Stage) -> None:
    """The value of a choice, which nobody reads, may have the key."""
    sent = everything(stage)
    keys = [key for key in GROUPS if sent.count(key) > sent.count(f"group.{key}")]
    assert keys == []


def _sent(stage: Stage, channel: str) -> str:
    return "\n".join(
        [
            str(message.get("metadata")) + "\n".join(_texts(message))
            for message in stage.sandbox.messages(channel)
        ]
    )


def _texts(part: Any) -> list[str]:
    match part:
        case {"text": str(text), **rest}:
            return [*text.split("\n"), *_texts(list(rest.values()))]
        case dict():
            return [text for value in part.values() for text in _texts(value)]
        case list():
            return [text for entry in part for text in _texts(entry)]
        case _:
            return []


async def test_only_admins_are_offered_where_nobody_can_decide(tmp_path: Path) -> None:
    async with asked(tmp_path, "approve: [{from: [zkey-boss], count: 2}]") as stage:
        await stage.until(lambda: ActionId.ASK_ADMIN in str(stage.messages()))
        (card,) = [message for message in stage.messages() if ActionId.ASK_ADMIN in str(message)]
        await stage.click("Rosa", card, ActionId.ASK_ADMIN)
        form = await stage.modal("Rosa")
        (menu,) = [
            block["element"] for block in form["blocks"] if block.get("element", {}).get("options")
        ]
        assert [option["value"] for option in menu["options"]] == [MIA]
        await stage.sandbox.submit(ROSA, form, {PERSON: MIA, QUESTION: "please help"})
        direct = stage.sandbox.dm_id(MIA)
        await stage.until(lambda: "please help" in _sent(stage, direct))
        assert f"<@{ROSA}> needs an admin's help" in _sent(stage, direct)
