"""Questions about an approval on its card, with their answers."""

from __future__ import annotations

from bot.approvals.comments import AGENT
from bot.approvals.model import Approval
from bot.layout.blocks import Block, literal, quote, rich
from bot.layout.card_layout import small_lines
from bot.layout.parts import asked_by
from bot.layout.text import show
from bot.redaction.mask import mask_text
from bot.words import say

MOST_SHOWN = 3
"""Maximum number of questions on a card. The thread has all."""
_TEXT = 400


def dialog(approval: Approval) -> list[Block]:
    """Render the newest questions, each with its answer."""
    found = approval.dialog
    quotes: list[Block] = []
    for one in found[-MOST_SHOWN:]:
        parts = [literal(f"{say('line.question')} ", "bold"), literal(_short(one.text))]
        if not one.is_open:
            answer = _short(one.answer)
            by = say("line.agent_answer") if one.answered_by == AGENT else say("line.answer")
            parts += [literal(f"\n{by} ", "bold"), literal(answer)]
        quotes.append(quote(*parts))
    blocks = [rich(*quotes)] if quotes else []
    lines = []
    if len(found) > MOST_SHOWN:
        lines.append(say("line.earlier", n=len(found) - MOST_SHOWN))
    if found and found[-1].is_open and found[-1].to == AGENT:
        lines.append(say("line.agent_answers"))
    elif found and found[-1].is_open:
        lines.append(say("line.reply_to_answer", who=asked_by(approval)))
    return [*blocks, *small_lines(lines)]


def _short(text: str) -> str:
    view = show(mask_text(text), _TEXT, lines=6)
    return f"{view.text}…" if view.hidden else view.text or "…"
