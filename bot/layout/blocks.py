"""Plain Block Kit dicts: the few shapes that our cards and modals are made of.

Untrusted text goes through `literal`, `quote`, `preformatted` or `plain`: Slack parses none of
these. `mrkdwn` is for our own words alone.

Source:
    https://docs.slack.dev/reference/block-kit
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bot.layout.text import clip, show
from bot.words import say

Block = dict[str, Any]

HEADER = 150
BRIEF = 24
"""Characters of a form's title, and of its buttons."""
LABEL = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message that is ready to be sent.

    Attributes:
        text: What notifications and screen readers get; escaped mrkdwn.
        blocks: What people see.
    """

    text: str
    blocks: list[Block]


def plain(text: str) -> Block:
    """A text object of which nothing is parsed."""
    return {"type": "plain_text", "text": text, "emoji": False}


def brief(text: str) -> Block:
    """Our own words where Slack has room for a title; those of some languages are cut."""
    return plain(text if len(text) <= BRIEF else f"{text[: BRIEF - 1].rstrip()}…")


def mrkdwn(text: str) -> Block:
    """A text object of our own words; whatever else is in it must be escaped."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def header(title: str) -> Block:
    """The title of a card, with secrets masked before."""
    return {"type": "header", "text": plain(clip(title, HEADER))}


def section(words: str) -> Block:
    """A paragraph of our own words."""
    return {"type": "section", "text": mrkdwn(words), "expand": True}


def context(*words: Block) -> Block:
    """Small print; at most ten text objects."""
    return {"type": "context", "elements": list(words)}


def rich(*elements: Block) -> Block:
    """A block of rich text."""
    return {"type": "rich_text", "elements": list(elements)}


def joined(blocks: Iterable[Block]) -> list[Block]:
    """The same, with rich texts that follow each other as one: no gap stands between them."""
    made: list[Block] = []
    for one in blocks:
        if made and one["type"] == made[-1]["type"] == "rich_text":
            made[-1] = rich(*made[-1]["elements"], *one["elements"])
        else:
            made.append(one)
    return made


def literal(text: str, *styles: str) -> Block:
    """A part of a line, shown as it is; styles are `bold`, `italic`, `code`, `strike`."""
    part: Block = {"type": "text", "text": text}
    if styles:
        part["style"] = dict.fromkeys(styles, True)
    return part


def line(*parts: Block) -> Block:
    """A paragraph of rich text."""
    return {"type": "rich_text_section", "elements": list(parts)}


def numbered(lines: Sequence[Block]) -> Block:
    """Lines with numbers before them, from 1."""
    return {"type": "rich_text_list", "style": "ordered", "elements": [*lines]}


def quote(*parts: Block) -> Block:
    """Somebody else's words, set off by a bar."""
    return {"type": "rich_text_quote", "elements": list(parts)}


def preformatted(text: str) -> Block:
    """A box of text in which nothing is parsed."""
    return {"type": "rich_text_preformatted", "elements": [literal(text)]}


def actions(*buttons: Block) -> Block:
    """A row of buttons."""
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action: str, value: str, *, of: str, style: str = "") -> Block:
    """A button.

    Args:
        label: What it says.
        action: Its action id: what it does.
        value: The encoded reference.
        of: The title of the card, read out after the label to those who do not see the card.
        style: `primary`, `danger`, or nothing.
    """
    name = label.removesuffix("…")
    room = LABEL - len(say("a11y.button", label=name, title=""))
    title = show(of, room, one_line=True).text
    made: Block = {
        "type": "button",
        "action_id": str(action),
        "text": plain(label),
        "value": value,
        "accessibility_label": say("a11y.button", label=name, title=title),
    }
    if style:
        made["style"] = style
    return made


def menu(action: str, options: Sequence[tuple[str, str]]) -> Block:
    """The three dots with further choices: each its label and its value; at most five."""
    return {
        "type": "overflow",
        "action_id": str(action),
        "options": [{"text": plain(label), "value": value} for label, value in options],
    }
