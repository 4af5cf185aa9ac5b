"""Update an approval's card from its record."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from bot.approvals.changes import with_places
from bot.approvals.due.approval_pass import ApprovalPass, write_held
from bot.approvals.due.batch_cards import SharedCards
from bot.approvals.due.reconciler import Reconciler
from bot.audit.entries import note_undeliverable
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.process import Clock
from bot.records.approval import BATCH, Approval
from bot.records.approval_queries import ApprovalCollection
from storage.audit import AuditStore

logger = logging.getLogger(__name__)

JUST_READ = timedelta(seconds=1)
"""Age up to which a record is drawn without reading it again."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Updates cards under the leases of their approvals.

    Args:
        approvals: Stored approvals.
        audit: Records undeliverable cards.
        notifier: Displays cards.
        clock: The time now.
        shared: Updates batch cards; None without batch cards.
    """

    approvals: ApprovalCollection
    audit: AuditStore
    notifier: Notifier
    clock: Clock
    shared: SharedCards | None = None

    async def draw(self, approval: Approval, worker_pass: ApprovalPass) -> Approval:
        """Update the cards; return the approval, with the places of its messages.

        A card that Slack refuses for good is marked. It is retried with the next reminder,
        decision, expiry or click. A card refused because the app itself was refused is retried
        until Slack accepts it.

        Raises:
            DeliveryError: Slack refused the card for now.
        """
        if approval.card.revision >= approval.shown_revision:
            return approval
        try:
            approval = await self._draw(approval, worker_pass)
        except DeliveryError as error:
            if not (error.is_permanent or error.is_refusal):
                raise
            approval = await self._note_undeliverable(approval, error)
            if not error.is_permanent:
                raise
        return with_places(approval, worker_pass.places)

    async def _draw(self, approval: Approval, worker_pass: ApprovalPass) -> Approval:
        """Update the copies, then the card in the thread: its own or a batch card."""
        revision = approval.shown_revision

        async def newest() -> Approval:
            # Read again after a wait. Later changes are drawn next: the release detects them.
            nonlocal revision
            is_new = self.clock() - worker_pass.hold.since_ms <= milliseconds(JUST_READ)
            newest = approval if is_new else await self.approvals.get(approval.approval_id)
            revision = newest.shown_revision
            return newest

        update = partial(self.notifier.update_card, newest=newest)
        post = partial(self.notifier.post_card, approval, newest=newest)
        reconciler = Reconciler(self.approvals)
        copies = [copy for copy in approval.copies if copy.kind != BATCH]
        fault = await reconciler.show_copies(
            approval, copies, worker_pass, update=update, post=post
        )
        if self.shared is not None and approval.batch.owner_id:
            seen = await self.shared.update_card(approval, worker_pass)
            if seen is None:
                return approval
            approval = seen
        is_shown = approval.is_batched or await reconciler.show(
            approval, approval.thread_card, worker_pass, update=update, post=post
        )
        if fault is not None:  # the thread's card does not wait for it
            raise fault
        if not is_shown:
            return approval
        worker_pass.shows = approval.shown_revision if approval.is_batched else revision
        return approval.changed(card=approval.card.changed(error=""))

    async def _note_undeliverable(self, approval: Approval, error: DeliveryError) -> Approval:
        if approval.card.error == error.reason:
            return approval

        def refused(stored: Approval) -> Approval:
            return stored.changed(card=stored.card.changed(error=error.reason))

        logger.error(
            "Slack rejected a card%s: %s",
            "; retrying until Slack accepts the app again" if error.is_refusal else "",
            error,
            extra={"action": "card_undeliverable", "approval_id": approval.approval_id},
        )
        await note_undeliverable(
            self.audit, approval, self.clock(), method=error.method, why=error.reason
        )
        await write_held(self.approvals, approval, refused)
        if error.is_lost_place:
            await self._lose(approval, error.reason)
        return refused(approval)

    async def _lose(self, approval: Approval, reason: str) -> None:
        try:
            await self.notifier.lose(approval, reason)
        except DeliveryError as error:
            logger.warning(
                "could not tell requesters that a channel is unreachable: %s",
                error,
                extra={"action": "place_lost"},
            )
