"""Render the alert about a break-glass decision: who, what, why."""

from __future__ import annotations

from collections.abc import Sequence

from bot.approvals.model import Approval
from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Card, actions, button, context, line, literal, mrkdwn, quote, rich
from bot.layout.sentences import (
    MOST_MENTIONS,
    NOTHING,
    Piece,
    is_address,
    one_line,
    people,
    person,
    sentence,
    title,
    words,
)
from bot.layout.text import show
from bot.layout.titles import title_of
from bot.slack.cards.break_glass import emergency_reasons
from bot.words import say
from bot.words.mrkdwn import channel, date

_REASON = 600


def alert_card(
    approval: Approval, *, link: str, seen_by: Sequence[str] = (), can_press: bool = True
) -> Card:
    """Render the alert for the bypassed approvers.

    Args:
        approval: As decided.
        link: URL of the card; empty if unknown.
        seen_by: Slack user ids of people who confirmed the alert.
        can_press: Whether a reader may still confirm it.
    """
    decision, name = approval.decision, title_of(approval)
    by = person(decision.by if decision is not None else "")
    texts = emergency_reasons(decision.emergency if decision is not None else None)
    quotes = [quote(literal(show(one, _REASON, lines=6).text or "…")) for one in texts]
    value = encode(approval.approval_id, approval.digest)
    buttons = [button(say("button.details"), ActionId.DETAILS, value, of=name)]
    if can_press:
        buttons.insert(0, button(say("button.seen"), ActionId.SEEN, value, of=name))
    head = one_line("rotating_light", sentence("message.override", who=by))
    reason = words(" ".join(texts) or "…")
    spoken = sentence("notify.override", who=by, title=title(name), reason=reason)
    place = context(mrkdwn(_place(approval, link)))
    about = rich(line(literal(title(name).blocks[0]["text"], "bold")), *quotes)
    seen = _seen(seen_by)
    small = [place, rich(line(*seen.blocks))] if seen.text else [place]
    text = f"{spoken.text} {seen.text}".rstrip()
    return Card(text=text, blocks=[*head.blocks, about, *small, actions(*buttons)])


def _seen(names: Sequence[str]) -> Piece:
    first, more = people(names[:MOST_MENTIONS]), len(names) - MOST_MENTIONS
    if more > 0:
        return sentence("message.override_seen_more", who=first, n=more)
    return sentence("message.override_seen", who=first) if names else NOTHING


def _place(approval: Approval, link: str) -> str:
    at_ms = approval.decision.at_ms if approval.decision is not None else approval.created_ms
    where = channel(approval.channel_id) or say("line.direct_messages")
    told = say("message.override_where", time=date(at_ms), channel=where)
    return f"{told} <{link}|{say('line.open_card')}>" if is_address(link) else told
