"""Block Kit dicts: the shapes of our cards, modals and inputs.

Untrusted text goes through `literal`, `quote`, `preformatted` or `plain`, which Slack does not
parse. `mrkdwn` is for our own words only.

Source:
    https://docs.slack.dev/reference/block-kit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.layout.action_ids import ActionId
from bot.layout.text import clip, show
from bot.words import say
from bot.words.typed import typed_in_form

Block = dict[str, Any]

HEADER = 150
BRIEF = 24
"""The maximum number of characters of a modal's title and buttons."""
LABEL = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A message ready to send.

    Attributes:
        text: Text for notifications and screen readers; escaped mrkdwn.
        blocks: Visible content.
    """

    text: str
    blocks: list[Block]


def plain(text: str) -> Block:
    """Return a text object that Slack does not parse."""
    return {"type": "plain_text", "text": text, "emoji": False}


def brief(text: str) -> Block:
    """Return our own words for a title; some translations are cut to fit."""
    return plain(text if len(text) <= BRIEF else f"{text[: BRIEF - 1].rstrip()}…")


def mrkdwn(text: str) -> Block:
    """Return a text object with our own words. Other text in it must be escaped."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def header(title: str) -> Block:
    """Return the title of a card. Secrets must be masked already."""
    return {"type": "header", "text": plain(clip(title, HEADER))}


def section(words: str) -> Block:
    """Return a paragraph of our own words."""
    return {"type": "section", "text": mrkdwn(words), "expand": True}


def context(*words: Block) -> Block:
    """Return small print; at most ten text objects."""
    return {"type": "context", "elements": list(words)}


def rich(*elements: Block) -> Block:
    """Return a block of rich text."""
    return {"type": "rich_text", "elements": list(elements)}


def joined(blocks: Iterable[Block]) -> list[Block]:
    """Join adjacent rich text blocks, so that Slack shows no gap between them."""
    made: list[Block] = []
    for block in blocks:
        if made and block["type"] == made[-1]["type"] == "rich_text":
            made[-1] = rich(*made[-1]["elements"], *block["elements"])
        else:
            made.append(block)
    return made


def literal(text: str, *styles: str) -> Block:
    """Return an unparsed part of a line in `bold`, `italic`, `code` or `strike` style."""
    part: Block = {"type": "text", "text": text}
    if styles:
        part["style"] = dict.fromkeys(styles, True)
    return part


def line(*parts: Block) -> Block:
    """Return a paragraph of rich text."""
    return {"type": "rich_text_section", "elements": list(parts)}


def numbered(lines: Sequence[Block]) -> Block:
    """Return a numbered list of lines, from 1."""
    return {"type": "rich_text_list", "style": "ordered", "elements": [*lines]}


def quote(*parts: Block) -> Block:
    """Return a block quote of a person's words."""
    return {"type": "rich_text_quote", "elements": list(parts)}


def preformatted(text: str) -> Block:
    """Return a box of unparsed text."""
    return {"type": "rich_text_preformatted", "elements": [literal(text)]}


def actions(*buttons: Block) -> Block:
    """Return a row of buttons."""
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action: str, value: str, *, of: str, style: str = "") -> Block:
    """Return a button.

    Args:
        label: Its label.
        action: Its action id.
        value: The encoded reference.
        of: Title of the card, which screen readers read after the label.
        style: `primary`, `danger`, or empty.
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
    """Return an overflow menu; at most five options of label and value."""
    return {
        "type": "overflow",
        "action_id": str(action),
        "options": [{"text": plain(label), "value": value} for label, value in options],
    }


Values = Mapping[str, Any]
"""`view.state.values`: block id → action id → state."""

Errors = dict[str, str]
"""A sentence for each block id, for `response_action: errors`."""

MOST_REASON = 1_000
"""Maximum length of a reason, in characters."""
MOST_ANSWER = 3_000
"""Maximum length of an answer to a question, in characters."""


def text_input(
    block_id: str,
    label: str,
    most: int,
    *,
    hint: str = "",
    optional: bool = True,
    is_long: bool = True,
) -> Block:
    """Return a text input of one or several lines."""
    block: Block = {
        "type": "input",
        "block_id": block_id,
        "label": plain(label),
        "optional": optional,
        "element": {
            "type": "plain_text_input",
            "action_id": str(ActionId.VALUE),
            "multiline": is_long,
            "max_length": most,
        },
    }
    return {**block, "hint": plain(hint)} if hint else block


def read_text(values: Values, block_id: str) -> str:
    """Return the typed text; empty if there is none or the input was not sent."""
    text = read_state(values, block_id).get("value")
    return typed_in_form(text).strip()[:MOST_ANSWER] if isinstance(text, str) else ""


def read_state(values: Values, block_id: str) -> Mapping[str, Any]:
    """Return the state of an input's single element; empty if there is none."""
    block = values.get(block_id)
    state = block.get(ActionId.VALUE) if isinstance(block, Mapping) else None
    return state if isinstance(state, Mapping) else {}
