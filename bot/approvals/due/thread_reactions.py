"""Reaction on a thread's first message: pending, or the outcome.

An approval's reaction is stored before it is shown: a new approval starts as pending. After a crash
the update is repeated, which is idempotent. Reactions are optional: other work neither waits for
them nor fails with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from cachetools import LRUCache

from bot.approvals.due.approval_pass import ApprovalPass
from bot.approvals.execution import execution_of, lets_run
from bot.approvals.outcome import RequestOutcome, outcome_of
from bot.clock import milliseconds
from bot.errors import DeliveryError, reason_of
from bot.ports.process import Clock
from bot.ports.threads import Reactions
from bot.records.approval import Approval, Status
from bot.records.approval_queries import ApprovalCollection, newest_of, open_of

logger = logging.getLogger(__name__)

WAITS = str(RequestOutcome.WAITS)
STARTS = "starts"
"""Approved, but the call has not begun: shown like a call that runs."""
PARKED = "parked"
"""Approved, but a freeze keeps the call from starting."""
SHARED = "waits, shared"
"""Pending, but another process may be removing the reaction: set again later."""
_WAITING = frozenset({WAITS, SHARED})
SIGN_PATIENCE = timedelta(seconds=1.5)
"""Longest part of a pass for updating the reaction."""
LATER = timedelta(seconds=5)
"""Retry delay for a reaction."""
_REMEMBERED = 1_000
"""Number of threads whose reactions this process remembers."""
_OLDER = 10
"""Number of a thread's approvals with possible reactions."""


def sign_of(approval: Approval) -> str:
    """Return the name of an approval's current reaction: an outcome, `STARTS` or `PARKED`."""
    is_call = lets_run(approval) and bool(approval.tool.strip())
    if is_call and execution_of(approval) is None:
        return STARTS if approval.execution.parked is None else PARKED
    return str(outcome_of(approval))


