"""The port to threads and their leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import Thread


class ThreadStore(Protocol):
    """Threads, and the right to work on one."""

    async def add(self, thread: Thread) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def ensure(self, thread: Thread) -> Thread:
        """Insert the thread unless its id exists; return what is stored."""
        ...

    async def get(self, thread_id: str) -> Thread:
        """Read a thread.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        ...

    async def wake(self, thread_id: str, *, now_ms: int) -> None:
        """Ask for work: set `due_ms` and `active_ms` to `now_ms` and add one to `wakes`.

        It does not matter who holds the lease.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        """Threads with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def count_due(self, *, now_ms: int) -> int:
        """Count the threads that `due` would give without a limit."""
        ...

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        """Threads of a requester whose open turn somebody works on: with a lease beyond `now_ms`.

        Those that cannot be read are left out.
        """
        ...

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        """Take the lease if work is due (`due_ms <= now_ms`) and `leased_until_ms <= now_ms`.

        Sets `leased_by`, `leased_until_ms` and `due_ms` to `until_ms`, and adds one to `fence`.

        Returns:
            The thread as claimed; None when nothing is due, somebody else has the lease, or it
            cannot be read: then it is set aside.
        """
        ...

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        """Mark a thread of which something cannot be read, and give the lease back.

        Nothing of it is due for this release until it is started again. False when the lease was
        lost. `clean_fence` becomes the fence; `crashes` stays.
        """
        ...

    async def count_crash(self, thread_id: str, *, fence: int) -> bool:
        """Add one to `crashes`, before work begins that was cut off. False when the lease was lost.

        Only `release` sets it back: work that ends its process leaves it as it is.
        """
        ...

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        """Prolong the lease: `leased_until_ms` becomes `until_ms`.

        Returns:
            False when the lease was lost (somebody claimed with a higher fence) or given back.
        """
        ...

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        """Record that a turn begins or has ended. False when the lease was lost.

        `requesters_json`, unless None, is recorded in the same write.
        """
        ...

    async def set_requesters(self, thread_id: str, *, fence: int, requesters_json: str) -> bool:
        """Record whose words the agent reads. False when the lease was lost."""
        ...

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
        nothing is due any more). When somebody woke the thread meanwhile, `due_ms` becomes
        `now_ms`. In both cases `attempts` becomes 0, or one higher when `retry_ms` is given;
        `clean_fence` becomes the fence, and `crashes` 0.

        Returns:
            True when nothing more is due now; False when there is more to do now, or the lease was
            lost.
        """
        ...
