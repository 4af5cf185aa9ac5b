"""Batch cards: one card for several approvals of a turn.

Each approval keeps its own record, votes and audit entries; only the card is shared. The first
approval keeps the card, and its worker updates the card from all records. A change of another
approval first stores that the card owner's card must be updated. An approval that differs from the
others leaves the card for good.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from cachetools import LRUCache

from bot.approvals.changes import off_batch, split_off
from bot.approvals.due.approval_pass import ApprovalPass, of_several, write_held
from bot.approvals.due.reconciler import Reconciler
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.policy.demands import batch_digest
from bot.ports.notifier import BatchCards
from bot.ports.process import Clock
from bot.records.approval import BATCH, OWN, Approval, Execution, Status, StoredBatch
from bot.records.approval_queries import ApprovalCollection, of_turn
from storage.documents import update_or_none

logger = logging.getLogger(__name__)

MOST_ON_CARD = 100
"""Maximum number of approvals on a card; further ones get another card."""
TOGETHER = timedelta(seconds=1.5)
"""Minimum time between updates of a batch card: Slack accepts 50 per minute."""
GATHER_S = 0.02
"""Seconds during which changes share one write that marks the card as due."""
_REMEMBERED = 1_000
"""Number of cards whose last update this process remembers."""


@dataclass(slots=True)
class Debouncer:
    """Combines changes of a batch card into one write and one update."""

    _wanted: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _writing: LRUCache[str, asyncio.Lock] = field(default_factory=lambda: LRUCache(_REMEMBERED))
    _waiting: set[str] = field(default_factory=set)
    _drawn_ms: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    async def write(self, batch_id: str, redraw: Callable[[], Awaitable[None]]) -> None:
        """Store that a card must be updated: one write for all previous changes."""
        write = self._wanted.get(batch_id)
        if write is None:
            write = self._wanted[batch_id] = asyncio.create_task(self._write(batch_id, redraw))
        await asyncio.shield(write)

    async def _write(self, batch_id: str, redraw: Callable[[], Awaitable[None]]) -> None:
        """Write after the current write has ended; later callers need another write."""
        lock: asyncio.Lock = self._writing.setdefault(batch_id, asyncio.Lock())
        async with lock:
            await asyncio.sleep(GATHER_S)
            del self._wanted[batch_id]
            await redraw()

    async def wait(
        self, batch_id: str, clock: Clock, pause: Callable[[float], Awaitable[None]]
    ) -> bool:
        """Wait until a card may be updated again; False if another task does that.

        Args:
            batch_id: Id of the approval that keeps the card.
            clock: The time now.
            pause: Waits for some seconds.
        """
        if batch_id in self._waiting:
            return False
        wait_ms = self._drawn_ms.get(batch_id, 0) + milliseconds(TOGETHER) - clock()
        self._waiting.add(batch_id)
        try:
            if wait_ms > 0:
                await pause(wait_ms / 1_000)
        finally:
            self._waiting.discard(batch_id)
        self._drawn_ms[batch_id] = clock()
        return True


def together(approvals: Sequence[Approval], takes: Callable[[Approval], bool]) -> list[Approval]:
    """Assign similar new approvals of one turn to batch cards.

    Args:
        approvals: Not stored yet, in order.
        takes: Whether a line of a batch card shows all of an approval.

    Returns:
        The approvals, in the same order.
    """
    if len(approvals) == 1:
        return [*approvals]
    groups: dict[tuple[object, ...], list[str]] = {}
    for approval in approvals:
        likeness = _likeness(approval)
        if likeness and takes(approval):
            groups.setdefault(likeness, []).append(approval.approval_id)
    card_owners: dict[str, str] = {}
    for names in groups.values():
        for start in range(0, len(names), MOST_ON_CARD):
            page = names[start : start + MOST_ON_CARD]
            if len(page) > 1:
                card_owners |= dict.fromkeys(page, page[0])
    return [
        _on_card_of(approval, card_owners.get(approval.approval_id, "")) for approval in approvals
    ]


def _on_card_of(approval: Approval, batch_id: str) -> Approval:
    """Return the approval on the card owner's card, including its direct messages."""
    if not batch_id:
        return approval
    changed = approval.changed(batch=StoredBatch(owner_id=batch_id), messages=approval.reminders)
    if approval.approval_id != batch_id:
        return changed
    cards = (approval.batch_card, *map(of_several, approval.copies))
    return changed.changed(messages=(*cards, *changed.messages))


