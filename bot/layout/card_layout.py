"""The common layout of cards: state, title, content, small print, buttons.

A pending card has its title as a header. A closed card has three lines and a button: the state, the
title, and the most important fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.layout.blocks import (
    HEADER,
    Block,
    context,
    header,
    line,
    literal,
    mrkdwn,
    plain,
    rich,
    section,
)
from bot.layout.parts import Body
from bot.layout.text import Grouped, clip, show
from bot.words import say

DOT = "  ·  "
_SMALL = 2_800
THIRD = 300
"""The maximum number of characters of the third line."""


def state_line(symbol: str, words: str, marks: Sequence[str] = ()) -> Block:
    """Return the first line: a symbol and the state in words, then marks.

    Args:
        symbol: An emoji; the words must carry the meaning, too.
        words: Mrkdwn of the catalog; the part before the first dot is bold.
        marks: Further mrkdwn, such as the risk.
    """
    head, _, tail = words.partition(" · ")
    return section(DOT.join([f"{symbol} *{head}*", *([tail] if tail else []), *marks]))


def open_card(state: Block, title: str, blocks: Iterable[Block]) -> list[Block]:
    """Lay out a pending card."""
    return [state, header(title), *blocks]


def small_lines(lines: Iterable[str]) -> list[Block]:
    """Return small print, one line below the other; mrkdwn of our own words."""
    blocks: list[Block] = []
    group: list[str] = []
    for text in filter(None, lines):
        if group and len("\n".join([*group, text])) > _SMALL:
            blocks.append(context(mrkdwn("\n".join(group))))
            group = []
        group.append(text)
    return [*blocks, context(mrkdwn("\n".join(group)))] if group else blocks


def closed_card(state: Block, title: str, third: Block, button: Block | None) -> list[Block]:
    """Lay out a closed card."""
    last: Block = {"type": "section", "text": third, "expand": True}
    return [state, bold_title(title), {**last, "accessory": button} if button else last]


def bold_title(title: str) -> Block:
    """Return the title of a closed card."""
    return rich(line(literal(clip(title, HEADER), "bold")))


def third_line(text: str, most: int = THIRD, *, lines: int = 4) -> Block:
    """Return a person's words as the third line. Secrets must be masked already."""
    view = show(text.strip(), most, lines=lines)
    return plain(f"{view.text}…" if view.hidden else view.text or "…")


def quoted(text: str, most: int = THIRD) -> Block:
    """Return a person's words in quotation marks."""
    view = show(text.strip(), most, lines=4)
    return plain(f"“{view.text}{'…' if view.hidden else ''}”")


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonRow:
    """The end of a pending card.

    Attributes:
        blocks: The buttons; empty if no action is possible.
        notes: Mrkdwn: actions that are not possible here, and why.
        can_review: Whether *Approve…* shows everything first.
    """

    blocks: Sequence[Block]
    notes: Sequence[str] = ()
    can_review: bool = False


def notes(about: Body, row: ButtonRow, *, has_lead: bool = False) -> list[Block]:
    """Return notes about hidden content and unavailable actions.

    Args:
        about: The content of the card.
        row: Its buttons.
        has_lead: Whether the call has already run, so that there is nothing to approve.
    """
    words: list[str] = []
    if about.hidden:
        key = "line.hidden" if row.can_review and not has_lead else "line.hidden_here"
        words.append(say(key, n=Grouped(about.hidden)))
    if about.masked:
        words.append(say("line.masked"))
        words += [say("line.reveal")] if about.guessed else []
    if about.altered:
        words.append(say("line.unseen"))
    if about.turned:
        words.append(say("line.turned"))
    words += row.notes
    return [context(mrkdwn("\n".join(words)))] if words else []
