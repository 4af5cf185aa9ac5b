"""Whether a value is too long for a form is known without drawing it, and said of no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.questions.shown import shown_question
from bot.redaction.masks import masked_once
from bot.slack.cards.details import MOST_BYTES, _leaves_out, fits_details
from tests.unit.bot.slack.cards.samples import an_approval

SIZES = [MOST_BYTES // 3, MOST_BYTES - 2_000, MOST_BYTES + 2_000, 3 * MOST_BYTES]
SHAPES: dict[str, Callable[[int], object]] = {
    "texts": lambda size: ["x" * 98] * (size // 100),
    "blank texts": lambda size: [" " * 98] * (size // 100),
    "lines": lambda size: {f"field {n:5}": "a\nb" for n in range(size // 20)},
    "numbers": lambda size: [*range(10_000, 10_000 + size // 6)],
    "escaped": lambda size: ["\x01\n\t"] * (size // 20),
    "deep": lambda size: [[[{"a": None}]]] * (size // 20),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_what_fits_is_what_can_be_drawn(shape: str, size: int) -> None:
    approval = an_approval(arguments={"data": SHAPES[shape](size)})
    with masked_once():
        assert fits_details(shown_question(approval)) is not _leaves_out(approval)
