"""Whether a value is too long for a form is known without drawing it, and said of no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, strategies as st

from bot.questions.shown import shown_question
from bot.redaction.masks import masked_once
from bot.slack.cards.details import (
    CHUNK,
    MOST_BYTES,
    _leaves_out,
    details_modal,
    fits_details,
    pages_of,
)
from bot.slack.cards.review import FormReader, count_pages
from slack_sandbox.blockkit.rules import view_errors
from tests.support.halves import first
from tests.unit.bot.asked import review_pages
from tests.unit.bot.slack.cards.samples import an_approval

SIZES = [MOST_BYTES - 2_000, MOST_BYTES + 2_000, MOST_BYTES // 3, 3 * MOST_BYTES]
SHAPES: dict[str, Callable[[int], object]] = {
    "texts": lambda size: ["x" * 98] * (size // 100),
    "blank texts": lambda size: [" " * 98] * (size // 100),
    "lines": lambda size: {f"field {n:5}": "a\nb" for n in range(size // 20)},
    "numbers": lambda size: [*range(10_000, 10_000 + size // 6)],
    "escaped": lambda size: ["\x01\n\t"] * (size // 20),
    "deep": lambda size: [[[{"a": None}]]] * (size // 20),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", first(2, SIZES))
def test_what_fits_is_what_can_be_drawn(shape: str, size: int) -> None:
    approval = an_approval(arguments={"data": SHAPES[shape](size)})
    with masked_once():
        assert fits_details(shown_question(approval)) is not _leaves_out(approval)


def test_signs_that_mrkdwn_escapes_take_no_more_pages() -> None:
    """Pages are rich text: `&` is a character like others there."""
    assert count_pages(an_approval(arguments={"text": "&<" * 2_600})) == count_pages(
        an_approval(arguments={"text": "ab" * 2_600})
    )
    assert count_pages(an_approval(arguments={"text": "&<" * 2_600})) <= 3


@given(text=st.text("&<>\n a", max_size=9_000), tail=st.text("&<>é\u200b", max_size=2_000))
def test_each_page_is_whole_and_within_slacks_limits(text: str, tail: str) -> None:
    approval = an_approval(arguments={"text": f"|{text}|{tail}|"})
    pages, is_cut = pages_of(approval)
    assert not is_cut
    assert len(pages) <= (len(text) + 12 * len(tail)) // CHUNK + 4
    joined = "".join(_texts(pages))
    for part in (f"|{text}|", "|"):
        assert "".join(part.split()) in "".join(joined.split())
    for view in [details_modal(approval), *review_pages(approval, FormReader(can_approve=True))]:
        assert view_errors(view) == []
        assert len(json.dumps(view)) < 250_000


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, list | tuple):
        for child in node:
            yield from _texts(child)
    elif isinstance(node, dict):
        yield from [str(node["text"])] if isinstance(node.get("text"), str) else []
        yield from _texts([value for name, value in node.items() if name != "text"])
