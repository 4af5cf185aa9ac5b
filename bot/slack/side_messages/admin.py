"""Render the message that asks an admin about an undecidable approval."""

from __future__ import annotations

from bot.approvals.model import Approval
from bot.layout.blocks import Card, context, literal, mrkdwn, quote, rich
from bot.layout.parts import REASON, spoken, stuck_words
from bot.layout.sentences import one_line, person, sentence, title
from bot.layout.text import clip_mrkdwn, own_words, show
from bot.layout.titles import title_of
from bot.redaction.mask import mask_text
from bot.words import say

_TEXT = 600
_SPOKEN = 300


def admin_card(approval: Approval, *, by: str, text: str, link: str) -> Card:
    """Render the message.

    Args:
        approval: An undecidable approval.
        by: Slack user id of the asking person.
        text: Their additional text; may be empty.
        link: URL of the card; empty if unknown.
    """
    lead = sentence("message.admin", who=person(by), link=title(title_of(approval), link))
    decision = approval.decision
    why = own_words(decision.reason, REASON) if decision is not None else stuck_words(approval)
    blocks = [context(mrkdwn(say("message.admin_why", why=why)))]
    if text.strip():
        view = show(mask_text(text.strip()), _TEXT, lines=6)
        words = f"{view.text}…" if view.hidden else view.text
        blocks.insert(0, rich(quote(literal(words or "…"))))
    card = one_line("warning", lead, *blocks)
    said = clip_mrkdwn(mask_text(text), _SPOKEN) if text.strip() else ""
    return Card(text=spoken(card.text, why, said), blocks=card.blocks)
