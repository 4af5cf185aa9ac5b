"""The sign at the root of a thread: that something waits in it, and how it ended.

The sign of an approval is on its record before anybody sees it: a new one says that it waits from
its birth. What a crash left open is done again, which does no harm. Signs help; nothing waits for
them, and nothing fails by them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from cachetools import LRUCache

from bot.approvals.due.visit import Visit
from bot.approvals.execution import RunState, run_of
from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.process import Clock
from bot.ports.threads import Reactions
from storage.ports.approvals import ApprovalStore
from storage.records import Approval, Kind, Status

logger = logging.getLogger(__name__)

WAITS = "waits"
SHARED = "waits, shared"
"""It waits, and another process may just be taking that off: it is put on once more, later."""
_WAITING = frozenset({WAITS, SHARED})
SIGN_PATIENCE = timedelta(seconds=1.5)
"""The part of an attendance that a sign may take."""
LATER = timedelta(seconds=5)
"""A sign that Slack does not take now is tried again after this."""
_REMEMBERED = 1_000
"""Threads of which this process knows which signs it has put on."""
_OLDER = 10
"""Approvals of a thread whose signs may still be on its root."""
_ENDS: Mapping[Status, str] = {
    Status.REJECTED: "rejected",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
    Status.SUPERSEDED: "replaced",
    Status.UNDECIDABLE: "nobody",
    Status.DENIED: "rejected",
}
_RUNS: Mapping[RunState, str] = {
    RunState.RAN: "ran",
    RunState.FAILED: "failed",
    RunState.DOUBT: "doubt",
    RunState.STOPPED: "cancelled",
}


def sign_of(approval: Approval) -> str:
    """The name of the sign that an approval has now."""
    if approval.status is Status.PENDING:
        return WAITS
    if approval.status not in {Status.APPROVED, Status.ANSWERED}:
        return _ENDS.get(approval.status, "cancelled")
    run = run_of(approval)
    if run is not None and run.state in _RUNS:
        return _RUNS[run.state]
    if approval.kind is Kind.DOUBT:
        return "cancelled" if _is_left(approval) else "answered"
    return "approved" if approval.status is Status.APPROVED else "answered"


def _is_left(approval: Approval) -> bool:
    """Whether somebody said of a call in doubt that it is not to run again, and has not run."""
    text = approval.decision.answer_json if approval.decision else ""
    found = json.loads(text) if text else {}
    return isinstance(found, dict) and found.get("choice") == "give_up"


@dataclass(slots=True)
class _Root:
    """The root of a thread, as far as this process knows.

    Attributes:
        lock: Held while its signs are changed.
        waiting: Ids of approvals whose waiting it has shown.
        over: Ids of those of a turn that had ended at the last look.
        ends: How approvals ended: the turn and the sign of each, by id; None before the look-up.
        seen: Its open approvals by id, as the pass over the thread has read them last.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: set[str] = field(default_factory=set)
    over: frozenset[str] = frozenset()
    ends: dict[str, tuple[str, str]] | None = None
    seen: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ThreadReactions:
    """Keeps the roots of threads true, under the leases of approvals."""

    approvals: ApprovalStore
    roots: Reactions
    clock: Clock
    _known: LRUCache[str, _Root] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    def saw(self, thread_id: str, seen: Mapping[str, Status]) -> None:
        """Take the open approvals of a thread as somebody has just read them."""
        root: _Root | None = self._known.get(thread_id)
        if root is not None:
            root.seen = seen

    async def see_to(self, approval: Approval, visit: Visit) -> tuple[str | None, int | None]:
        """Bring the root to what the record says.

        Returns:
            The sign that is to be put on record, None where it stands there; and when to try again,
            None when that is not needed.
        """
        try:
            async with asyncio.timeout(SIGN_PATIENCE.total_seconds()):
                return await self._change(approval, visit)
        except (DeliveryError, TimeoutError) as error:
            logger.info(
                "reaction on a thread not updated, will retry: %s",
                error,
                extra={"action": "sign_failed"},
            )
            return None, self.clock() + milliseconds(LATER)

    async def _change(self, approval: Approval, visit: Visit) -> tuple[str | None, int | None]:
        now, was = sign_of(approval), approval.sign
        if now == was and approval.approval_id in self._root(approval).waiting:
            return None, None
        if not was or now == was != WAITS:
            return None, None
        root = self._root(approval)
        async with root.lock:
            if was == SHARED or (root.ends is None and not _is_first(approval)):
                root.ends = await self._known_ends(approval)
            root.ends = root.ends or {}
            if now == WAITS:
                return await self._wait(approval, root, root.ends, visit)
            await self._end(approval, root, root.ends, now)
        return now, None

    def _root(self, approval: Approval) -> _Root:
        found: _Root = self._known.setdefault(approval.thread_id, _Root())
        return found

    async def _wait(
        self, approval: Approval, root: _Root, ends: dict[str, tuple[str, str]], visit: Visit
    ) -> tuple[str | None, int | None]:
        """Show that something waits, and nothing else: what ended is shown when nothing waits."""
        if not (visit.is_born and root.waiting):  # else it is there, for another approval
            await self.roots.put(approval, WAITS, look_first=not visit.is_born)
            for sign in sorted({sign for _, sign in ends.values()}):
                await self.roots.take(approval, sign)
        root.waiting.add(approval.approval_id)
        root.over -= {approval.approval_id}
        for one in [one for one, (turn, _) in ends.items() if turn != approval.checkpoint_id]:
            del ends[one]
        if approval.sign == WAITS:
            return None, None
        if visit.is_born:
            return None, self.clock() + milliseconds(LATER)
        return WAITS, None

    async def _end(
        self, approval: Approval, root: _Root, ends: dict[str, tuple[str, str]], now: str
    ) -> None:
        """Show how it ended; where something else waits, that is shown alone until it ended, too.

        Where another process may have asked something, that is looked up again afterwards: what was
        asked meanwhile is seen, or puts its sign on later.
        """
        was, turn = approval.sign, approval.checkpoint_id
        is_alone = approval.sign == WAITS and root.waiting == {approval.approval_id}
        is_seen = approval.approval_id in root.over  # the last look was after its end
        waits = not is_alone and await self._others(approval, root, is_seen=is_seen)
        root.waiting.discard(approval.approval_id)
        if was in _WAITING and not (is_alone or is_seen or waits):
            ends.update(await self._known_ends(approval))  # another process may have ended some
        older = {sign for of, sign in ends.values() if of != turn}
        mine = {one: end for one, end in ends.items() if end[0] == turn}
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
            await self.roots.take(approval, sign, keep=now)

    async def _lift(
        self, approval: Approval, root: _Root, signs: Iterable[str], *, is_alone: bool
    ) -> None:
        """Take off that something waits."""
        root.waiting.clear()
        try:
            await self.roots.take(approval, WAITS)
        except BaseException:
            root.over = frozenset()  # it still stands there: whoever comes next takes it off
            raise
        if not is_alone and await self._others_wait(approval, root):
            await self.roots.put(approval, WAITS, again=True)
            for sign in sorted(signs):
                await self.roots.take(approval, sign)

    async def _others(self, approval: Approval, root: _Root, *, is_seen: bool) -> bool:
        """Whether something else in its thread waits."""
        rest = root.waiting - {approval.approval_id}
        if is_seen or (not rest and approval.sign not in _WAITING):
            return bool(rest)
        return _others_waited(approval, root) or await self._others_wait(approval, root)

    async def _others_wait(self, approval: Approval, root: _Root) -> bool:
        """Whether something else waits; what had ended by now is kept in mind: no other look."""
        heads = await self.approvals.heads_of(approval.thread_id)
        root.over = frozenset(
            one.approval_id
            for one in heads
            if one.checkpoint_id == approval.checkpoint_id and one.status is not Status.PENDING
        )
        waiting = {one.approval_id for one in heads if one.status is Status.PENDING}
        root.waiting = waiting - {approval.approval_id}
        return bool(root.waiting)

    async def _known_ends(self, approval: Approval) -> dict[str, tuple[str, str]]:
        """How other approvals of the thread ended, as it is on record."""
        found = await self.approvals.newest_of(approval.thread_id, limit=_OLDER)
        return {
            one.approval_id: (one.checkpoint_id, one.sign)
            for one in found
            if one.sign not in {"", *_WAITING} and one.approval_id != approval.approval_id
        }


def _is_first(approval: Approval) -> bool:
    """Whether it is of the first turn of its thread."""
    return approval.checkpoint_id.endswith("#1")


def _others_waited(approval: Approval, root: _Root) -> bool:
    """Whether something else waited when the thread was last read, after this one had ended.

    Who ends that looks, or has it read, after its own end: then this one does not wait any more.
    """
    seen, root.seen = root.seen, {}
    is_after = seen.get(approval.approval_id, Status.PENDING) is not Status.PENDING
    return is_after and not approval.restored_to_ms and Status.PENDING in seen.values()
