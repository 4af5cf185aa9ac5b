"""Decide what must happen to the stored reminders of an approval in Slack.

The function is pure: it compares a stored message with the approval, and looks nothing up.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from bot.records.approval import Approval, ApprovalMessage, Status

REMINDER = "reminder"
ALERT = "alert"


class Wanted(Enum):
    """The state that a message in Slack must have."""

    AS_IS = auto()  # nothing is to do
    SENT = auto()
    DELETED = auto()
    CLOSED = auto()  # says that no decision is needed any more
    DROPPED = auto()  # is not in Slack, and is not wanted there
    ALERTED = auto()  # a break-glass alert, sent again


def wanted(approval: Approval, message: ApprovalMessage, items: Sequence[Approval] = ()) -> Wanted:
    """Return what must happen to a reminder, or another message that asks people.

    Args:
        approval: The approval.
        message: One of its reminders.
        items: All approvals on its batch card, in order; empty for an approval with its own card.
    """
    if message.kind == ALERT:
        return Wanted.ALERTED
    is_pending = approval.status is Status.PENDING
    is_last = _is_last(approval, message)
    if is_last and message.since_ms == approval.schedule_ms:
        if is_pending and (message.is_posted or approval.card.error):
            return Wanted.AS_IS
        if items and not message.user:
            return _wanted_by_all(approval, message, items)
        if is_pending:
            return Wanted.SENT
    # In a thread, the card shows the outcome.
    is_over = not is_pending and is_last and bool(message.user)
    return Wanted.CLOSED if is_over else Wanted.DELETED


def _wanted_by_all(
    approval: Approval, message: ApprovalMessage, items: Sequence[Approval]
) -> Wanted:
    """Return what must happen to a thread message about a batch card; one sends it for all.

    The first pending approval does. Its message stays until no approval of the card is pending. If
    that approval is decided before, it still sends the message, because the others rely on it.
    """
    first = next((other for other in items if other.status is Status.PENDING), None)
    if first is None:
        return Wanted.DELETED
    if message.is_posted:
        return Wanted.AS_IS
    if approval.status is Status.PENDING and first.approval_id != approval.approval_id:
        return Wanted.DROPPED if _has_come_as_far(first, approval) else Wanted.AS_IS
    return Wanted.SENT


def _is_last(approval: Approval, message: ApprovalMessage) -> bool:
    """Whether no newer reminder replaces the message."""
    moments = [reminder.moment for reminder in approval.reminders if reminder.kind == REMINDER]
    return message.kind != REMINDER or message.moment == moments[-1]


def _has_come_as_far(first: Approval, approval: Approval) -> bool:
    """Whether the first approval of the card has stored the same steps."""
    if first.schedule_ms != approval.schedule_ms:
        return False
    ahead, behind = first.escalation, approval.escalation
    return ahead.steps >= behind.steps and ahead.reminders >= behind.reminders
