"""The document of a Slack thread, its lease, and the store of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from storage.documents import Collection, Index, Spec, WorkDocument, update
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError


class Thread(WorkDocument):
    """One Slack thread and the agent that lives in it.

    It is at rest when no turn of it is open, nothing is due, and nobody has its lease.
    """

    spec = Spec(
        name="threads",
        noun="thread",
        key="thread_id",
        indexes=(
            Index(("active_ms", "id")),
            Index(("id",), {"turn_open": True}),
        ),
        content=frozenset(
            {"team_id", "channel_id", "thread_ts", "requester_id", "created_ms", "agent"}
        ),
    )

    thread_id: str
    """`team:channel:thread_ts`."""
    team_id: str
    channel_id: str
    thread_ts: str
    requester_id: str
    """Slack user id of the person whose message started the thread."""
    created_ms: int
    turn: int = 0
    """Number of the newest turn; the first is 1."""
    turn_open: bool = False
    """Whether that turn has not ended: it runs, waits, or was cut off by a crash."""
    wakes: int = 0
    """Counts the calls for work; tells a release whether more came meanwhile."""
    attempts: int = 0
    """Counts the claims in a row that ended in an error."""
    requesters: tuple[str, ...] = ()
    """User ids: everybody whose words the agent has read here."""
    restored_epoch: int = 0
    """The epoch that began when the database went back to a copy in which this thread was not at
    rest; 0 once the thread was looked at after that. See `RestoreStore.epoch`."""
    restored_to_ms: int = 0
    """The moment to which it last went back."""
    restored_turn: int = 0
    """The turn that waited for people then: all that it asks may have been decided before."""
    active_ms: int = 0
    """The time of the last call for work; of the creation, before the first."""
    agent: str = ""
    """The agent that its first message named; empty for the one of its channel."""
    clean_fence: int = 0
    """The fence of the last claim whose lease was given back; later ones were cut off."""
    crashes: int = 0
    """Counts claims in a row that followed one that was cut off; raised before the work begins."""

    @property
    def was_cut_off(self) -> bool:
        """Whether the lease of the claim before was never given back: its process may be dead."""
        return self.fence - 1 > self.clean_fence or self.crashes > 0

    @property
    def checkpoint_id(self) -> str:
        """Id of the checkpoint of the newest turn."""
        return f"{self.thread_id}#{self.turn}"

    @property
    def unread_turn(self) -> int:
        """The turn that takes what stood unread in a copy to which the database went back."""
        return -(self.turn + 1)

    def woken(self, now_ms: int) -> Self:
        """Return it as called for work."""
        return self.changed(active_ms=now_ms, wakes=self.wakes + 1, due_ms=now_ms)

    def released(
        self, *, fence: int, wakes: int, now_ms: int, retry_ms: int | None, ends_turn: bool
    ) -> Self:
        """Return it as its worker leaves it; due at once if somebody woke it meanwhile."""
        return self.changed(
            clean_fence=fence,
            crashes=0,
            due_ms=retry_ms if self.wakes == wakes else now_ms,
            attempts=0 if retry_ms is None else self.attempts + 1,
            turn_open=self.turn_open and not ends_turn,
        )


class ThreadStore:
    """All threads. A write under a lease that was lost returns False, and nothing is written."""

    def __init__(self, collection: Collection[Thread]) -> None:
        self.collection = collection
        self.get, self.due = collection.get, collection.due
        self.claim, self.extend = collection.claim, collection.extend

    async def add(self, thread: Thread) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        return bool(await self.collection.insert(thread))

    async def ensure(self, thread: Thread) -> Thread:
        """Insert the thread unless its id exists; return what is stored."""
        return thread if await self.add(thread) else await self.get(thread.thread_id)

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        """Ask for work, whoever holds the lease.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        with suppress(RecordFormatError):  # quarantined: what waits in it is found when it is read
            await update(self.collection, thread_id, lambda one: one.woken(now_ms), writes_due=True)

    async def count_due(self, *, now_ms: int) -> int:
        """Count the threads that `due` would give without a limit."""
        return await self.collection.count(
            {"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}}
        )

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        """Threads of a requester whose open turn somebody works on: with a lease beyond `now_ms`.

        Those that cannot be read are left out.
        """
        found = (await self.collection.find({"leased_until_ms": {"$gt": now_ms}})).documents
        theirs = [
            one
            for one in found
            if one.turn_open and (one.team_id, one.requester_id) == (team_id, requester_id)
        ]
        return sorted(theirs, key=lambda one: -one.created_ms)[: max(limit, 0)]

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        """Quarantine a thread of which something cannot be read, and give the lease back.

        `clean_fence` becomes the fence; `crashes` stays.
        """
        if not await self._held(thread_id, fence, clean_fence=fence):
            return False
        return await self.collection.quarantine(thread_id, why=why, fence=fence)

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        """Add one to `crashes`, before work begins that was cut off.

        Only `release` sets it back: work that ends its process leaves it as it is.
        """
        return await self._change(
            thread_id, fence, lambda one: one.changed(crashes=one.crashes + 1)
        )

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters: Sequence[str] | None = None,
    ) -> bool:
        """Record that a turn begins or has ended, and whose words the agent reads."""
        more = {} if requesters is None else {"requesters": tuple(requesters)}
        return await self._held(thread_id, fence, turn=turn, turn_open=turn_open, **more)

    async def set_requesters(
        self, thread_id: str, *, fence: int, requesters: Sequence[str]
    ) -> bool:
        """Record whose words the agent reads."""
        return await self._held(thread_id, fence, requesters=tuple(requesters))

    async def release(
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
    ) -> bool:
        """Give the lease back; with `ends_turn`, the same write records that the turn has ended.

        When `wakes` still is what the caller saw at its claim, `due_ms` becomes `retry_ms` (None:
        nothing is due any more). In both cases `attempts` becomes 0, or one higher when `retry_ms`
        is given.

        Returns:
            True when nothing more is due now; False when there is more to do now, or the lease was
            lost.
        """

        def release(one: Thread) -> Thread:
            return one.released(
                fence=fence, wakes=wakes, now_ms=now_ms, retry_ms=retry_ms, ends_turn=ends_turn
            )

        try:
            stored = await update(
                self.collection, thread_id, release, fence=fence, writes_due=True, releases=True
            )
        except (RecordConflictError, RecordNotFoundError):
            return False
        return stored is not None and (stored.due_ms is None or stored.due_ms > now_ms)

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        """Record that a thread was looked at after a restore; `turn` waits for people."""
        return await self._held(thread_id, fence, restored_epoch=0, restored_turn=turn)

    async def _held(self, thread_id: str, fence: int, **changes: Any) -> bool:
        return await self._change(thread_id, fence, lambda one: one.changed(**changes))

    async def _change(self, thread_id: str, fence: int, change: Callable[[Thread], Thread]) -> bool:
        """Change a thread under its lease; False when that was lost."""
        try:
            await update(self.collection, thread_id, change, fence=fence)
        except (RecordConflictError, RecordNotFoundError):
            return False
        return True