@dataclass(slots=True)
class _Root:
    """Cached state of a thread's first message.

    Attributes:
        lock: Held while reactions change.
        waiting: Ids of approvals shown as pending.
        over: Ids of the turn's approvals that had ended at the last look-up.
        ends: Turn and reaction by approval id; None before the look-up.
        seen: Open approvals by id, as last read by the thread's worker.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: set[str] = field(default_factory=set)
    over: frozenset[str] = frozenset()
    ends: dict[str, tuple[str, str]] | None = None
    seen: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThreadReactions:
    """Updates the reactions of threads, under the leases of approvals."""

    approvals: ApprovalCollection
    roots: Reactions
    clock: Clock
    _known: LRUCache[str, _Root] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def saw(self, thread_id: str, seen: Mapping[str, Status]) -> None:
        """Take the open approvals of a thread as just read."""
        root: _Root | None = self._known.get(thread_id)
        if root is not None:
            root.seen = seen

    async def update_reaction(
        self, approval: Approval, worker_pass: ApprovalPass
    ) -> tuple[str | None, int | None]:
        """Update the reaction from the record.

        Returns:
            The reaction to store, None if stored; and when to retry, or None.
        """
        try:
            async with asyncio.timeout(SIGN_PATIENCE.total_seconds()):
                return await self._change(approval, worker_pass)
        except (DeliveryError, TimeoutError) as error:
            logger.info(
                "reaction on a thread not updated, will retry: %s",
                reason_of(error),
                extra={"action": "sign_failed"},
            )
            return None, self.clock() + milliseconds(LATER)

    async def _change(
        self, approval: Approval, worker_pass: ApprovalPass
    ) -> tuple[str | None, int | None]:
        now, was = sign_of(approval), approval.sign
        if now == was and approval.approval_id in self._root(approval).waiting:
            return None, None
        if not was or now == was != WAITS:
            return None, None
        root = self._root(approval)
        async with root.lock:
            if was == SHARED or (root.ends is None and approval.turn != 1):
                root.ends = await self._known_ends(approval)
            root.ends = root.ends or {}
            if now == WAITS:
                return await self._wait(approval, root, root.ends, worker_pass)
            await self._end(approval, root, root.ends, now)
        return now, None

    def _root(self, approval: Approval) -> _Root:
        root: _Root = self._known.setdefault(approval.thread_id, _Root())
        return root

    async def _wait(
        self,
        approval: Approval,
        root: _Root,
        ends: dict[str, tuple[str, str]],
        worker_pass: ApprovalPass,
    ) -> tuple[str | None, int | None]:
        """Show the pending reaction alone; outcomes are shown once none is pending."""
        if not (
            worker_pass.is_born and root.waiting
        ):  # otherwise another approval has set the reaction
            await self.roots.put(approval, WAITS, look_first=not worker_pass.is_born)
            for sign in sorted({sign for _, sign in ends.values()}):
                await self.roots.remove(approval, sign)
        root.waiting.add(approval.approval_id)
        root.over -= {approval.approval_id}
        for approval_id in [
            approval_id for approval_id, (turn, _) in ends.items() if turn != approval.checkpoint_id
        ]:
            del ends[approval_id]
        if approval.sign == WAITS:
            return None, None
        if worker_pass.is_born:
            return None, self.clock() + milliseconds(LATER)
        return WAITS, None

    async def _end(
        self, approval: Approval, root: _Root, ends: dict[str, tuple[str, str]], now: str
    ) -> None:
        """Show the outcome, unless another approval of the thread is pending.

        If another process may have created an approval, the thread is read again afterwards: a
        concurrent approval is either found, or sets its reaction later.
        """
        was, turn = approval.sign, approval.checkpoint_id
        is_alone = approval.sign == WAITS and root.waiting == {approval.approval_id}
        is_seen = approval.approval_id in root.over  # the last look-up came after its end
        waits = not is_alone and await self._others(approval, root, is_seen=is_seen)
        root.waiting.discard(approval.approval_id)
        if was in _WAITING and not (is_alone or is_seen or waits):
            ends.update(await self._known_ends(approval))  # another process may have ended some
        older = {sign for of, sign in ends.values() if of != turn}
        mine = {approval_id: end for approval_id, end in ends.items() if end[0] == turn}
        mine[approval.approval_id] = (turn, now)
        signs = {sign for _, sign in mine.values()}
        shown = WAITS if was in _WAITING else "" if was in signs else was
        await self.roots.put(approval, now, was=shown, look_first=True, waits=waits)
        ends.clear()
        ends.update(mine)
        if waits:
            return
        for sign in sorted(signs - {now}):
            await self.roots.put(approval, sign, again=True)
        if was in _WAITING and not is_seen:
            await self._lift(approval, root, signs, is_alone=is_alone)
        for sign in sorted(older - signs):
            await self.roots.remove(approval, sign, keep=now)

    async def _lift(
        self, approval: Approval, root: _Root, signs: Iterable[str], *, is_alone: bool
    ) -> None:
        """Remove the pending reaction."""
        root.waiting.clear()
        try:
            await self.roots.remove(approval, WAITS)
        except BaseException:
            root.over = frozenset()  # the reaction remains: the next update removes it
            raise
        if not is_alone and await self._others_wait(approval, root):
            await self.roots.put(approval, WAITS, again=True)
            for sign in sorted(signs):
                await self.roots.remove(approval, sign)

    async def _others(self, approval: Approval, root: _Root, *, is_seen: bool) -> bool:
        """Whether another approval of the thread is pending."""
        rest = root.waiting - {approval.approval_id}
        if is_seen or (not rest and approval.sign not in _WAITING):
            return bool(rest)
        return _others_waited(approval, root) or await self._others_wait(approval, root)

    async def _others_wait(self, approval: Approval, root: _Root) -> bool:
        """Whether another approval of the thread is pending; caches the ended ones."""
        opened = await open_of(self.approvals, approval.thread_id)
        root.over = frozenset(
            other.approval_id
            for other in opened
            if other.checkpoint_id == approval.checkpoint_id and other.status is not Status.PENDING
        )
        waiting = {other.approval_id for other in opened if other.status is Status.PENDING}
        root.waiting = waiting - {approval.approval_id}
        return bool(root.waiting)

    async def _known_ends(self, approval: Approval) -> dict[str, tuple[str, str]]:
        """Return the stored outcomes of the thread's other approvals."""
        others = await newest_of(self.approvals, approval.thread_id, limit=_OLDER)
        return {
            other.approval_id: (other.checkpoint_id, other.sign)
            for other in others
            if other.sign not in {"", *_WAITING} and other.approval_id != approval.approval_id
        }


def _others_waited(approval: Approval, root: _Root) -> bool:
    """Whether another approval was pending at the last read after the end.

    A later end is followed by a read of its own, which finds this approval ended.
    """
    seen, root.seen = root.seen, {}
    is_after = seen.get(approval.approval_id, Status.PENDING) is not Status.PENDING
    return is_after and not approval.restored.to_ms and Status.PENDING in seen.values()
