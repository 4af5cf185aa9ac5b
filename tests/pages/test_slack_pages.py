"""Guides that quote the cards: what they quote is what Countersign says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.pages.site import DOCS, ROOT, prose

FEWEST_QUOTED = {"decide-in-slack": 30, "call-an-api-with-a-secret": 4}
TEXTS: dict[str, str] = json.loads((ROOT / "bot" / "words" / "en.json").read_text("utf-8"))
FEWEST_LETTERS = 4
"""A text of fewer is a frame of others."""


def is_said(quoted: str) -> bool:
    """Whether a text of the catalogue is this one, or begins with these sentences."""
    return any(re.fullmatch(pattern, quoted) for text in TEXTS.values() for pattern in parts(text))


def parts(text: str) -> Iterator[str]:
    """Patterns of the first sentence of a text, the first two, and so on; a place is one word."""
    if len(re.findall("[A-Za-z]", re.sub(r"\{\w+\}", "", text))) < FEWEST_LETTERS:
        return
    sentences = re.split(r"(?<=[.?!]) ", text)
    for end in range(len(sentences)):
        beginning = re.escape(" ".join(sentences[: end + 1]))
        yield re.sub(r"\\\{\w+\\\}", r"\\S+", beginning)


@pytest.mark.parametrize(("guide", "fewest"), FEWEST_QUOTED.items(), ids=FEWEST_QUOTED)
def test_what_a_guide_quotes_is_what_countersign_says(guide: str, fewest: int) -> None:
    text = prose(DOCS / "how-to" / f"{guide}.md")
    quoted = re.findall(r"(?<![*\w])\*([^*\n]+(?:\n[^*\n]+)?)\*(?![*\w])", text)
    assert len(quoted) > fewest
    assert [quote for quote in quoted if not is_said(" ".join(quote.split()))] == []


def test_another_text_is_noticed() -> None:
    assert is_said("1 of 2 approvals")
    assert is_said("You can't approve your own request.")
    assert not is_said("You can't approve your own")
    assert not is_said("Approve it now")
