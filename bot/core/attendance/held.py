"""One visit to an approval, under its lease."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.core.work import Hold
from storage.records import Approval


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

    hold: Hold[Approval]
    is_born: bool = False
    is_told: bool = False
    fresh: set[str] = field(default_factory=set)
    keepers: set[str] = field(default_factory=set)
    again_ms: int | None = None

    def knows(self, approval: Approval) -> bool:
        """Whether the thread knows how it was decided; not when that came during the visit."""
        return self.is_told and approval.decision == self.hold.record.decision
