"""The message about an emergency: who let what run without the others, and why."""

from __future__ import annotations

from bot.layout.action_ids import ActionId, encode
from bot.layout.blocks import Card, actions, button, context, line, literal, mrkdwn, quote, rich
from bot.layout.parts import title_of
from bot.layout.pieces import is_address, one_line, person, sentence, title, words
from bot.layout.text import show
from bot.slack.cards.emergency import emergency_reasons
from bot.words import say
from bot.words.mrkdwn import channel, day_and_time
from storage.records import Approval

_REASON = 600


def alert_card(approval: Approval, *, link: str) -> Card:
    """Say that a call runs without those who are told this.

    Args:
        approval: As decided.
        link: Address of the card; empty when it is not known.
    """
    decision, name = approval.decision, title_of(approval)
    by = person(decision.by if decision is not None else "")
    texts = emergency_reasons(decision.emergency_json if decision is not None else "")
    quotes = [quote(literal(show(one, _REASON, lines=6).text or "…")) for one in texts]
    details = button(
        say("button.details"),
        ActionId.DETAILS,
        encode(approval.approval_id, approval.digest),
        of=name,
    )
    head = one_line("rotating_light", sentence("message.override", who=by))
    reason = words(" ".join(texts) or "…")
    spoken = sentence("notify.override", who=by, title=title(name), reason=reason)
    place = context(mrkdwn(_place(approval, link)))
    about = rich(line(literal(title(name).blocks[0]["text"], "bold")), *quotes)
    return Card(text=spoken.text, blocks=[*head.blocks, about, place, actions(details)])


def _place(approval: Approval, link: str) -> str:
    at_ms = approval.decision.at_ms if approval.decision is not None else approval.created_ms
    where = channel(approval.channel_id) or say("line.direct_messages")
    told = say("message.override_where", time=day_and_time(at_ms), channel=where)
    return f"{told} <{link}|{say('line.open_card')}>" if is_address(link) else told
