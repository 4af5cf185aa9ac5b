"""Update an approval's card from its record."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from bot.approvals.changes import DrawnCard, with_card
from bot.approvals.due.batch_cards import SharedCards
from bot.approvals.due.visit import BATCH, OWN, Visit, write_held
from bot.approvals.model import Approval, SideMessage
from bot.approvals.queries import ApprovalCollection
from bot.audit.entries import note_undeliverable
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.process import Clock
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

    async def draw(self, approval: Approval, visit: Visit) -> tuple[Approval, DrawnCard | None]:
        """Update the card; return the approval and the drawn card.

        A card that Slack refuses for good is marked. It is retried with the next reminder,
        decision, expiry or click. A card refused because the app itself was refused is retried
        until Slack accepts it.

        Raises:
            DeliveryError: Slack refused the card for now.
        """
        if approval.card.revision >= approval.shown_revision:
            return approval, None
        try:
            approval, fault = await self._draw_copies(approval, visit)
            approval, drawn = await self._draw_first(approval, visit)
            if fault is not None:  # first store the location of the thread's card, then raise
                if drawn is not None:
                    await self.mark(approval, drawn.ts)
                raise fault
        except DeliveryError as error:
            if error.is_permanent:
                return await self._note_undeliverable(approval, error), None
            if error.is_refusal:
                await self._note_undeliverable(approval, error)
            raise
        card = approval.card.changed(ts=drawn.ts if drawn is not None else "", error="")
        return approval.changed(card=card), drawn

    async def _draw_first(
        self, approval: Approval, visit: Visit
    ) -> tuple[Approval, DrawnCard | None]:
        """Update the card in the thread: its own or a batch card."""
        if self.shared is not None and approval.batch.keeper:
            seen = await self.shared.see_to(approval, visit)
            if seen is None:
                return approval, None
            approval = seen
            if approval.is_batched:
                return approval, DrawnCard(ts="", revision=approval.shown_revision)
        return approval, await self._draw_changed(approval, visit)

    async def _draw_copies(
        self, approval: Approval, visit: Visit
    ) -> tuple[Approval, DeliveryError | None]:
        """Update the cards in direct messages; post new ones.

        Returns:
            The approval, and the error of a card that is sent by preference only, which blocks
            nothing.

        Raises:
            DeliveryError: Slack refused another card for now.
        """
        copies, fault = approval.cards, None
        kept: list[SideMessage | None] = [*copies]
        try:
            for number, copy in enumerate(copies):
                if copy.kind == BATCH:  # updated from all records; see `SharedCards`
                    continue
                try:
                    kept[number] = await self._draw_copy(approval, copy, visit)
                except DeliveryError as error:
                    if not copy.key.startswith(OWN):
                        raise
                    fault = error
        finally:
            changed = tuple(one for one in kept if one is not None)
            if changed != copies:
                approval = approval.changed(cards=changed)
                await write_held(self.approvals, approval, lambda one: one.changed(cards=changed))
        return approval, fault

    async def _draw_copy(
        self, approval: Approval, copy: SideMessage, visit: Visit
    ) -> SideMessage | None:
        """Update one direct-message card; None if that can never succeed."""

        async def newest() -> Approval:
            return approval

        is_posted = copy.is_posted
        if is_posted and await self.notifier.update_copy(copy, newest=newest):
            return copy
        look_first = not (is_posted or visit.is_first(approval, copy.key))
        try:
            return await self.notifier.post_copy(
                approval, copy, look_first=look_first, newest=newest
            )
        except DeliveryError as error:
            if not is_hopeless(error, copy, approval.place):
                raise
            logger.warning(
                "could not deliver a card to %s: %s",
                copy.user or copy.channel,
                error,
                extra={"action": "copy_failed", "approval_id": approval.approval_id},
            )
            return None

    async def _draw_changed(self, approval: Approval, visit: Visit) -> DrawnCard | None:
        """Update or post the card; return it, or None if the lease was lost."""

        async def newest() -> Approval:
            # Read again after a wait. Later changes are drawn next: the release detects them.
            is_new = self.clock() - visit.hold.since_ms <= milliseconds(JUST_READ)
            return approval if is_new else await self.approvals.get(approval.approval_id)

        look_first = approval.card.post_tried and not visit.is_first(approval)
        if approval.card.ts:
            drawn = await self.notifier.update_card(approval, newest=newest)
            if drawn is not None:
                return DrawnCard(ts=approval.card.ts, revision=drawn.shown_revision)
            # The card was deleted. Store that before posting another one. After a crash the new
            # post is then searched for.
            if not await self.mark(approval, ""):
                return None
            look_first = False
        if not visit.is_born and not await self.mark(approval, None):
            return None
        drawn = await self.notifier.post_card(approval, look_first=look_first, newest=newest)
        return DrawnCard(ts=drawn.card.ts, revision=drawn.shown_revision)

    async def mark(self, approval: Approval, ts: str | None, revision: int | None = None) -> bool:
        """Store the state of the card; False if the lease was lost.

        Args:
            approval: As claimed.
            ts: `ts` of the card, empty if deleted; None for no change.
            revision: Displayed revision of the record; None for no change.
        """
        write = partial(with_card, ts=ts, revision=revision)
        return await write_held(self.approvals, approval, write) is not None

    async def _note_undeliverable(self, approval: Approval, error: DeliveryError) -> Approval:
        if approval.card.error == error.reason:
            return approval

        def refused(one: Approval) -> Approval:
            return one.changed(card=one.card.changed(error=error.reason))

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


def is_hopeless(error: DeliveryError, copy: SideMessage, place: str) -> bool:
    """Whether a direct-message card can never be sent and the other cards suffice.

    An app installed before direct messages were supported lacks the scope.
    """
    if copy.user and (not place or copy.key.startswith((OWN, BATCH))):
        return error.is_permanent or error.reason == "missing_scope"
    return error.is_permanent and copy.channel != place
