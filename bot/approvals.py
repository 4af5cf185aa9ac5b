"""The use cases of approvals: request, decide, attend (redraw, wake, remind, expire).

The order is always record, act, redraw: a decision is one conditional write before anything else
happens; then the thread is woken; then the card is drawn again from the record. Each step may be
repeated without harm, and the scheduler repeats what a crash left open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.access import Access
from bot.errors import (
    ApprovalClosedError,
    DeliveryError,
    DirectoryError,
    NotApproverError,
    OutdatedCardError,
    UnknownApprovalError,
)
from bot.ports import Actor, Clock, Notifier
from bot.timing import milliseconds
from storage.base import Storage
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, AuditEntry, Decision, Status

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)
PATIENCE = timedelta(seconds=12)
"""What one attendance may take: it must end before its lease does, or two would post one card."""
RETRY = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Approvals:
    """What people can do with approvals, and what the clock does.

    Args:
        storage: Where records are kept.
        access: Who may decide.
        notifier: How people are told.
        clock: The time now.
        owner: Name of this process in leases.
        wake: Starts the work of a thread in this process, without waiting for it.
        remind_after: From one reminder to the next; doubled each time.
    """

    storage: Storage
    access: Access
    notifier: Notifier
    clock: Clock
    owner: str
    wake: Callable[[str], None]
    remind_after: timedelta

    async def request(self, approvals: Sequence[Approval]) -> None:
        """Put new approvals on record and show their cards, in order. May be repeated."""
        for approval in approvals:
            await self.storage.approvals.add(approval)
            await self._note(
                approval, "requested", approval.requester_id, at_ms=approval.created_ms
            )
        for approval in approvals:
            await self.attend(approval.approval_id)

    async def look(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval for a person who may decide it now.

        Args:
            approval_id: As carried by the button or the modal.
            actor: Who asks.
            shown: The digest, or the beginning of it, that the person was shown.

        Returns:
            The pending approval.

        Raises:
            UnknownApprovalError: There is none, or it belongs to another workspace.
            ApprovalClosedError: Somebody, or the clock, decided first.
            OutdatedCardError: The person was shown something else than is on record.
            NotApproverError: This person may not decide it.
            DirectoryError: Who they are could not be looked up.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        self._check_pending(approval)
        if not shown or not approval.digest.startswith(shown):
            raise OutdatedCardError
        try:
            await self.access.check_decider(approval, actor)
        except (NotApproverError, DirectoryError) as error:
            await self._note_refusal(approval, actor, str(error))
            raise
        return approval

    async def decide(self, approval: Approval, decision: Decision) -> Approval:
        """Record a decision, once. Whoever calls has looked (`look`) with the same actor before.

        Args:
            approval: As read by `look`; the decision covers what that record shows.
            decision: What the person chose.

        Returns:
            The approval as decided. `attend` does the rest.

        Raises:
            ApprovalClosedError: Somebody, or the clock, was first.
            OutdatedCardError: The record has changed since it was read.
        """
        try:
            return await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
        except RecordConflictError as error:
            current = await self.storage.approvals.get(approval.approval_id)
            self._check_pending(current)
            raise OutdatedCardError from error

    async def follow_up(self, approval: Approval) -> None:
        """Do what follows a decision: wake the thread, at once, and then attend to the card.

        The wake needs no lease: a process that died with the card's lease does not keep the agent
        waiting.
        """
        await self._tell_thread(approval)
        await self.attend(approval.approval_id)

    async def attend(self, approval_id: str) -> None:
        """Do all that is due for one approval; nothing when another process has it.

        Raises:
            StoreUnavailableError: The lease ends by itself, and the work is due again.
        """
        while True:
            now = self.clock()
            approval = await self.storage.approvals.claim(
                approval_id, owner=self.owner, now_ms=now, until_ms=now + milliseconds(LEASE)
            )
            if approval is None:
                return
            seen, due = await self._attend_claimed(approval)
            if await self.storage.approvals.release(
                approval_id,
                fence=approval.fence,
                revision=seen.revision,
                due_ms=due,
                now_ms=self.clock(),
            ):
                return

    async def _attend_claimed(self, approval: Approval) -> tuple[Approval, int | None]:
        """Act on the record as claimed; return it as last read, and when it is due again."""
        now = self.clock()
        if approval.status is Status.PENDING and now >= approval.expires_ms:
            approval = await self._expire(approval, now)
        if approval.status is not Status.PENDING:
            await self._tell_thread(approval)
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._draw(approval)
                if approval.status is Status.PENDING:
                    return approval, await self._remind(approval, now)
        except (DeliveryError, TimeoutError) as error:
            logger.warning(
                "card not shown: %s",
                error,
                extra={"action": "card_failed", "approval_id": approval.approval_id},
            )
            return approval, self._retry_at(approval)
        return approval, None

    def _retry_at(self, approval: Approval) -> int:
        later = self.clock() + milliseconds(RETRY)
        if approval.status is not Status.PENDING:
            return later
        return min(later, approval.expires_ms)

    async def _expire(self, approval: Approval, now: int) -> Approval:
        decision = Decision(status=Status.EXPIRED, by="", at_ms=now)
        try:
            return await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
        except RecordConflictError:
            return await self.storage.approvals.get(approval.approval_id)

    async def _tell_thread(self, approval: Approval) -> None:
        decision = approval.decision
        if decision is not None:
            detail: dict[str, object] = {
                "status": str(decision.status),
                "reason": decision.reason,
                "digest": decision.digest,
                "edited": bool(decision.arguments_json),
            }
            await self._note(approval, "decided", decision.by, at_ms=decision.at_ms, detail=detail)
        if approval.open:
            await self.storage.threads.wake(approval.thread_id, now_ms=self.clock())
            self.wake(approval.thread_id)

    async def _draw(self, approval: Approval) -> None:
        if approval.drawn_revision >= approval.revision:
            return
        store, fence = self.storage.approvals, approval.fence
        if approval.card_ts and await self.notifier.update_card(approval):
            await store.mark_card(
                approval.approval_id,
                fence=fence,
                card_ts=approval.card_ts,
                drawn_revision=approval.revision,
            )
            return
        if not await store.mark_card(
            approval.approval_id, fence=fence, card_ts=None, drawn_revision=None
        ):
            return
        look_first = approval.post_tried and not approval.card_ts
        ts = await self.notifier.post_card(approval, look_first=look_first)
        await store.mark_card(
            approval.approval_id, fence=fence, card_ts=ts, drawn_revision=approval.revision
        )

    async def _remind(self, approval: Approval, now: int) -> int:
        if approval.remind_ms is None or now < approval.remind_ms:
            return approval.next_ms
        step = milliseconds(self.remind_after) << (approval.reminders + 1)
        later = now + step
        remind_ms = later if later < approval.expires_ms else None
        if await self.storage.approvals.mark_reminded(
            approval.approval_id, fence=approval.fence, remind_ms=remind_ms
        ):
            await self._note(approval, "reminded", "", at_ms=now)
            await self.notifier.remind(approval)
        return approval.expires_ms if remind_ms is None else remind_ms

    def _check_pending(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING:
            raise ApprovalClosedError(approval)
        if self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)

    async def _note(
        self,
        approval: Approval,
        action: str,
        actor_id: str,
        *,
        at_ms: int,
        detail: dict[str, object] | None = None,
    ) -> None:
        await self.storage.audit.append(
            AuditEntry(
                entry_id=f"{approval.approval_id}:{action}:{at_ms}",
                at_ms=at_ms,
                action=action,
                thread_id=approval.thread_id,
                approval_id=approval.approval_id,
                actor_id=actor_id,
                detail={"tool": approval.tool, "shown": approval.digest, **(detail or {})},
            )
        )

    async def _note_refusal(self, approval: Approval, actor: Actor, why: str) -> None:
        now = self.clock()
        await self.storage.audit.append(
            AuditEntry(
                entry_id=f"{approval.approval_id}:refused:{actor.user_id}:{now}",
                at_ms=now,
                action="refused",
                thread_id=approval.thread_id,
                approval_id=approval.approval_id,
                actor_id=actor.user_id,
                detail={"why": why, "team": actor.team_id},
            )
        )
