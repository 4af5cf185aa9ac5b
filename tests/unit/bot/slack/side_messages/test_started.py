"""Messages about threads that no person starts: each is posted once, and has what people need."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.records.starts import ThreadStart
from bot.slack.calls import Putting
from bot.slack.messages.notices import SlackNotices
from tests.contract.builders import a_start


class Seen:
    """Keeps what is posted."""

    def __init__(self) -> None:
        self.puttings: list[Putting] = []
        self.cards: list[Card] = []

    async def put(self, putting: Putting, card: Card) -> str:
        self.puttings.append(putting)
        self.cards.append(card)
        return "1.2"


@pytest.mark.parametrize(
    ("changes", "looks"),
    [({"fence": 1}, False), ({"fence": 2}, True), ({"fence": 1, "is_restored": True}, True)],
    ids=["first", "again", "restored"],
)
async def test_i4_an_earlier_first_message_is_looked_for(
    changes: dict[str, Any], looks: bool
) -> None:
    seen: Any = Seen()
    await SlackNotices(seen).show_start(a_start(**changes))
    assert [putting.looks for putting in seen.puttings] == [looks]


@pytest.mark.parametrize("ended", ["", "lifted", "quiet"])
async def test_i8_a_hold_has_its_button_while_it_lasts(ended: str) -> None:
    seen: Any = Seen()
    hold: ThreadStart = a_start("hld_1", ended=ended, lifted_by="U2" if ended == "lifted" else "")
    await SlackNotices(seen).show_hold(hold)
    assert (ActionId.LET_RUN in json.dumps(seen.cards[0].blocks)) is (not ended)
