"""Break-glass: run a call without its approvers, and alert them.

The decision is one conditional write that skips the quorum. The alerts are sent before the thread
is woken; after a crash they are sent again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cachetools import LRUCache

from bot.approvals.changes import voted
from bot.approvals.disclosure import Surface
from bot.approvals.votes import Votes
from bot.errors import (
    ApprovalClosedError,
    DeliveryError,
    FrozenError,
    OutdatedCardError,
    RefusalError,
)
from bot.freezes.rules import FreezeOf
from bot.people.break_glass import Reasons, glass_of, left_out, why_not_break
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.ports.threads import Notices
from bot.records.approval import Approval, CardClaim, Decision, Emergency, Status
from storage.documents import update

logger = logging.getLogger(__name__)

MOST_TOLD = 100
"""Maximum number of people who are alerted by direct message after a break-glass."""
_PATIENCE_S = 5.0
_TRIES = 5
_REMEMBERED = 1_000
"""Number of break-glass decisions of which this process remembers the alerts."""


@dataclass(frozen=True, slots=True)
class BreakGlassDecisions:
    """Records break-glass decisions, which skip the quorum.

    Args:
        votes: Looks people up, and stores decisions.
        freeze_of: Returns the freeze that covers a call; break-glass does not open it.
    """

    votes: Votes
    freeze_of: FreezeOf

    async def check(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not break glass.

        Raises:
            RefusalError: With the reason.
            DirectoryError: A look-up failed.
            StorageError: The freezes cannot be read.
        """
        against = await why_not_break(self.votes.lookup, approval, actor)
        if against in _PERSONS:
            raise _refused(against)
        if why := await self.votes.policy.denied(approval):
            raise _refused(RefusalCode.RULE_DENIES, detail=why)
        if against is not None:
            raise _refused(against)
        freeze = await self.freeze_of(approval)
        if freeze is not None:
            raise FrozenError(freeze.by)

    async def decide(self, approval: Approval, actor: Actor, reasons: Reasons) -> Approval:
        """Approve the call as shown; see `Approvals.break_glass`."""
        await self.check(approval, actor)
        if reasons.faults:
            raise _refused(RefusalCode.REASON_REQUIRED)
        if unseen := self.votes.unseen(approval, actor.user_id, Surface.FORM):
            raise unseen
        now, digest = self.votes.clock(), approval.digest
        emergency = Emergency(what=reasons.what.strip(), why_now=reasons.why_now.strip())
        decision = Decision(
            status=Status.APPROVED,
            by=actor.user_id,
            at_ms=now,
            digest=digest,
            emergency=emergency,
        )
        for _ in range(_TRIES):
            # Votes did not decide it. Record votes whose process crashed before recording them.
            await self.votes.gone(approval, ())
            changed = approval.changed(
                status=Status.APPROVED, decision=decision, votes=(), claim=CardClaim()
            )
            write = partial(voted, judged=changed, now_ms=now)
            approvals, name = self.votes.approvals, approval.approval_id
            stored = await update(approvals, name, write, writes_due=True)
            if stored is not None:
                return stored
            approval = await approvals.get(name)
            if approval.status is not Status.PENDING or now >= approval.expires_ms:
                raise ApprovalClosedError(approval)
            if approval.digest != digest:
                break
        raise OutdatedCardError(approval.approval_id)


@dataclass(frozen=True, slots=True)
class BreakGlassAlert:
    """Alerts the bypassed approvers of a break-glass decision."""

    votes: Callable[[], Votes]
    notices: Notices
    spawn: Spawn
    _begun: LRUCache[str, set[str]] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    async def __call__(self, approval: Approval) -> None:
        """Alert the rule's channel and all other people who could have decided.

        The call does not wait long for the alerts; `take_untold` returns people whose alert failed.
        """
        if approval.approval_id in self._begun:  # the approval's worker calls this, too
            return
        untold = self._begun[approval.approval_id] = set[str]()
        people = await self._people(approval)
        untold.update(people)
        tasks = [asyncio.ensure_future(self._tell(approval, to, untold)) for to in people]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_PATIENCE_S)
            for task in late:
                self.spawn(_end(task))

    async def _people(self, approval: Approval) -> list[str]:
        """Return the recipients, the channel first."""
        decision, glass = approval.decision, glass_of(approval)
        if decision is None or glass is None:
            return []
        people = sorted(await left_out(self.votes().lookup, approval, decision.by))
        if len(people) > MOST_TOLD:
            self._fault(approval, f"{len(people) - MOST_TOLD} more people could have decided")
        return [glass.alert, *people[:MOST_TOLD]]

    def take_untold(self, approval: Approval) -> tuple[str, ...]:
        """Remove and return people whom this process could not alert; the caller retries."""
        untold = self._begun.get(approval.approval_id) or set()
        taken = tuple(sorted(untold))
        untold.clear()
        return taken

    async def again(self, approval: Approval, to: str) -> None:
        """Alert a person whose first alert failed. An existing message is reused.

        Raises:
            DeliveryError: Slack refused the message for now.
        """
        await self.notices.alert(approval, to=to)

    async def _tell(self, approval: Approval, to: str, untold: set[str]) -> None:
        try:
            await self.notices.alert(approval, to=to)
        except DeliveryError as error:
            self._fault(approval, f"{to} could not be told: {error}")
            if not error.is_permanent:
                return
        untold.discard(to)

    def _fault(self, approval: Approval, why: str) -> None:
        logger.error(
            "emergency override alert failed: %s",
            why,
            extra={"action": "alert_failed", "approval_id": approval.approval_id},
        )


async def _end(task: asyncio.Future[None]) -> None:
    await task


_PERSONS = frozenset(
    {RefusalCode.DEACTIVATED, RefusalCode.BOT, RefusalCode.EXTERNAL, RefusalCode.GUEST}
)


def _refused(code: RefusalCode, *, detail: str = "") -> RefusalError:
    return RefusalError(code.value, code.words, detail=detail)
