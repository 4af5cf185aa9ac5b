"""What must happen to a stored reminder: a table of the pure function."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.due.wanted import Wanted, wanted
from bot.records.approval import Approval, ApprovalMessage, Status, StoredBatch, StoredCard
from tests.contract.builders import an_approval

MIA = "U0MIA"
ENDED: dict[str, Any] = {"status": Status.REJECTED}


def reminder(key: str = "reminder:1", **changes: Any) -> ApprovalMessage:
    """A reminder of the schedule that holds."""
    kind = key.split(":", maxsplit=1)[0]
    since_ms = an_approval().schedule_ms
    return ApprovalMessage(key=key, kind=kind, since_ms=since_ms).changed(**changes)


NEW, SENT, DIRECT = reminder(), reminder(ts="1.2"), reminder("reminder:1@U0MIA", user=MIA)


@pytest.mark.parametrize(
    ("message", "approval", "expected"),
    [
        (NEW, {}, Wanted.SENT),
        (SENT, {}, Wanted.AS_IS),
        (NEW, {"card": StoredCard(error="is_archived")}, Wanted.AS_IS),
        (DIRECT, {}, Wanted.SENT),
        (NEW, ENDED, Wanted.DELETED),
        (SENT, ENDED, Wanted.DELETED),
        (DIRECT, ENDED, Wanted.CLOSED),
        (SENT.changed(since_ms=1), {}, Wanted.DELETED),
        (NEW.changed(since_ms=1), {}, Wanted.DELETED),
        (DIRECT.changed(since_ms=1), {}, Wanted.DELETED),
        (DIRECT.changed(since_ms=1), ENDED, Wanted.CLOSED),
        (reminder("alert:U0MIA", user=MIA), ENDED, Wanted.ALERTED),
    ],
)
def test_a_message_of_an_approval_with_its_own_card(
    message: ApprovalMessage, approval: dict[str, Any], expected: Wanted
) -> None:
    assert wanted(an_approval(messages=(message,), **approval), message) is expected


def item(number: int, **changes: Any) -> Approval:
    """One of several approvals on the card of the first."""
    batch = StoredBatch(owner_id="apr_0")
    return an_approval(approval_id=f"apr_{number}", batch=batch).changed(**changes)


AHEAD = item(1).escalation.changed(reminders=1)
OTHER_TIMES = item(0).escalation.changed(since_ms=500)


@pytest.mark.parametrize(
    ("number", "message", "items", "expected"),
    [
        (0, NEW, [item(0), item(1)], Wanted.SENT),
        (1, NEW, [item(0), item(1)], Wanted.DROPPED),
        (1, NEW, [item(0), item(1, escalation=AHEAD)], Wanted.AS_IS),
        (1, NEW, [item(0, escalation=OTHER_TIMES), item(1)], Wanted.AS_IS),
        (1, SENT, [item(0), item(1)], Wanted.AS_IS),
        (0, NEW, [item(0, **ENDED), item(1)], Wanted.SENT),
        (0, SENT, [item(0, **ENDED), item(1)], Wanted.AS_IS),
        (1, NEW, [item(0, **ENDED), item(1)], Wanted.SENT),
        (0, SENT, [item(0, **ENDED), item(1, **ENDED)], Wanted.DELETED),
        (0, SENT.changed(since_ms=1), [item(0), item(1)], Wanted.DELETED),
        (0, DIRECT, [item(0, **ENDED), item(1)], Wanted.CLOSED),
        (1, DIRECT, [item(0), item(1)], Wanted.SENT),
    ],
)
def test_one_message_in_the_thread_speaks_for_a_batch(
    number: int, message: ApprovalMessage, items: list[Approval], expected: Wanted
) -> None:
    approval = items[number].changed(messages=(message,))
    assert wanted(approval, message, items) is expected
