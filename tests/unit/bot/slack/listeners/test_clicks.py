"""Signed clicks, right and wrong: an effect only for what our cards send."""

from __future__ import annotations

import pytest

from bot.layout.action_ids import ActionId
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    is_untouched,
)
from tests.unit.bot.office import ADA, GUS, ROSA


@pytest.mark.parametrize("value", [None, "", "x", 5, {"a": 1}, "apr_" + "0" * 32, "\x00"])
async def test_a_value_that_is_not_ours(counter: Counter, value: object) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    click["actions"][0]["value"] = value
    assert (await counter.send(click)).status == 200
    assert "isn't one I made" in counter.told(ADA)
    await is_untouched(counter)


@pytest.mark.parametrize(
    "action",
    ["countersign:", "countersign:value", "countersign:approve ", "countersign:edit_modal"],
)
async def test_a_button_that_is_not_ours(counter: Counter, action: str) -> None:
    click = a_click(await counter.office.the_approval(), action)
    assert (await counter.send(click)).status == 200
    assert "isn't one I made" in counter.told(ADA)
    await is_untouched(counter)


@pytest.mark.parametrize(
    "action", [ActionId.ANSWER, ActionId.RAN, ActionId.AGAIN, ActionId.GIVE_UP]
)
async def test_a_button_of_another_card(counter: Counter, action: ActionId) -> None:
    click = a_click(await counter.office.the_approval(), action)
    assert (await counter.send(click)).status == 200
    assert "isn't one I made" in counter.told(ADA)
    await is_untouched(counter)


async def test_on_enterprise_grid_team_may_be_null(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    click = a_click(approval, ActionId.APPROVE)
    click |= {"team": None, "enterprise": {"id": "E1"}, "user": {"id": ADA}}
    assert (await counter.send(click)).status == 200
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]


@pytest.mark.parametrize(("user_id", "forms"), [(ADA, 1), (ROSA, 0), (GUS, 0)])
async def test_a_yes_in_a_private_answer_opens_the_review_for_who_may_decide(
    counter: Counter, user_id: str, forms: int
) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE, user_id)
    del click["message"]  # Slack sends none with what one person alone sees
    click["container"] |= {"is_ephemeral": True}
    assert (await counter.send(click)).status == 200
    assert len(counter.views.opened) == forms
    await is_untouched(counter)
