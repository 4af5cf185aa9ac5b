"""The one shape of all cards: a line of state, the title, what matters, small print, buttons.

A pending card has its title as a header. One that is over collapses to three lines and a button:
the state, the title, and the one thing that is worth a third line.
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
"""Characters of the third line."""


def state_line(symbol: str, words: str, marks: Sequence[str] = ()) -> Block:
    """The first line: a symbol and the state in words, the rest behind dots.

    Args:
        symbol: Never the only carrier of what it means.
        words: Mrkdwn of the catalogue; what stands before its first dot is bold.
        marks: Further mrkdwn, such as the risk.
    """
    head, _, tail = words.partition(" · ")
    return section(DOT.join([f"{symbol} *{head}*", *([tail] if tail else []), *marks]))


def open_card(state: Block, title: str, blocks: Iterable[Block]) -> list[Block]:
    """A card that waits for people.

    Args:
        state: See `state_line`.
        title: With secrets masked.
        blocks: What matters, the small print, and the buttons.
    """
    return [state, header(title), *blocks]


def small_lines(lines: Iterable[str]) -> list[Block]:
    """Small print, one line below the other; mrkdwn of our own words."""
    blocks: list[Block] = []
    group: list[str] = []
    for one in filter(None, lines):
        if group and len("\n".join([*group, one])) > _SMALL:
            blocks.append(context(mrkdwn("\n".join(group))))
            group = []
        group.append(one)
    return [*blocks, context(mrkdwn("\n".join(group)))] if group else blocks


def closed_card(state: Block, title: str, third: Block, button: Block | None) -> list[Block]:
    """A card that is over.

    Args:
        state: See `state_line`.
        title: With secrets masked.
        third: A text object: the one thing that is worth a line.
        button: Beside it; None for none.
    """
    last: Block = {"type": "section", "text": third, "expand": True}
    return [state, bold_title(title), {**last, "accessory": button} if button else last]


def bold_title(title: str) -> Block:
    """The title of a card that is not a question any more."""
    return rich(line(literal(clip(title, HEADER), "bold")))


def third_line(text: str, most: int = THIRD, *, lines: int = 4) -> Block:
    """Somebody's words as the third line, with secrets masked before."""
    view = show(text.strip(), most, lines=lines)
    return plain(f"{view.text}…" if view.hidden else view.text or "…")


def quoted(text: str, most: int = THIRD) -> Block:
    """Somebody's words in quotation marks."""
    view = show(text.strip(), most, lines=4)
    return plain(f"“{view.text}{'…' if view.hidden else ''}”")


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonRow:
    """The end of a pending card.

    Attributes:
        blocks: The buttons; nothing where nobody can do anything.
        notes: Mrkdwn: what cannot be done here, and why.
        can_review: Whether *Approve…* shows all of it first.
    """

    blocks: Sequence[Block]
    notes: Sequence[str] = ()
    can_review: bool = False


def notes(about: Body, row: ButtonRow, *, has_lead: bool = False) -> list[Block]:
    """Say what the reader does not see, and what cannot be done.

    Args:
        about: What the card shows.
        row: Its buttons.
        has_lead: Whether it is of a call that has run, so that nothing is approved.
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
