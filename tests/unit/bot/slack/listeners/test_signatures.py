"""Who sent a click: only Slack's signature counts, or our own connection to Slack."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from slack_bolt.request.async_request import AsyncBoltRequest

from bot.layout.action_ids import ActionId
from tests.unit.bot.counter_stage import Counter, a_click, is_untouched
from tests.unit.bot.office import ADA


async def test_over_a_socket_there_is_no_signature(counter: Counter) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    request = AsyncBoltRequest(mode="socket_mode", body=click)
    assert (await counter.bolt.async_dispatch(request)).status == 200
    await counter.office.queue.run()
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]


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