def _likeness(approval: Approval) -> tuple[object, ...]:
    """Return what approvals of one card have in common; empty for a separate card.

    Only approvals that a single vote decides, with a card in the thread, can share a card. Others
    need a separate card, for the progress of their votes or for another place.
    """
    ruling = batch_digest(approval)
    is_own = all(copy.key.startswith(OWN) for copy in approval.copies)
    is_elsewhere = bool(approval.elsewhere) or not is_own
    shared = approval.changed(batch=StoredBatch(owner_id=approval.approval_id))
    if not ruling or is_elsewhere or not stays(shared):
        return ()
    if (
        sum(requirement.count for stage in approval.terms.stages for requirement in stage.approve)
        != 1
    ):
        return ()
    return (
        approval.tool,
        approval.rule,
        ruling,
        approval.requesters,
        approval.escalation.mentioned,
        approval.expires_ms,
        *(copy.user for copy in approval.copies),
    )


def stays(approval: Approval) -> bool:
    """Whether an approval still fits its batch card."""
    decision = approval.decision
    edits = approval.edits
    is_changed = bool(edits.by or approval.asked_again) or edits.original is not None
    if decision is not None:
        is_changed |= decision.arguments is not None or bool(decision.emergency or decision.rule)
    is_apart = is_changed or bool(approval.restored.to_ms) or approval.stage > 0
    is_talked_of = bool(approval.dialog or approval.claim.by)
    return approval.is_batched and not is_apart and not is_talked_of


@dataclass(frozen=True, slots=True)
class SharedCards:
    """Updates batch cards under the leases of their owners."""

    approvals: ApprovalCollection
    cards: BatchCards
    clock: Clock
    want: Callable[[str], Awaitable[None]]

    async def on_card(self, approval: Approval) -> list[Approval]:
        """Read the approvals on a card, in order."""
        turn = await of_turn(self.approvals, approval.checkpoint_id)
        return [other for other in turn if other.shares_batch(approval) and stays(other)]

    async def update_card(self, approval: Approval, worker_pass: ApprovalPass) -> Approval | None:
        """Update the batch card of an approval.

        Returns:
            The approval, with its own card if it left the batch; None if the lease was lost.

        Raises:
            DeliveryError: Slack refused the card for now.
        """
        if approval.is_batched and not stays(approval):
            if not await write_held(self.approvals, approval, off_batch):
                return None
            approval = off_batch(approval)
        if approval.batch.owner_id == approval.approval_id:
            return approval if await self._draw(approval, worker_pass) else None
        if approval.shown_revision > 1 and (approval.is_batched or not approval.thread_card.ts):
            await self.want(approval.batch.owner_id)
            worker_pass.card_owners.add(approval.batch.owner_id)
        return approval

    async def _draw(self, card_owner: Approval, worker_pass: ApprovalPass) -> bool:
        """Update the card from all records; False if the lease was lost."""

        async def items() -> Sequence[Approval]:
            return await self.on_card(card_owner)

        reconciler = Reconciler(self.approvals)
        update = partial(self.cards.update_batch, items=items)
        post = partial(self.cards.post_batch, card_owner, items=items)
        try:
            if not await reconciler.show(
                card_owner, card_owner.batch_card, worker_pass, update=update, post=post
            ):
                return False
        except DeliveryError as error:
            if not error.is_permanent or error.is_lost_place:
                raise
            logger.error(  # noqa: TRY400 - what Slack does not take says nothing by its place
                "could not show a combined card, splitting it: %s",
                error,
                extra={"action": "batch_split", "approval_id": card_owner.approval_id},
            )
            worker_pass.card_owners.update(await self.split(card_owner))
        copies = [copy for copy in card_owner.copies if copy.kind == BATCH]
        fault = await reconciler.show_copies(
            card_owner, copies, worker_pass, update=update, post=post
        )
        if fault is not None:
            raise fault
        return True

    async def split(self, approval: Approval) -> list[str]:
        """Give all pending approvals of a card cards of their own; return their ids in order."""
        write = partial(split_off, batch=approval.batch.owner_id, now_ms=self.clock())
        turn = await of_turn(self.approvals, approval.checkpoint_id)
        names = [other.approval_id for other in turn if other.shares_batch(approval)]
        written = await asyncio.gather(
            *(update_or_none(self.approvals, name, write, writes_due=True) for name in names)
        )
        return [other.approval_id for other in written if other is not None]

    async def as_one(self, approval: Approval, items: Sequence[Approval]) -> Approval:
        """Return the approval as thread messages show it: with the title of its batch."""
        card_owner = next(
            (other for other in items if other.approval_id == approval.batch.owner_id), None
        )
        if card_owner is None:
            card_owner = await self.approvals.get(approval.batch.owner_id)
        waiting = [other for other in items if other.status is Status.PENDING]
        title = await self.cards.title_of(waiting or items)
        made = approval.with_card_ts(card_owner.batch_card.ts).changed(title=title)
        if len({(other.status, other.decision and other.decision.by) for other in items}) > 1:
            # With mixed outcomes, the message names none: the card shows them.
            made = made.changed(status=Status.APPROVED, decision=None, execution=Execution())
        return made
