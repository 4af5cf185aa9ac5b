"""A second language: every card, form and message fits Slack's limits in longer words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.words import Catalogue, adding, for_all, languages, say, speaking, workspace_language
from slack_sandbox.blockkit.rules import UPDATE_TEXT, message_errors, text_characters, view_errors
from tests.unit.bot.slack.cards.samples import CARDS, MODALS

ENGLISH: dict[str, str] = json.loads(
    (Path(__file__).parents[4] / "bot/words/en.json").read_text(encoding="utf-8")
)
LONGER = 0.4
_PART = re.compile(r"(\{[a-z_]+\}|<[^>]*>|`[^`]*`)")


def longer(text: str) -> str:
    """A text in a language that needs 40 % more room; its places, tags and codes stay."""
    parts = _PART.split(text)
    letters = sum(len(part) for part in parts[::2])
    return text + "ø" * round(letters * LONGER)


PSEUDO = Catalogue("eo", {key: longer(text) for key, text in ENGLISH.items()}, ENGLISH)


@pytest.fixture
def pseudo() -> Iterator[Catalogue]:
    with adding(PSEUDO), workspace_language("eo") as catalogue:
        yield catalogue


@pytest.mark.parametrize("name", sorted(CARDS))
@pytest.mark.usefixtures("pseudo")
def test_each_card_fits_in_longer_words(name: str) -> None:
    card = CARDS[name]()
    assert message_errors({"text": card.text, "blocks": card.blocks}) == []
    assert text_characters({"blocks": card.blocks}) < 9_000
    assert len(card.text) < UPDATE_TEXT


@pytest.mark.parametrize("name", sorted(MODALS))
@pytest.mark.usefixtures("pseudo")
def test_each_form_fits_in_longer_words(name: str) -> None:
    view: dict[str, Any] = MODALS[name]()
    assert "ø" in json.dumps(view, ensure_ascii=False)
    assert view_errors(view) == []


def test_a_person_reads_their_language_and_all_read_that_of_the_workspace() -> None:
    before = languages()
    german = Catalogue("de", {"button.approve": "Genehmigen"}, ENGLISH)
    with adding(german), workspace_language("en"), speaking("de-AT"):
        assert say("button.approve") == "Genehmigen"
        with for_all():
            assert say("button.approve") == "Approve"
    assert languages() == before


def test_the_language_of_the_workspace_is_spoken_where_nobodys_is() -> None:
    with adding(PSEUDO), workspace_language("eo"):
        assert say("button.edit") == longer("Edit…")
        with speaking("fr-FR"):  # which there is no catalogue of
            assert say("button.edit") == "Edit…"
    assert say("button.edit") == "Edit…"
