"""Mark unfinished work after a restore from a backup.

Events after the backup are unknown: a pending request may have been decided, and its call may have
run. Therefore nothing continues by itself. The command marks unfinished records;
`bot.maintenance.thread_recovery` then checks each thread under its lease.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from bot.approvals.program_runs import cut_off
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.ports.process import Clock
from bot.records.approval import Approval, CardClaim, Execution, Restored, Status
from bot.records.thread import Thread
from bot.stores import Stores
from bot.words import say

_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Counts of the marked records."""

    to_ms: int
    approvals: int
    threads: int
    keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """Marks what the backup left unfinished. Idempotent."""

    storage: Stores
    clock: Clock

    async def mark(self) -> Marked:
        """Ask pending requests again, and mark every active thread for recovery."""
        to_ms, now_ms = await self.storage.restoring.newest_ms(), self.clock()
        approvals = threads = 0
        epoch = await self.storage.restoring.begin_epoch()
        # Later uses and revocations of the grants are unknown.
        await self.storage.grants.end_all(now_ms=now_ms)
        await self.storage.delegations.end_all(now_ms=now_ms)
        keys = await self.storage.programs.end_all(now_ms=now_ms)
        await self._cut_off_programs(now_ms)
        async for thread in self._unfinished():
            await note(
                self.storage.audit,
                Act.RESTORED,
                key=f"{thread.thread_id}:{now_ms}",
                at_ms=now_ms,
                about=thread.thread_id,
                to_ms=to_ms,
            )
            await self.storage.restoring.mark(
                thread.thread_id, epoch=epoch, now_ms=now_ms, to_ms=to_ms
            )
            threads += 1
        async for approval in self._pending():
            approvals += await ask_anew(self.storage, approval, to_ms=to_ms, now_ms=now_ms)
        # Last: until here the database still counts as a copy, and a repeated restore marks
        # everything again.
        await self.storage.restoring.end()
        return Marked(to_ms=to_ms, approvals=approvals, threads=threads, keys=keys)

    async def _cut_off_programs(self, now_ms: int) -> None:
        """Let no approved call of a program start by a decision of before the restore."""
        write = partial(cut_off, text=say("reason.lapsed"), now_ms=now_ms)
        approvals, after = await self.storage.restoring.of_programs(limit=_PAGE)
        while approvals:
            for approval in approvals:
                await self.storage.restoring.rewrite(approval.approval_id, write, now_ms=now_ms)
            if after is None:
                return
            approvals, after = await self.storage.restoring.of_programs(limit=_PAGE, after=after)

    async def _unfinished(self) -> AsyncIterator[Thread]:
        threads, after = await self.storage.restoring.unfinished(limit=_PAGE)
        while after:
            for thread in threads:
                yield thread
            threads, after = await self.storage.restoring.unfinished(limit=_PAGE, after=after)

    async def _pending(self) -> AsyncIterator[Approval]:
        approvals, after = await self.storage.restoring.pending(limit=_PAGE)
        while after:
            for approval in approvals:
                yield approval
            approvals, after = await self.storage.restoring.pending(limit=_PAGE, after=after)


async def ask_anew(storage: Stores, approval: Approval, *, to_ms: int, now_ms: int) -> bool:
    """Store that an approval is asked again; its card says why.

    Returns:
        False if the record has changed since.
    """
    decision = approval.decision
    await note(
        storage.audit,
        Act.RESTORED,
        key=f"{approval.approval_id}:{now_ms}",
        at_ms=now_ms,
        about=approval,
        was=str(approval.status),
        decided_by=decision.by if decision is not None else "",
        to_ms=to_ms,
    )

    def ask(stored: Approval) -> Approval | None:
        is_same = stored.shown_revision == approval.shown_revision
        return asked_anew(stored, to_ms=to_ms, now_ms=now_ms) if is_same else None

    return await storage.restoring.rewrite(approval.approval_id, ask, now_ms=now_ms)


def asked_anew(approval: Approval, *, to_ms: int, now_ms: int) -> Approval:
    """Return the approval as it is asked again; see `ask_anew`."""
    since_ms = approval.restored.at_ms or approval.created_ms
    return approval.changed(
        status=Status.PENDING,
        decision=None,
        # Votes and claims may have been withdrawn after the backup.
        votes=(),
        stage=0,
        claim=CardClaim(),
        open=True,
        restored=Restored(to_ms=to_ms, at_ms=now_ms),
        escalation=approval.escalation.restarted(now_ms, is_back=approval.stage > 0),
        execution=Execution(mode=approval.execution.mode),
        seen=(),
        expires_ms=approval.expires_ms + now_ms - since_ms,
        attempts=0,
        shown_revision=approval.shown_revision + 1,
        shown_ms=now_ms,
        card=approval.card.changed(revision=0),
        due_ms=now_ms,
        leased_by="",
        leased_until_ms=0,
        fence=approval.fence + 1,
    )


def cut_text(to_ms: int) -> str:
    """Return the thread message that says why the turn was ended."""
    return say("message.restored_cut", time=_moment(to_ms))


def unread_text(to_ms: int) -> str:
    """Return the thread message that says why messages were ignored."""
    return say("message.restored_unread", time=_moment(to_ms))


def _moment(to_ms: int) -> str:
    moment = datetime.fromtimestamp(to_ms / 1_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
