"""Every sample card and modal is what its file says, and what Slack takes."""

from __future__ import annotations

import json

import pytest
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from slack_sandbox.blockkit.rules import UPDATE_TEXT, message_errors, text_characters, view_errors
from tests.unit.bot.slack.cards.samples import CARDS, FOLDER, MODALS, NAMES, sample

MESSAGES = {
    "escalation",
    "escalation_channel",
    "handover",
    "line",
    "quiet",
    "reminder_rejected",
    "reminder",
    "reminder_done",
    "reminder_expired",
    "reminder_link",
    "reply",
}


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_what_its_file_says(name: str) -> None:
    stored = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert sample(name) == stored


def test_there_is_no_file_without_a_sample() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(NAMES)


@pytest.mark.parametrize("name", sorted(CARDS))
def test_card_is_taken_by_slack(name: str) -> None:
    card = CARDS[name]()
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    assert text_characters({"blocks": card.blocks}) < 9_000
    assert len(card.text) < UPDATE_TEXT
    for block in card.blocks:
        parsed = Block.parse(block)
        assert parsed is not None
        assert parsed.to_dict()["type"] == block["type"]


@pytest.mark.parametrize("name", sorted(MODALS))
def test_modal_is_taken_by_slack(name: str) -> None:
    view = MODALS[name]()
    assert view_errors(view) == []
    assert View(**view).to_dict()["type"] == "modal"
