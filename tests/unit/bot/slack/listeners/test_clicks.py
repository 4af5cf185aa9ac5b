"""Clicks, right and wrong: an effect only for what our cards send, signed or over our socket."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from tests.unit.bot.counter_stage import Counter, a_click, is_untouched
from tests.unit.bot.office import ADA, GUS, ROSA

NOT_OURS = ("countersign:", "countersign:value", "countersign:approve ", "countersign:edit_modal")
NOBODYS = "apr_" + "0" * 32
OF_OTHER_CARDS = (ActionId.ANSWER, ActionId.RAN, ActionId.AGAIN, ActionId.GIVE_UP)


async def test_a_click_that_no_button_of_the_card_sends_does_nothing(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    value = a_click(await counter.office.the_approval(), ActionId.APPROVE)["actions"][0]["value"]
    cases: list[tuple[str, object]] = [
        *((action, value) for action in (*NOT_OURS, *OF_OTHER_CARDS)),
        *((ActionId.APPROVE, odd) for odd in (None, "", "x", 5, {"a": 1}, NOBODYS, "\x00")),
    ]
    for number, (action, sent) in enumerate(cases):
        with subtests.test(action=action, value=sent):
            click = a_click(await counter.office.the_approval(), action)
            click["actions"][0]["value"] = sent
            click["trigger_id"] = f"{number}.x"
            counter.office.notifier.whispers.clear()
            assert (await counter.send(click)).status == 200
            assert "isn't one I made" in counter.private_text(ADA)
            await is_untouched(counter)


@pytest.mark.parametrize("changes", [{"user": {}}, {"user": None}, {"user": {"name": ADA}}])
@pytest.mark.parametrize("action_id", [ActionId.APPROVE, ActionId.DETAILS, ActionId.REVEAL])
async def test_a_click_of_nobody_moves_nothing(
    counter: Counter, changes: dict[str, Any], action_id: ActionId
) -> None:
    click = a_click(await counter.office.the_approval(), action_id) | changes
    with suppress(TypeError, AttributeError):  # not to be read; over HTTP it is taken and dropped
        assert (await counter.send(click)).status == 200
    assert counter.views.opened == []
    await is_untouched(counter)


async def test_a_yes_from_no_place_that_is_known_opens_the_review(counter: Counter) -> None:
    """Nobody can tell what was shown there; the review shows all of it."""
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    assert (await counter.send(click | {"container": None, "channel": None})).status == 200
    assert counter.views.opened[-1]["callback_id"] == ActionId.REVIEW_MODAL
    await is_untouched(counter)


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
