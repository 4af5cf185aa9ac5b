"""Questions that are asked back: as messages, and as parts of the card with their answers."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.decisions.dialog import dialog_of
from bot.layout.blocks import Block, Card, context, line, literal, mrkdwn, quote, rich, section
from bot.layout.parts import MOST_PEOPLE, asked_by, title_of
from bot.layout.shape import small_lines
from bot.layout.text import clip, clip_mrkdwn, show
from bot.redaction.mask import mask_text
from bot.words import say
from bot.words.mrkdwn import mention
from storage.records import Approval

MOST_SHOWN = 3
"""Questions on a card; all of them are in the thread."""
_TEXT = 400
_WHOLE = 2_500
_TITLE = 300


def question_message(
    approval: Approval, *, by: str, text: str, mentions: Sequence[str], link: str = ""
) -> Card:
    """Ask those who asked for something what somebody wants to know before it is decided.

    Args:
        approval: What it is about.
        by: Slack user id of who asks.
        text: The question.
        mentions: Slack user ids of whom it is for.
        link: Address of the card; empty when it is not known.
    """
    people = " ".join(mention(one) for one in mentions[:MOST_PEOPLE])
    place = f" about <{link}|this request>" if link else " about this request"
    words = f"{people} {mention(by)} asks{place}:"
    shown = show(mask_text(text), _WHOLE, lines=30)
    hint = "Please answer here in the thread: it will stand on the card. It decides nothing."
    title = clip(title_of(approval), _TITLE)
    return Card(
        text=f"{words} {clip_mrkdwn(shown.text, _TEXT)}",
        blocks=[
            section(words),
            rich(line(literal(title, "bold")), quote(literal(shown.text or "…"))),
            context(mrkdwn(hint)),
        ],
    )


def dialog(approval: Approval) -> list[Block]:
    """Return the newest questions of a card, each with its answer."""
    found = dialog_of(approval)
    quotes: list[Block] = []
    for one in found[-MOST_SHOWN:]:
        parts = [literal(f"{say('line.question')} ", "bold"), literal(_short(one.text))]
        if not one.is_open:
            answer = _short(one.answer)
            parts += [literal(f"\n{say('line.answer')} ", "bold"), literal(answer)]
        quotes.append(quote(*parts))
    blocks = [rich(*quotes)] if quotes else []
    lines = []
    if len(found) > MOST_SHOWN:
        lines.append(say("line.earlier", n=len(found) - MOST_SHOWN))
    if found and found[-1].is_open:
        lines.append(say("line.reply_to_answer", who=asked_by(approval)))
    return [*blocks, *small_lines(lines)]


def _short(text: str) -> str:
    view = show(mask_text(text), _TEXT, lines=6)
    return f"{view.text}…" if view.hidden else view.text or "…"
