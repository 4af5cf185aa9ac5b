"""State of one worker pass over an approval, and its stored messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bot.leases import ClaimedRecord
from bot.records.approval import BATCH, Approval, ApprovalMessage, ProgramEvent, UnrecordedAct
from bot.records.approval_queries import ApprovalCollection
from storage.documents import update_or_none


@dataclass(slots=True, kw_only=True)
class ApprovalPass:
    """One pass under a lease.

    Attributes:
        hold: The claimed record.
        is_born: Whether the approval was created with this lease: its request is in the audit, and
            nothing about it can have been posted before.
        announced: The approval whose votes and decision are in the audit, and whose thread was
            woken; None when this process has done neither.
        fresh: Keys of new messages, which no earlier attempt can have posted.
        is_step: Whether a reminder or an escalation was due, even if it notifies nobody.
        shows: The `shown_revision` that the card shows since this pass; 0 if it was not updated.
        places: The messages that this pass posted, by key; None for those that it finished. The
            release stores them.
        card_owners: Ids of approvals whose batch cards must be updated afterwards.
        again_ms: When to retry creating a grant, or None.
        recorded: Actions of people that the audit has, which the release drops.
        handed: Events that the queues of endpoints have, which the release drops.
    """

    hold: ClaimedRecord[Approval]
    is_born: bool = False
    announced: Approval | None = None
    fresh: set[str] = field(default_factory=set)
    is_step: bool = False
    shows: int = 0
    places: dict[str, ApprovalMessage | None] = field(default_factory=dict)
    card_owners: set[str] = field(default_factory=set)
    again_ms: int | None = None
    recorded: tuple[UnrecordedAct, ...] = ()
    handed: tuple[ProgramEvent, ...] = ()

    def is_first(self, approval: Approval, key: str) -> bool:
        """Whether no message of a key can have been posted before.

        After a restore, this is unknown and False.
        """
        return (self.is_born or key in self.fresh) and not approval.restored.to_ms

    def knows(self, approval: Approval) -> bool:
        """Whether the thread was told this decision; False when another process has made it."""
        return self.announced is not None and approval.decision == self.announced.decision


def of_several(copy: ApprovalMessage) -> ApprovalMessage:
    """Return a direct-message card changed to the batch card that the card owner updates."""
    return copy.changed(key=f"{BATCH}:{copy.user}", kind=BATCH)


def users_of(approval: Approval) -> frozenset[str]:
    """Return Slack user ids of people with a direct card of this approval only."""
    return frozenset(copy.user for copy in approval.copies if copy.user and copy.kind != BATCH)


async def write_held(
    approvals: ApprovalCollection, held: Approval, change: Callable[[Approval], Approval | None]
) -> Approval | None:
    """Change an approval under its lease; None when it was lost, or `change` refuses.

    Args:
        approvals: Stored approvals.
        held: The approval as claimed, with the fencing token.
        change: See `storage.documents.update`.
    """
    return await update_or_none(approvals, held.approval_id, change, fence=held.fence)
