"""The audit: its entries, and the port that appends them.

One chain for each workspace. Appending never waits for it: what is appended is open until it is
sealed, and what is sealed never changes. The embedded database seals at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from storage.chain import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One fact that must stay on record. Stored: version 1, must stay readable."""

    entry_id: str
    """Unique; an entry that is written twice under one id is kept once."""
    at_ms: int
    action: str
    """Past participle or noun: `requested`, `decided`, `refused`, `resumed`, `executed`, ..."""
    thread_id: str = ""
    approval_id: str = ""
    actor_id: str = ""
    """Slack user id; empty for the program itself."""
    detail: dict[str, object] = field(default_factory=dict)
    """JSON data: the evidence."""
    erased: bool = False
    """Whether its content was deleted with its thread: what is left are ids, names and numbers."""
    team_id: str = ""
    """The workspace, where there is no thread that says it."""
    for_id: str = ""
    """On whose behalf: the Slack user id of whoever delegated; empty when for oneself."""

    @property
    def team(self) -> str:
        """The workspace."""
        return self.team_id or self.thread_id.partition(":")[0]


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
    """A record of all that happened; append-only. May raise `StoreUnavailableError`."""

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
