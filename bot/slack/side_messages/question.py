"""Render a person's question to the requesters."""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.model import Approval
from bot.layout.blocks import Card, context, literal, mrkdwn, quote, rich
from bot.layout.parts import MOST_PEOPLE
from bot.layout.sentences import Piece, one_line, people, person, sentence, title
from bot.layout.text import clip_mrkdwn, show
from bot.layout.titles import title_of
from bot.redaction.mask import mask_text
from bot.words import say

_TEXT = 400
_WHOLE = 2_500


def question_message(
    approval: Approval, *, by: str, text: str, mentions: Sequence[str], link: str = ""
) -> Card:
    """Render the question.

    Args:
        approval: The approval.
        by: Slack user id of the asking person.
        text: The question.
        mentions: Slack user ids of the recipients; empty if the agent is asked.
        link: URL of the card; empty if unknown.
    """
    if not mentions:
        about = title(title_of(approval), link)
        asked = sentence("message.asks_agent", by=person(by), link=about)
        return _card("speech_balloon", asked, text, say("message.asks_agent_hint"))
    asked = sentence(
        "message.asks",
        who=people(mentions[:MOST_PEOPLE]),
        by=person(by),
        link=title(title_of(approval), link),
    )
    return _card("speech_balloon", asked, text, say("message.asks_hint"))


def closed_question(
    approval: Approval, *, by: str, text: str, is_answered: bool, link: str = ""
) -> Card:
    """Render the question when no answer is needed any more, without mentions.

    Args:
        approval: The approval.
        by: Slack user id of the asking person.
        text: The question.
        is_answered: Whether it was answered; otherwise the approval has ended.
        link: URL of the card; empty if unknown.
    """
    asked = sentence("message.asked", by=person(by), link=title(title_of(approval), link))
    if is_answered:
        return _card("speech_balloon", asked, text, say("message.asks_answered"))
    return _card("checkered_flag", asked, text, say("message.asks_over"))


def _card(symbol: str, asked: Piece, text: str, how: str) -> Card:
    shown = show(mask_text(text), _WHOLE, lines=30).text or "…"
    card = one_line(symbol, asked, rich(quote(literal(shown))), context(mrkdwn(how)))
    return Card(text=f"{card.text} {clip_mrkdwn(shown, _TEXT)}", blocks=card.blocks)
