"""The audit: its entries, and the port that appends them.

Each workspace has one chain. A new entry is open until it is sealed, and a sealed entry never
changes. Appending does not wait for the seal in MongoDB; SQLite seals in the same statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from storage.chain import Form
from storage.thread_ids import team_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One fact for the audit log. Stored: version 1, must stay readable."""

    entry_id: str
    """Unique id. A second entry with the same id is ignored."""
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
    """Whether the content was deleted with its thread. Ids, names and numbers remain."""
    team_id: str = ""
    """Slack id of the workspace, for an entry without a thread. Otherwise empty."""
    for_id: str = ""
    """Slack user id of the person who delegated to the actor; empty if the actor acts for
    themselves."""

    @property
    def team(self) -> str:
        """Slack id of the workspace, from the field or from the thread id."""
        return self.team_id or team_of(self.thread_id)


@dataclass(frozen=True, slots=True)
class Link:
    """An audit entry and its chained form, sealed or still open.

    Attributes:
        form: The chained form; without `seq`, `alg`, `prev` and `hash` while it is open.
        entry: The entry with its content, for readers.
        is_whole: Whether the content matches the content hash. For an open entry, also whether a
            process with the key appended it.
    """

    form: Form
    entry: AuditEntry
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The open entries of all chains.

    Attributes:
        count: Number of open entries.
        since_ms: Time of the oldest open entry; 0 if none is open.
    """

    count: int = 0
    since_ms: int = 0


class AuditStore(Protocol):
    """The append-only audit log. Every method may raise `StoreUnavailableError`."""

    async def append(self, *entries: AuditEntry) -> None:
        """Append entries in one command. A second entry with the same id is ignored."""
        ...

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """The first entries of a thread, oldest first (by `at_ms`, then `entry_id`).

        An unreadable entry has the action `unreadable` and the reason in `detail`.
        """
        ...
