"""The message that asks those who requested something what somebody wants to know."""

from __future__ import annotations

from collections.abc import Sequence

from bot.layout.blocks import Card, context, literal, mrkdwn, quote, rich
from bot.layout.parts import MOST_PEOPLE, title_of
from bot.layout.pieces import one_line, people, person, sentence, title
from bot.layout.text import clip_mrkdwn, show
from bot.redaction.mask import mask_text
from bot.words import say
from storage.records import Approval

_TEXT = 400
_WHOLE = 2_500


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
    asked = sentence(
        "message.asks",
        who=people(mentions[:MOST_PEOPLE]),
        by=person(by),
        link=title(title_of(approval), link),
    )
    shown = show(mask_text(text), _WHOLE, lines=30).text or "…"
    hint = context(mrkdwn(say("message.asks_hint")))
    card = one_line("speech_balloon", asked, rich(quote(literal(shown))), hint)
    return Card(text=f"{card.text} {clip_mrkdwn(shown, _TEXT)}", blocks=card.blocks)
