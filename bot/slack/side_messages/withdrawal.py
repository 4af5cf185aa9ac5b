"""Render the ephemeral reply to a typed withdrawal, with buttons."""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.model import Approval
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Block, Card, button, context, mrkdwn, plain, section
from bot.layout.text import clip
from bot.layout.titles import title_of
from bot.words import say

MOST_OFFERED = 5
"""Maximum number of requests with *Withdraw…* buttons in a reply."""
_TITLE = 300


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
