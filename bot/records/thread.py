"""The document of a Slack thread, its lease, and the store of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from bot.records.origin import RequestOrigin
from storage.documents import Collection, Index, Part, Spec, Text, WorkDocument, update
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError
from storage.thread_ids import ThreadId, channel_of, name_of, team_of, turn_id_of

MOST_PARKED = 10_000
"""Maximum number of threads with parked calls that one search finds."""


class RestoredThread(Part):
    """The effects of restores of the database on a thread that was not at rest in the backup.

    Stored: version 1, must stay readable.
    """

    epoch: int = 0
    """Epoch of the restore. 0 once the thread was checked after it. See `RestoreStore.epoch`."""
    to_ms: int = 0
    """Time of the backup; 0 without a restore."""
    turn: int = 0
    """The turn that waited for people in the backup: its requests may have been decided since. 0
    for none."""

    def settled(self, turn: int) -> Self:
        """Record that the thread was checked; `turn` waits for people, 0 for none."""
        return self.changed(epoch=0, turn=turn)


class ModelUse(Part):
    """Use of models by a thread, in its newest turn and on the newest day.

    Stored: version 1, must stay readable.
    """

    turn: int = 0
    """The turn that is counted."""
    turn_tokens: int = 0
    """Tokens that the turn has read and written."""
    turn_allowed: int = 0
    """Tokens that people have approved for the turn in all; 0 without an approval."""
    day: str = ""
    """The day that is counted, such as `2026-11-29`, in the policy's time zone."""
    day_cost: int = 0
    """Cost of the day, in millionths of a US dollar."""
    day_allowed: int = 0
    """Cost that people have approved for the day in all; 0 without an approval."""

    def at(self, *, turn: int, day: str) -> Self:
        """Return the use of a turn on a day; a new turn or day begins at 0."""
        use = self
        if turn != use.turn:
            use = use.changed(turn=turn, turn_tokens=0, turn_allowed=0)
        if day != use.day:
            use = use.changed(day=day, day_cost=0, day_allowed=0)
        return use

    def more(self, *, tokens: int, cost: int) -> Self:
        """Add the use of one answer."""
        return self.changed(turn_tokens=self.turn_tokens + tokens, day_cost=self.day_cost + cost)


class Thread(WorkDocument):
    """One Slack thread and the state of its agent.

    A thread is at rest when no turn is open, no work is due, and no process has the lease.
    """

    spec = Spec(
        name="threads",
        noun="thread",
        key="thread_id",
        indexes=(
            Index(("active_ms",)),
            Index(where={"turn_open": True}),
            Index(("parked_ms", "parked_by"), {"parked_ms": {"$gt": 0}}),
            Index(("start_id",), {"start_id": {"$gt": ""}}),
        ),
        content=frozenset({"requester_id", "created_ms", "agent"}),
    )

    thread_id: ThreadId
    requester_id: str
    """Slack user id of the person whose message started the thread."""
    created_ms: int
    turn: int = 0
    """Number of the newest turn; the first is 1."""
    turn_open: bool = False
    """Whether the newest turn has not ended: it runs, waits for people, or its process crashed."""
    wakes: int = 0
    """Number of wake-ups. If it grew since the claim, there is new work at the release."""
    attempts: int = 0
    """Number of claims in a row that ended with an error, for the back-off."""
    requesters: tuple[str, ...] = ()
    """Slack user ids of all people whose messages the agent has read in this thread."""
    restored: RestoredThread = RestoredThread()
    """The effects of restores of the database on this thread."""
    model_use: ModelUse = ModelUse()
    """Use of its models; counted only for agents with limits."""
    active_ms: int = 0
    """Time of the last wake-up; before the first one, time of the creation."""
    agent: str = ""
    """Name of the agent that the first message addressed; empty for the channel's agent."""
    clean_fence: int = 0
    """Fencing token of the last claim that released its lease. The process of a later claim crashed
    or was stopped."""
    crashes: int = 0
    """Number of claims in a row after a crash. It rises before the work begins, so that another
    crash during the work is counted."""
    parked_ms: int = 0
    """Place among the threads with calls that wait for the end of a freeze: the time since which
    they wait, or of the last try that failed; 0 if none waits."""
    parked_by: str = ""
    """Ids of the freezes that these calls wait for, with spaces between."""
    origin: RequestOrigin = RequestOrigin()
    """The door by which the thread began; another one than `slack` if no person started it."""
    depth: int = 0
    """How many starts without a person led to it; 0 for a thread that a person started."""
    start_id: str = ""
    """Id of the start that made it; empty if a person started it."""
    told_turn: int = 0
    """Newest turn of whose end the endpoints of the program that started the thread are told."""
    said: Text = ""
    """The last text of the agent, masked and cut. Empty in threads that a person started: no
    program reads them."""
    deleted_turn: int = 0
    """Number of the newest turn of which a message was deleted after the turn had taken it."""

    @property
    def was_cut_off(self) -> bool:
        """Whether the previous claim was never released: its process may have crashed."""
        return self.fence - 1 > self.clean_fence or self.crashes > 0

    @property
    def has_untold_end(self) -> bool:
        """Whether a program must be told of the end of the newest turn.

        The write that ends a turn makes this true, so no end is lost.
        """
        return bool(self.origin.key) and not self.turn_open and self.told_turn < self.turn

    @property
    def team_id(self) -> str:
        """Slack id of the workspace."""
        return team_of(self.thread_id)

    @property
    def channel_id(self) -> str:
        """Slack id of the channel."""
        return channel_of(self.thread_id)

    @property
    def thread_ts(self) -> str:
        """`ts` of the first message."""
        return name_of(self.thread_id)

    @property
    def checkpoint_id(self) -> str:
        """Id of the checkpoint of the newest turn."""
        return turn_id_of(self.thread_id, self.turn)

    @property
    def unread_turn(self) -> int:
        """The turn number for messages that were unread in a restored copy. No turn reads them."""
        return -(self.turn + 1)

    def woken(self, now_ms: int) -> Self:
        """Return the thread as due now."""
        return self.changed(active_ms=now_ms, wakes=self.wakes + 1, due_ms=now_ms)

    def released(
        self,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None,
        ends_turn: bool,
        parked_by: str | None,
    ) -> Self:
        """Return the thread as its worker releases it; due now if it was woken since the claim."""
        parked = {}
        if parked_by is not None:
            parked_ms = (self.parked_ms or now_ms) if parked_by else 0
            parked = {"parked_by": parked_by, "parked_ms": parked_ms}
        elif self.parked_ms and retry_ms is not None:
            parked = {"parked_ms": now_ms}
        return self.changed(
            **parked,
            clean_fence=fence,
            crashes=0,
            due_ms=retry_ms if self.wakes == wakes else now_ms,
            attempts=0 if retry_ms is None else self.attempts + 1,
            turn_open=self.turn_open and not ends_turn,
        )


