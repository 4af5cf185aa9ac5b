"""The ports to the audit: what appends to it, and what chains it, reads it, deletes its beginning.

One chain for each workspace. Appending (`AuditStore`) never waits for it: what is appended is open
until it is sealed, and what is sealed never changes. The embedded database seals at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from storage.chain import Form, Head
from storage.records import AuditEntry


@dataclass(frozen=True, slots=True)
class Link:
    """An entry as it is in the chain, or as it will be.

    Attributes:
        form: The chained form; without `seq`, `alg`, `prev` and `hash` while it is open.
        entry: As it is read.
        is_whole: Whether its content is that of its content hash, and it is ours while it is open.
    """

    form: Form
    entry: AuditEntry
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The open entries of all chains.

    Attributes:
        count: How many.
        since_ms: Since when the oldest is; 0 without one.
    """

    count: int = 0
    since_ms: int = 0


class AuditStore(Protocol):
    """The audit: a record of all that happened; append-only."""

    async def append(self, entry: AuditEntry) -> None:
        """Keep an entry; a second one with the same id is ignored."""
        ...

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        """Keep several, in one command; each as `append` does."""
        ...

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """The first entries of a thread, oldest first (by `at_ms`, then `entry_id`).

        One that cannot be read is there as the action `unreadable`, with the reason.
        """
        ...


class TrailStore(Protocol):
    """Seals the entries of the audit, and reads them as they are chained."""

    async def seal(self, *, owner: str, now_ms: int) -> int:
        """Seal what is open, in the order of time and id.

        Any number of processes may try at once: one has the lease of a workspace at a time, and
        each number is given once, also where a lease was lost. What a crash left half done is
        finished first.

        Where there is a key, an entry that was appended without it is never sealed with it. It is
        sealed without a key as long as its chain has no entry with one, and later not at all.

        Returns:
            How many entries were sealed.
        """
        ...

    async def unsealed(self) -> Unsealed:
        """Count what is open."""
        ...

    async def open_links(self, *, limit: int) -> Sequence[Link]:
        """The first open entries of all chains, oldest first."""
        ...

    async def heads(self) -> Mapping[str, Head]:
        """The last entry of each chain, by workspace, as far as the database has noted it."""
        ...

    async def page(self, team_id: str, *, after: int, limit: int) -> Sequence[Link]:
        """Sealed entries of a chain with a greater number, in order; none that are to be deleted.

        What cannot be read is there with an empty form, or one that does not fit its hash.
        """
        ...

    async def expire(self, team_id: str, *, upto: int, now_ms: int) -> int:
        """Have the database delete the entries of a chain up to this number.

        A checkpoint that says so must be sealed before; see `storage.chain`.

        Returns:
            How many entries go.
        """
        ...
