"""Render the first message of a thread that no person started."""

from __future__ import annotations

from bot.layout.blocks import Card, context, line, literal, mrkdwn, preformatted, rich, section
from bot.layout.parts import started_by
from bot.layout.text import more, show
from bot.records.starts import ThreadStart
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import escape

_TITLE = 150
_TEXT = 300
"""Characters of the text that the first message shows; the agent reads all."""


def start_card(start: ThreadStart) -> Card:
    """Render who or what started the thread, its title, and the beginning of its text."""
    by = say("message.started_by", who=started_by(start.origin))
    title = show(mask_text(start.title), _TITLE, one_line=True).text
    text = show(mask_text(start.text), _TEXT)
    rest = f" {more(text.hidden)}" if text.hidden else ""
    blocks = [
        section(by),
        rich(line(literal(title, "bold"))),
        rich(preformatted(f"{text.text}{rest}")),
        context(mrkdwn(say("message.started_rule"))),
    ]
    return Card(text=f"{by} {escape(title)}", blocks=blocks)
