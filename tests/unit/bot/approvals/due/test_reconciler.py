"""Which refused copies of a card are dropped, because the other cards suffice."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.due.reconciler import is_hopeless
from bot.errors import DeliveryError
from bot.records.approval import ApprovalMessage

PERMANENT, FOR_NOW, NO_SCOPE = "is_archived", "internal_error", "missing_scope"
DIRECT: dict[str, Any] = {"key": "card:U0MIA", "user": "U0MIA"}
OWN: dict[str, Any] = {"key": "own:U0MIA", "user": "U0MIA"}
BATCH: dict[str, Any] = {"key": "batch:U0MIA", "user": "U0MIA"}
CHANNEL: dict[str, Any] = {"key": "card:C8", "channel": "C8"}


@pytest.mark.parametrize(
    ("copy", "place", "reason", "expected"),
    [
        (DIRECT, "", PERMANENT, True),
        (DIRECT, "", NO_SCOPE, True),
        (DIRECT, "", FOR_NOW, False),
        (DIRECT, "C8", NO_SCOPE, False),
        (OWN, "C8", NO_SCOPE, True),
        (BATCH, "C8", NO_SCOPE, True),
        (OWN, "C8", FOR_NOW, False),
        (CHANNEL, "", PERMANENT, True),
        (CHANNEL, "", NO_SCOPE, False),
        (CHANNEL, "C9", PERMANENT, True),
        (CHANNEL, "C9", FOR_NOW, False),
        (CHANNEL, "C8", PERMANENT, False),  # the place of the card: nobody would see it
    ],
)
def test_a_copy_is_dropped_if_it_can_never_be_sent(
    copy: dict[str, Any], place: str, reason: str, expected: object
) -> None:
    error = DeliveryError("chat.postMessage", reason)
    assert is_hopeless(error, ApprovalMessage(kind="card", **copy), place) is expected
