"""Destinations of an approval's messages, and whom they mention."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from bot.approvals.due.escalation_state import held_of
from bot.layout.parts import approvers_words
from bot.people.approvers import asked_groups, resolve_groups
from bot.ports.people import CHANNEL, is_channel, is_person
from bot.records.approval import BATCH, Approval, ApprovalMessage, Kind
from bot.records.terms import Terms, TermsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place in Slack: a thread or a channel.

    Attributes:
        channel_id: Slack channel id.
        thread_ts: The thread; empty for the channel itself.
    """

    channel_id: str
    thread_ts: str = ""


def spot_of(approval: Approval, message: ApprovalMessage) -> Spot:
    """Return the destination of a reminder: a direct message, or the card's thread."""
    if message.user:
        return Spot(channel_id=message.channel)
    card = card_of(approval, message)
    if card is not None and message.kind != "quiet":
        return Spot(channel_id=card.channel, thread_ts=card.ts)
    return Spot(channel_id=approval.channel_id, thread_ts=approval.thread_ts)


def card_of(approval: Approval, message: ApprovalMessage) -> ApprovalMessage | None:
    """Return the card that a reminder is about, unless it is the first one."""
    copies = [copy for copy in approval.copies if copy.is_posted]
    if message.user:
        own = next((copy for copy in copies if copy.user == message.user), None)
        if own is not None:
            return own
    return next(
        (copy for copy in copies if approval.elsewhere and copy.channel == approval.elsewhere), None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickedMessage:
    """The message in which a person clicked.

    Attributes:
        channel_id: Slack channel id; empty for modals and Home.
        ts: Empty for modals, Home and ephemeral messages.
        user_id: The person.
    """

    channel_id: str = ""
    ts: str = ""
    user_id: str = ""

    def is_card_of(self, approval: Approval) -> bool:
        """Whether the message is an approval's card or a copy."""
        cards = [copy for copy in approval.copies if copy.kind != BATCH]
        if not approval.elsewhere and not approval.is_batched:  # else no card in the thread
            cards.append(approval.thread_card)
        return any(map(self._is, cards))

    def is_batch_card_of(self, approval: Approval) -> bool:
        """Whether the message is the batch card of a card owner or a copy."""
        copies = [copy for copy in approval.copies if copy.kind == BATCH]
        return any(map(self._is, [approval.batch_card, *copies]))

    def _is(self, message: ApprovalMessage) -> bool:
        """Whether it is this message; compared by channel while its `ts` is not stored."""
        if not self.ts:
            return False
        if message.is_posted:
            return (self.channel_id, self.ts) == (message.channel, message.ts)
        if message.user and not message.channel.startswith("D"):
            return self.channel_id.startswith("D") and message.user == self.user_id
        return self.channel_id == message.channel


NO_MESSAGE = ClickedMessage()
"""Used for clicks in modals, Home and ephemeral messages."""


def mentioned_on(approval: Approval) -> tuple[str, ...]:
    """Return whom the first card mentions: all without a card by direct message."""
    direct = {copy.user for copy in approval.copies}
    return tuple(user_id for user_id in approval.escalation.mentioned if user_id not in direct)


def is_broadcast(approval: Approval) -> bool:
    """Whether the card is also shown in its channel: its members can decide."""
    if approval.elsewhere or approval.kind is Kind.QUESTION:
        return False
    terms = approval.terms
    with suppress(TermsError):  # a time zone is unknown on this machine
        names = resolve_groups(terms, asked_groups(terms, approval.stage), approval.created_ms)
        return terms.mention and bool({CHANNEL, approval.channel_id} & names.keys())
    return False


def places_of(approval: Approval) -> tuple[str, ...]:
    """Return people and channels that have the cards, unless they are in the thread."""
    return tuple(copy.user or copy.channel for copy in approval.copies)


def approvers_text(approval: Approval) -> str:
    """Describe who may decide; mention only people who are to be notified.

    Ids come from settings, never from a model.
    """
    if approval.kind is Kind.QUESTION:
        return approvers_words([CHANNEL])
    terms = approval.terms
    try:
        names = resolve_groups(terms, asked_groups(terms, approval.stage), approval.created_ms)
    except TermsError:  # a time zone is unknown on this machine
        return approvers_words(())
    notified = _notified(approval, terms, names)
    held = held_of(approval)
    shown = [*notified, *(name for name in names if name in held)]
    shown = shown if notified else [CHANNEL if is_channel(name) else name for name in names]
    return approvers_words([*dict.fromkeys(shown)])


def _notified(approval: Approval, terms: Terms, names: Iterable[str]) -> list[str]:
    """Return the notified people; delegates replace absent people.

    People who are absent, snoozed, or notified later are left out. Empty if the rule forbids
    mentions.
    """
    known = approval.escalation.mentioned
    if not terms.mention or not known:
        return []
    asked = resolve_groups(
        terms, asked_groups(terms, approval.stage, len(terms.escalate)), approval.created_ms
    )
    delegates = [name for name in known if is_person(name) and name not in asked]
    rest = [CHANNEL] if any(is_channel(name) for name in names) else []
    return [*(name for name in names if name in known and not is_channel(name)), *delegates, *rest]
