"""The care after a database went back to a copy: people are asked what the records do not know.

Whatever happened after the copy is not on record: a request that is pending may have been decided,
and its call may have run. So nothing goes on by itself. The command marks what was not over;
`bot.maintenance.thread_recovery` then looks at each thread, under its lease.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.approvals.votes import begun_anew
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.ports.process import Clock
from bot.words import say
from storage.base import Storage
from storage.records import Approval, Status, Thread

_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The marked records, in numbers.

    Attributes:
        to_ms: To which moment the database went back.
        approvals: How many requests are asked again.
        threads: How many threads are looked at.
    """

    to_ms: int
    approvals: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """Marks what a copy left unfinished. May be repeated.

    Args:
        storage: The database, which nobody else has.
        clock: The time now.
    """

    storage: Storage
    clock: Clock

    async def mark(self) -> Marked:
        """Ask again what is pending, and have every thread looked at that is not at rest."""
        to_ms, now_ms = await self.storage.restoring.newest_ms(), self.clock()
        approvals = threads = 0
        era = await self.storage.restoring.begin_era()
        # How often they were used since is not known; and who was to end one may have done so.
        await self.storage.grants.end_all(now_ms=now_ms)
        await self.storage.delegations.end_all(now_ms=now_ms)
        async for thread in self._unfinished():
            await note(
                self.storage.audit,
                Act.RESTORED,
                key=f"{thread.thread_id}:{now_ms}",
                at_ms=now_ms,
                about=thread.thread_id,
                to_ms=to_ms,
            )
            await self.storage.restoring.mark(thread.thread_id, era=era, now_ms=now_ms, to_ms=to_ms)
            threads += 1
        async for approval in self._pending():
            approvals += await ask_anew(self.storage, approval, to_ms=to_ms, now_ms=now_ms)
        await self.storage.restoring.end()
        return Marked(to_ms=to_ms, approvals=approvals, threads=threads)

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


async def ask_anew(storage: Storage, approval: Approval, *, to_ms: int, now_ms: int) -> bool:
    """Put on record that people are asked again: the card says why, and has buttons.

    Args:
        storage: Where records are kept.
        approval: As just read: pending, or decided before the copy was made, and not passed on.
        to_ms: To which moment the database went back.
        now_ms: The time now; all waits begin anew.

    Returns:
        False when the record has changed meanwhile.
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
    return await storage.restoring.rewrite(asked_anew(approval, to_ms=to_ms, now_ms=now_ms))


def asked_anew(approval: Approval, *, to_ms: int, now_ms: int) -> Approval:
    """The approval as it is asked again; see `ask_anew`."""
    later = now_ms - approval.created_ms
    expires_ms = approval.expires_ms + later
    remind_ms = approval.remind_ms
    if remind_ms is None:
        remind_ms = approval.created_ms + (approval.expires_ms - approval.created_ms) // 2
    remind_ms += later
    waiting = replace(
        approval,
        status=Status.PENDING,
        decision=None,
        # Votes may have been taken back since, and who has claimed it may have let it go.
        votes_json="[]",
        stage=0,
        claim_json="",
        open=True,
        restored_to_ms=to_ms,
        restored_era=0,
        run_json="",
        seen_json="[]",
        expires_ms=expires_ms,
        remind_ms=remind_ms if remind_ms < expires_ms else None,
        escalate_ms=None if approval.escalate_ms is None else approval.escalate_ms + later,
        reminders=0,
        attempts=0,
        revision=approval.revision + 1,
        drawn_revision=0,
        # The card may have been posted after the copy was made: then it is found.
        post_tried=approval.post_tried or not approval.card_ts,
        due_ms=now_ms,
        leased_by="",
        leased_until_ms=0,
        fence=approval.fence + 1,
    )
    return begun_anew(waiting, now_ms) if approval.terms_json else waiting


def cut_text(to_ms: int) -> str:
    """Say in a thread why its turn was ended."""
    return say("message.restored_cut", time=_moment(to_ms))


def unread_text(to_ms: int) -> str:
    """Say in a thread why messages are left alone."""
    return say("message.restored_unread", time=_moment(to_ms))


def _moment(to_ms: int) -> str:
    moment = datetime.fromtimestamp(to_ms / 1_000, UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
