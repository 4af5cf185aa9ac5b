"""Operator commands: list pending requests, and ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import decided
from bot.approvals.outcome import ANEW
from bot.audit.entries import note_decision
from bot.errors import BotError
from bot.policy.rotation import on_duty
from bot.ports.process import Clock
from bot.records.approval import Approval, Decision, Kind, Status
from bot.stores import Stores
from storage.documents import update

_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuery:
    """Filter for pending requests. Empty fields match everything."""

    user: str = ""
    rule: str = ""
    is_stuck: bool = False
    outdated_by: str = ""

    def fits(self, approval: Approval, now_ms: int) -> bool:
        """Whether an approval matches the filter."""
        is_outdated = (
            approval.kind is not Kind.QUESTION and approval.policy_file != self.outdated_by
        )
        return (
            (not self.is_stuck or bool(approval.stuck))
            and (not self.rule or self.rule in approval.rule.split(" + "))
            and (not self.outdated_by or is_outdated)
            and (not self.user or self.user in _named(approval, now_ms))
        )


@dataclass(frozen=True, slots=True)
class PendingRequests:
    """Finds pending requests and has them asked again."""

    storage: Stores
    clock: Clock

    async def find_pending(self, query: PendingQuery) -> list[Approval]:
        """Return the pending requests, the earliest expiry first."""
        now = self.clock()
        approvals = [approval async for approval in self._all() if query.fits(approval, now)]
        return sorted(approvals, key=lambda approval: (approval.expires_ms, approval.approval_id))

    async def _all(self) -> AsyncIterator[Approval]:
        approvals, after = await self.storage.restoring.pending(limit=_PAGE)
        while after:
            for approval in approvals:
                yield approval
            approvals, after = await self.storage.restoring.pending(limit=_PAGE, after=after)

    async def reask(self, approval_id: str) -> Approval:
        """Cancel a request so that its gate asks again; the running bot does the rest.

        Returns:
            The cancelled approval.

        Raises:
            RecordNotFoundError: The approval does not exist.
            BotError: The request cannot be asked again; the text says why.
        """
        approval = await self.storage.approvals.get(approval_id)
        if why := why_not(approval):
            raise BotError(f"{approval_id} can't be asked again: {why}")
        decision = Decision(
            status=Status.SUPERSEDED,
            by="",
            at_ms=self.clock(),
            reason=ANEW,
            digest=approval.digest,
        )
        write = partial(decided, decision=decision, digest=approval.digest)
        ended = await update(self.storage.approvals, approval_id, write, writes_due=True)
        if ended is None:
            raise BotError(f"{approval_id} has just been decided, edited, or expired")
        await note_decision(self.storage.audit, ended, decision)
        await self.storage.threads.wake(ended.thread_id, now_ms=self.clock())
        return ended


def why_not(approval: Approval) -> str:
    """Return why a request cannot be asked again, as a clause; empty if it can."""
    if approval.status is not Status.PENDING:
        return "it isn't waiting for a decision"
    if approval.kind is not Kind.APPROVAL or not approval.tool:
        return "only calls that wait for approval can be asked again"
    if approval.edits.original is not None:
        return "it was edited, and the edit would be lost; edit it again, or reject it"
    return ""


def _named(approval: Approval, now_ms: int) -> set[str]:
    """Return the ids that the rule's groups name, including who is on call now."""
    names: set[str] = set()
    for group in approval.terms.groups.values():
        names.update((*group.users, *group.usergroups, *group.channels))
        duty = on_duty(group.rotation, now_ms) if group.rotation else None
        names.update([duty] if duty else [])
    return names
