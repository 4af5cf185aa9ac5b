"""Render the ephemeral replies to a typed decision and to a typed withdrawal, with buttons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, Card, actions, button, context, mrkdwn, plain, section
from bot.layout.sentences import title_of
from bot.layout.text import clip
from bot.questions.shown import shown_question
from bot.records.approval import Approval, Status
from bot.slack.cards.buttons import review_button
from bot.words import say

MOST_CHOICES = 3
"""Maximum number of requests with buttons in a reply; others have their cards."""
_TITLE = 300


def choice_card(text: str, approvals: Sequence[Approval]) -> Card:
    """Render the reply with a button for each pending request."""
    waiting = [approval for approval in approvals if approval.status is Status.PENDING]
    blocks = [
        section(text),
        *(block for approval in waiting[:MOST_CHOICES] for block in _choice(approval)),
    ]
    if (left := len(waiting) - MOST_CHOICES) > 0:
        blocks.append(context(mrkdwn(say("message.more_to_decide", n=left))))
    return Card(text=text, blocks=blocks)


def _choice(approval: Approval) -> Iterator[Block]:
    """Yield the title and the button that opens the request."""
    yield {"type": "section", "text": plain(clip(title_of(approval), _TITLE))}
    yield actions(review_button(shown_question(approval)))


MOST_OFFERED = 5
"""Maximum number of requests with *Withdraw…* buttons in a reply."""


def withdrawal_card(text: str, approvals: Sequence[Approval]) -> Card:
    """Render a reply with a *Withdraw…* button for each request."""
    blocks = [section(text), *(_offer(approval) for approval in approvals[:MOST_OFFERED])]
    if (left := len(approvals) - MOST_OFFERED) > 0:
        blocks.append(context(mrkdwn(say("message.more_to_withdraw", n=left))))
    return Card(text=text, blocks=blocks)


def _offer(approval: Approval) -> Block:
    title = title_of(approval)
    value = encode(approval.approval_id, approval.digest)
    offer = button(say("button.withdraw"), ActionId.WITHDRAW, value, of=title)
    return {"type": "section", "text": plain(clip(title, _TITLE)), "accessory": offer}
