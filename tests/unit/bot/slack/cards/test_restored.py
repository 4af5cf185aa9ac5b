"""What a card says when the database went back to a copy."""

from __future__ import annotations

import re

import pytest

from bot.records.approval import Approval, Decision, Kind, Restored, Status
from bot.slack.cards.card_for import card_for
from tests.unit.bot.slack.cards.samples import an_approval

BACK = an_approval().changed(restored=Restored(to_ms=1))


def words(approval: Approval) -> tuple[str, str]:
    """Right below the title, and what is read aloud."""
    card = card_for(approval, approvers_text="Mia")
    titles = [
        at for at, block in enumerate(card.blocks) if block["type"] in {"header", "rich_text"}
    ]
    return str(card.blocks[titles[0] + 1]), card.text


@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.QUESTION, Kind.DOUBT])
def test_card_that_waits_asks_to_look_first(kind: Kind) -> None:
    for text in words(BACK.changed(kind=kind)):
        assert "My database was restored" in text
        assert re.search("Check|Please", text)


@pytest.mark.parametrize("kind", [Kind.APPROVAL, Kind.QUESTION, Kind.DOUBT])
def test_card_that_is_decided_asks_nobody_for_anything(kind: Kind) -> None:
    decision = Decision(status=Status.REJECTED, by="UMIA", at_ms=2, digest=BACK.digest)
    for text in words(BACK.changed(kind=kind, status=Status.REJECTED, decision=decision)):
        assert "My database was restored" in text
        assert "may have" in text
        assert not re.search("Check|Please", text)