class ThreadStore:
    """All threads. After the loss of a lease, a write returns False and changes nothing."""

    def __init__(self, collection: Collection[Thread]) -> None:
        self.collection = collection
        self.get, self.due = collection.get, collection.due
        self.claim, self.extend = collection.claim, collection.extend

    async def add(self, thread: Thread) -> bool:
        """Insert a thread. Return False, and write nothing, if the id exists."""
        return bool(await self.collection.insert(thread))

    async def origin_of(self, thread_id: str) -> RequestOrigin:
        """Return the origin of a thread, which never changes.

        Raises:
            RecordNotFoundError: No thread has this id.
            RecordFormatError: The thread is unreadable.
        """
        known = self.collection.known.get(thread_id)
        return (known or await self.get(thread_id)).origin

    async def ensure(self, thread: Thread) -> Thread:
        """Insert the thread unless its id exists; return the stored thread."""
        return thread if await self.add(thread) else await self.get(thread.thread_id)

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        """Make a thread due, whether or not a process holds its lease.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        with suppress(RecordFormatError):  # quarantined: a release that can read it finds the work
            await update(
                self.collection, thread_id, lambda thread: thread.woken(now_ms), writes_due=True
            )

    async def wake_deleted(self, thread_id: str, *, turn: int, now_ms: int) -> None:
        """Record that a message of a turn was deleted, and make the thread due.

        A pass that is about to store the turn's requests then leaves the thread due.
        """

        def deleted(thread: Thread) -> Thread:
            return thread.woken(now_ms).changed(deleted_turn=max(turn, thread.deleted_turn))

        with suppress(RecordFormatError, RecordNotFoundError):
            await update(self.collection, thread_id, deleted, writes_due=True)

    async def note_use(self, thread_id: str, change: Callable[[ModelUse], ModelUse]) -> None:
        """Change the use of models by a thread, whoever has its lease.

        Also for a process that lost the lease, because the provider charges its answers, too.
        """
        await update(
            self.collection,
            thread_id,
            lambda thread: thread.changed(model_use=change(thread.model_use)),
        )

    async def of_start(self, start_id: str) -> Thread | None:
        """Return the thread that a start has made; None if it has made none."""
        page = await self.collection.find({"start_id": start_id}, limit=1)
        return next(iter(page.documents), None)

    async def parked(self) -> Sequence[tuple[str, str]]:
        """Return the threads with calls that wait for the end of a freeze, oldest first.

        Returns:
            For each thread its id, and the ids of the freezes with spaces between.
        """
        where, sort = {"parked_ms": {"$gt": 0}}, ("parked_ms", "parked_by")
        places = await self.collection.places(where, sort=sort, limit=MOST_PARKED)
        return [(str(thread_id), str(freezes)) for _, freezes, thread_id in places]

    async def count_parked(self) -> int:
        """Count the threads that `parked` returns without a limit."""
        return await self.collection.count({"parked_ms": {"$gt": 0}})

    async def count_due(self, *, now_ms: int) -> int:
        """Count the threads that `due` returns without a limit."""
        return await self.collection.count(
            {"due_ms": {"$lte": now_ms}, "leased_until_ms": {"$lte": now_ms}}
        )

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        """Return a requester's threads whose open turn is being processed, newest first.

        A process works on a thread whose lease ends after `now_ms`. Unreadable threads are left
        out.
        """
        where = {"leased_until_ms": {"$gt": now_ms}}
        threads = (await self.collection.find(where, sort=["leased_until_ms"])).documents
        theirs = [
            thread
            for thread in threads
            if thread.turn_open and (thread.team_id, thread.requester_id) == (team_id, requester_id)
        ]
        return sorted(theirs, key=lambda thread: -thread.created_ms)[: max(limit, 0)]

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        """Quarantine a thread with an unreadable record, and release the lease.

        `clean_fence` becomes the fencing token; `crashes` does not change.
        """
        if not await self._held(thread_id, fence, clean_fence=fence):
            return False
        return await self.collection.quarantine(thread_id, why=why, fence=fence)

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        """Add one to `crashes`, before work is repeated whose process crashed.

        Only `release` resets the number, so work that crashes the process again stays counted.
        """
        return await self._change(
            thread_id, fence, lambda thread: thread.changed(crashes=thread.crashes + 1)
        )

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters: Sequence[str] | None = None,
        said: str = "",
    ) -> bool:
        """Record that a turn begins or has ended, and the authors of the agent's messages.

        `said` is what the agent said last; empty leaves what is known.
        """
        more: dict[str, object] = {"said": said} if said else {}
        if requesters is not None:
            more["requesters"] = tuple(requesters)
        return await self._held(thread_id, fence, turn=turn, turn_open=turn_open, **more)

    async def set_told(self, thread_id: str, *, fence: int, turn: int) -> bool:
        """Record that a program's endpoints are told of the end of a turn."""
        return await self._held(thread_id, fence, told_turn=turn)

    async def set_requesters(
        self, thread_id: str, *, fence: int, requesters: Sequence[str]
    ) -> bool:
        """Record the authors of the messages that the agent reads."""
        return await self._held(thread_id, fence, requesters=tuple(requesters))

    async def release(  # noqa: PLR0913 - the parts of one write, given by name
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
        parked_by: str | None = None,
        said: str = "",
    ) -> bool:
        """Release the lease; with `ends_turn`, the same write records that the turn has ended.

        If `wakes` has not changed since the caller's claim, `due_ms` becomes `retry_ms` (None: no
        work is due). Otherwise the thread is due now. `attempts` becomes 0, or one higher with a
        `retry_ms`. `parked_by` has the ids of the freezes that calls of the turn wait for; None
        leaves them as they are. `said` is what the agent said last; empty leaves what is known.

        Returns:
            Whether no work is due now. False also if the lease was lost.
        """

        def release(thread: Thread) -> Thread:
            return thread.changed(said=said or thread.said).released(
                fence=fence,
                wakes=wakes,
                now_ms=now_ms,
                retry_ms=retry_ms,
                ends_turn=ends_turn,
                parked_by=parked_by,
            )

        try:
            stored = await update(
                self.collection, thread_id, release, fence=fence, writes_due=True, releases=True
            )
        except (RecordConflictError, RecordNotFoundError):
            return False
        return stored is not None and (stored.due_ms is None or stored.due_ms > now_ms)

    async def settle(self, thread_id: str, *, fence: int, turn: int) -> bool:
        """Record that a thread was checked after a restore; `turn` waits for people, 0 for none."""
        return await self._change(
            thread_id, fence, lambda thread: thread.changed(restored=thread.restored.settled(turn))
        )

    async def _held(self, thread_id: str, fence: int, **changes: Any) -> bool:
        return await self._change(thread_id, fence, lambda thread: thread.changed(**changes))

    async def _change(self, thread_id: str, fence: int, change: Callable[[Thread], Thread]) -> bool:
        """Change a thread under its lease; return False if the lease was lost."""
        try:
            await update(self.collection, thread_id, change, fence=fence)
        except (RecordConflictError, RecordNotFoundError):
            return False
        return True
