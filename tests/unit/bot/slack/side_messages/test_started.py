"""Messages about threads that no person starts: each is posted once, and has what people need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.records.starts import ThreadStart
from bot.slack.messages.notices import SlackNotices
from tests.contract.builders import a_start
from tests.unit.bot.slack.side_messages.test_alerts import Wall


@pytest.mark.parametrize(
    ("changes", "looks"),
    [({"fence": 1}, False), ({"fence": 2}, True), ({"fence": 1, "is_restored": True}, True)],
    ids=["first", "again", "restored"],
)
async def test_i4_an_earlier_first_message_is_looked_for(
    changes: dict[str, Any], looks: bool
) -> None:
    wall = Wall()
    await SlackNotices(wall).show_start(a_start(**changes))
    assert [putting.looks for putting, _ in wall.shown] == [looks]


@pytest.mark.parametrize("ended", ["", "lifted", "quiet"])
async def test_i8_a_hold_has_its_button_while_it_lasts(ended: str) -> None:
    wall = Wall()
    hold: ThreadStart = a_start("hld_1", ended=ended, lifted_by="U2" if ended == "lifted" else "")
    await SlackNotices(wall).show_hold(hold)
    ((_, card),) = wall.shown
    assert (ActionId.LET_RUN in json.dumps(card.blocks)) is (not ended)
