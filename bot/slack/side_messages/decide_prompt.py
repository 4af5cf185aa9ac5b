"""Render the ephemeral reply to a decision typed as text: pending approvals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.approvals.model import Approval, Status
from bot.layout.blocks import Block, Card, actions, context, mrkdwn, plain, section
from bot.layout.text import clip
from bot.layout.titles import title_of
from bot.questions.shown import shown_question
from bot.slack.cards.buttons import review_button
from bot.words import say

MOST_CHOICES = 3
"""Maximum number of requests with buttons in a reply; others have their cards."""
_TITLE = 300


def choice_card(text: str, approvals: Sequence[Approval]) -> Card:
    """Render the reply with a button for each pending request."""
    waiting = [one for one in approvals if one.status is Status.PENDING]
    blocks = [
        section(text),
        *(block for one in waiting[:MOST_CHOICES] for block in _choice(one)),
    ]
    if (left := len(waiting) - MOST_CHOICES) > 0:
        blocks.append(context(mrkdwn(say("message.more_to_decide", n=left))))
    return Card(text=text, blocks=blocks)


def _choice(approval: Approval) -> Iterator[Block]:
    """Yield the title and the button that opens the request."""
    yield {"type": "section", "text": plain(clip(title_of(approval), _TITLE))}
    yield actions(review_button(shown_question(approval)))
