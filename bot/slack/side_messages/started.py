"""Render the messages about threads that no person starts: the first one, and one of a hold."""

from __future__ import annotations

from bot.layout.action_ids import ActionId
from bot.layout.blocks import (
    Card,
    actions,
    button,
    context,
    line,
    literal,
    mrkdwn,
    preformatted,
    rich,
    section,
)
from bot.layout.parts import started_by
from bot.layout.text import more, show
from bot.records.starts import ThreadStart
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import escape, mention

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


def hold_card(hold: ThreadStart) -> Card:
    """Render that a trigger is held, or how that ended."""
    what = started_by(hold.origin)
    if hold.ended:
        by = mention(hold.lifted_by) if hold.lifted_by else ""
        text = say(f"message.hold_{hold.ended}", who=by, what=what)
        return Card(text=text, blocks=[section(text)])
    text = say("message.start_held", what=what)
    title = show(mask_text(hold.title), _TITLE, one_line=True).text
    let_run = button(say("button.let_run"), ActionId.LET_RUN, hold.id, of=hold.origin.program_name)
    blocks = [
        section(text),
        rich(line(literal(title, "bold"))),
        context(mrkdwn(say("message.held_rule"))),
        actions(let_run),
    ]
    return Card(text=text, blocks=blocks)
