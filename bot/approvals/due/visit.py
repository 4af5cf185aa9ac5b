"""An approval under its lease: one visit to it, and the messages that it keeps beside its card."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from bot.leases import ClaimedRecord
from bot.ports.notifier import SideMessage
from storage.records import Approval

OWN = "own:"
"""Begins the key of a card that is in a direct message because somebody has asked for that."""
BATCH = "batch"
"""Kind of a card of several in a direct message."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One attendance under a lease.

    Attributes:
        hold: The record as claimed.
        is_born: Whether the lease is the one that a new approval has: its request is in the audit,
            and its post is taken for begun.
        is_told: Whether the decision that it was claimed with is in the audit, and the thread knows
            of it.
        fresh: Keys of what is new beside the card: no earlier try can have posted it.
        keepers: Ids of approvals whose cards have to be drawn again after it.
        again_ms: When a grant is tried again that could not be given; None where none is.
    """

    hold: ClaimedRecord[Approval]
    is_born: bool = False
    is_told: bool = False
    fresh: set[str] = field(default_factory=set)
    keepers: set[str] = field(default_factory=set)
    again_ms: int | None = None

    def is_first(self, approval: Approval, key: str = "") -> bool:
        """Whether nobody can have posted a card of it before; or the message of a key.

        After a restore, that is not known of anything.
        """
        return (self.is_born or key in self.fresh) and not approval.restored_to_ms

    def knows(self, approval: Approval) -> bool:
        """Whether the thread knows how it was decided; not when that came during the visit."""
        return self.is_told and approval.decision == self.hold.record.decision


def read_beside(text: str) -> tuple[SideMessage, ...]:
    """Read the messages beside a card, as a record keeps them; of damaged ones, none."""
    with suppress(TypeError, ValueError, RecursionError, LookupError):
        found = json.loads(text)
        return tuple(SideMessage(**{**one, "mentions": tuple(one["mentions"])}) for one in found)
    return ()


def write_beside(messages: Iterable[SideMessage]) -> str:
    """Write them for the record."""
    return json.dumps([asdict(one) for one in messages], separators=(",", ":"))


def at_message(message: SideMessage, found: SideMessage) -> SideMessage:
    """The same message, where it was posted."""
    return replace(message, channel=found.channel, ts=found.ts)


def of_several(copy: SideMessage) -> SideMessage:
    """The same for the card of several: who keeps that has it."""
    return replace(copy, key=f"{BATCH}:{copy.user}", kind=BATCH)


def users_of(approval: Approval) -> frozenset[str]:
    """Slack user ids of all who have a card of this one approval by direct message."""
    copies = read_beside(approval.cards_json)
    return frozenset(one.user for one in copies if one.user and one.kind != BATCH)
