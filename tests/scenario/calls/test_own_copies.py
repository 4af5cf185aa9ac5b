"""Cards by direct message to who asks for them in Home, through Slack's own payloads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.slack.home.settings import COPIES, FROM, MESSAGES_FORM, QUIET_UNTIL
from bot.slack.home.view import MESSAGES
from bot.words import say
from slack_sandbox.workspace.people import ADA, BEN, FINANCE, ONCALL
from tests.scenario.calls.batch_agents import RAN
from tests.scenario.people.payers import asked
from tests.support.stage import Stage, a_stage, buttons, option_of

AGENT = "tests.scenario.calls.batch_agents:clerk"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    RAN.clear()
    environ = {"COUNTERSIGN_AGENT": AGENT, "COUNTERSIGN_APPROVERS": ADA}
    async with a_stage(tmp_path, "socket", **environ) as opened:
        yield opened


def direct(stage: Stage) -> list[dict[str, Any]]:
    """The cards in Ada's direct messages."""
    channel = stage.sandbox.workspace.direct_message(ADA).id
    events = {"countersign_card", "countersign_batch"}
    return [
        message
        for message in stage.sandbox.messages(channel)
        if (message.get("metadata") or {}).get("event_type") in events
    ]


async def ask_for_cards(stage: Stage) -> None:
    """Tick the box in Home."""
    home = await stage.home(ADA, MESSAGES)
    await stage.sandbox.click_in_view(ADA, home, MESSAGES)
    form = await stage.modal("Ada")
    assert form["callback_id"] == MESSAGES_FORM
    yes = {"text": {"type": "plain_text", "text": "x"}, "value": "yes"}
    values = {
        FROM: {ActionId.VALUE: {"type": "timepicker", "selected_time": None}},
        QUIET_UNTIL: {ActionId.VALUE: {"type": "timepicker", "selected_time": None}},
        COPIES: {ActionId.VALUE: {"type": "checkboxes", "selected_options": [yes]}},
    }
    assert "errors" not in await stage.sandbox.submit(ADA, form, values)


async def copied(stage: Stage, word: str) -> dict[str, Any]:
    """Wait until the card in Ada's direct messages has a word."""
    await stage.until(lambda: word in str(direct(stage)))
    (card,) = direct(stage)
    return card


async def test_a_card_in_a_direct_message_decides_the_same_and_both_say_so(stage: Stage) -> None:
    await ask_for_cards(stage)
    await stage.say("Rosa", "@countersign refund 1")
    assert (await stage.card(word="Needs approval"))["ts"]
    card = await copied(stage, "Open the thread")
    assert "in <#" in str(card["blocks"])
    await stage.click(ADA, card, ActionId.APPROVE)
    await stage.said("All done")
    await copied(stage, "Approved by")
    shown = [*stage.cards(), *direct(stage)]
    assert [buttons(message) for message in shown] == [[], []]
    assert RAN == ["1234"]


async def test_a_card_of_several_is_one_direct_message(stage: Stage) -> None:
    await ask_for_cards(stage)
    await stage.asked("@countersign refund 3", word="3 need approval")
    card = await copied(stage, "3 need approval")
    assert "Open the thread" in str(card["blocks"])
    await stage.click(ADA, card, ActionId.APPROVE_ALL)
    await stage.said("All done")
    await copied(stage, "2 ran, 1 failed")
    await stage.card(word="2 ran, 1 failed")
    shown = [*stage.cards(), *direct(stage)]
    assert [buttons(message) for message in shown] == [[], []]
    assert sorted(RAN) == ["1234", "1240", "1251"]


@pytest.fixture
async def private(tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage whose people write in a private channel, where the group on call decides."""
    RAN.clear()
    team = {"team": f"usergroups: [{ONCALL}]"}
    async with asked(tmp_path, "approve: [{from: [team]}]", team, agent=AGENT, words="") as stage:
        stage.room = "finance"
        stage.sandbox.workspace.channels[FINANCE].is_private = True
        stage.sandbox.join(BEN, FINANCE)
        yield stage


def lose_the_right(stage: Stage) -> None:
    """Ada is in the group and the channel no more."""
    stage.sandbox.leave_group(ADA, ONCALL)
    stage.sandbox.leave(ADA, FINANCE)


async def test_a_copy_of_several_shows_nothing_to_who_may_not_see_them_any_more(
    private: Stage,
) -> None:
    await ask_for_cards(private)
    await private.say("Mia", "@countersign refund 3")
    card = await private.card(word="3 need approval")
    await copied(private, "3 need approval")
    lose_the_right(private)
    await private.click("Ben", card, ActionId.APPROVE_ALL)
    await private.said("All done")
    lost = await copied(private, say("line.withheld"))
    assert "order 1234" not in str(lost)
    assert buttons(lost) == []


async def test_the_list_of_several_opens_for_nobody_who_may_not_see_them_any_more(
    private: Stage,
) -> None:
    await ask_for_cards(private)
    await private.say("Mia", "@countersign refund 3")
    card = await copied(private, "3 need approval")
    await private.choose(ADA, card, ActionId.BATCH_DETAILS)
    assert "order 1234" in str(await private.modal("Ada"))  # while she may see them
    for view in private.sandbox.open_views(ADA):
        await private.sandbox.close_view(ADA, view)
    lose_the_right(private)
    await private.choose(ADA, card, ActionId.BATCH_DETAILS)
    await private.whispered("Ada", say("refuse.withheld"))
    assert private.sandbox.open_views(ADA) == []


async def test_the_form_to_withdraw_several_opens_for_nobody_who_may_not_see_them_any_more(
    private: Stage,
) -> None:
    private.sandbox.join(ADA, FINANCE)
    await private.say("Ada", "@countersign refund 3")
    card = await private.card(word="3 need approval")
    menu, value = option_of(card, ActionId.BATCH_WITHDRAW)
    click = private.sandbox.payload_of_click(
        ADA, private.channel, card["ts"], menu, selected_option=value
    )
    lose_the_right(private)  # while the click is on its way
    await private.sandbox.send_interaction(click)
    await private.whispered("Ada", say("refuse.withheld"))
    assert private.sandbox.open_views(ADA) == []
    assert RAN == []
