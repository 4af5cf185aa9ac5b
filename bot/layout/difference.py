"""The difference of two texts: deleted words struck through, new words bold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from bot.layout.blocks import Block, literal, quote
from bot.layout.text import show, width

MOST_CHANGED = 0.4
"""The maximum share of changed words; above it, the comparison is hard to read."""
_MOST_WORDS = 300
"""The maximum number of differing words to compare, because the cost is quadratic."""
_MOST_LINES = 30
_WORD = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class TextChange:
    """The difference of two texts by words.

    Attributes:
        parts: Pieces in order, each with its style: none, `strike` or `bold`.
        changed: Number of deleted and new words.
        share: Share of changed words in both texts.
    """

    parts: Sequence[tuple[str, str]]
    changed: int
    share: float

    @property
    def is_readable(self) -> bool:
        """Whether the comparison is easier to read than the new text alone."""
        return self.changed > 0 and self.share <= MOST_CHANGED


def compare(before: str, after: str) -> TextChange | None:
    """Compare two texts, with secrets masked; None if they differ too much."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(gone), len(come)) > _MOST_WORDS:
        return None
    parts = [("".join(new[:start]), ""), *_middle(gone, come)]
    parts.append(("".join(new[len(new) - end :]) if end else "", ""))
    changed = sum(len(_WORD.findall(text)) for text, style in parts if style)
    kept = [(text, style) for text, style in parts if text]
    return TextChange(_apart(kept), changed, changed / max(len(old) + len(new), 1))


def changed_quote(change: TextChange, most: int) -> Block | None:
    """Return the difference as a quote; None if it cannot be shown in full."""
    whole = "".join(text for text, _ in change.parts)
    if width(whole) > most or whole.count("\n") >= _MOST_LINES or show(whole, most).altered:
        return None
    return quote(*(literal(text, *([style] if style else [])) for text, style in change.parts))


def _same(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the number of equal words at the beginning."""
    pairs = zip(left, right, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(left), len(right))
    )


def _middle(gone: Sequence[str], come: Sequence[str]) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(a=gone, b=come, autojunk=False)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal":
            yield "".join(come[right:right_end]), ""
            continue
        yield "".join(gone[left:left_end]), "strike"
        yield "".join(come[right:right_end]), "bold"


def _apart(parts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Insert a space between deleted words and their replacements."""
    made = [*parts]
    for at, ((text, style), (_, after)) in enumerate(pairwise(parts)):
        if style == "strike" and after == "bold" and not text[-1:].isspace():
            made[at] = (f"{text} ", style)
    return made
