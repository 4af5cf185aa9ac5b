"""Render cards in direct messages: the card, its origin, and the reason for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bot.errors import DeliveryError, DirectoryError
from bot.layout.blocks import Card, context, plain
from bot.layout.parts import asked_by
from bot.layout.sentences import is_address
from bot.people.approvers import asked_groups
from bot.policy.rotation import on_duty
from bot.questions.shown import shown_question
from bot.records.approval import BATCH, OWN, Approval, ApprovalMessage
from bot.slack.cards.footer import who_line
from bot.words import say
from bot.words.mrkdwn import channel, mention

Sees = Callable[[Approval, str], Awaitable[bool]]
"""Returns whether a person may read the request now; raises `DirectoryError`."""


async def sees_all(_: Approval, __: str) -> bool:
    """Return True, for use without look-ups."""
    return True


async def may_read(sees: Sees, approval: Approval, copy: ApprovalMessage) -> bool:
    """Whether the reader of a copied card may still read all of it.

    Raises:
        DeliveryError: The look-up failed; the card is updated later.
    """
    if not copy.user:
        return True
    try:
        return await sees(approval, copy.user)
    except DirectoryError as error:
        raise DeliveryError("look-up of a reader", "not_looked_up", took_no_effect=True) from error


def withheld_card() -> Card:
    """Return the card of a person who may not see the request any more."""
    words = say("line.withheld")
    return Card(text=words, blocks=[context(plain(words))])


def copy_lead(
    approval: Approval, copy: ApprovalMessage, *, link: str, approvers_text: str
) -> list[str]:
    """Return the lines that only a card in a direct message has.

    Args:
        approval: A pending approval.
        copy: Its location; one in a channel has the lines of a normal card.
        link: URL of the thread; empty if unknown.
        approvers_text: Who may decide, in our own words.
    """
    who, place = asked_by(approval), channel(approval.channel_id)
    asked = say("line.requested", who=who)
    if place:
        asked = say("line.requested_in", who=who, channel=place)
    thread = f" <{link}|{say('line.open_thread')}>" if is_address(link) else ""
    why = _why(approval, copy) if copy.user else ""
    who_can = shown_question(approval).who_can
    return [f"{asked}{thread}", why or who_line(approval, approvers_text, who_can)]


def _why(approval: Approval, copy: ApprovalMessage) -> str:
    """Return why the person can decide; empty if it needs a look-up."""
    terms = approval.terms
    names = asked_groups(terms, approval.stage, approval.escalation.steps)
    groups = [terms.groups[name] for name in names if name in terms.groups]
    if any(copy.user in group.users for group in groups):
        return say("line.why_you_named")
    duties = [group.rotation for group in groups if group.rotation is not None]
    if any(on_duty(rotation, copy.since_ms) == copy.user for rotation in duties):
        return say("line.why_you_duty")
    handles = {handle for group in groups for handle in group.usergroups}
    is_open = any(group.here or group.channels for group in groups)
    if copy.key.startswith((OWN, BATCH)) and len(handles) == 1 and not is_open:
        return say("line.why_you", group=mention(*handles))  # looked up when the card was sent
    return ""
