"""One database with all its stores. The contract of each is in `storage.ports`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agents.core.checkpoint import AmendingStore, MessageLog
from storage.people import DelegationStore, GrantStore, PeopleStore
from storage.ports.approvals import ApprovalStore
from storage.ports.audit import AuditStore, TrailStore
from storage.ports.lists import ListStore
from storage.ports.messages import InboxStore, PostStore, WhisperStore
from storage.ports.restoring import RestoreStore
from storage.ports.retention import RetentionStore
from storage.ports.threads import ThreadStore
from storage.records import Remark, Unreadable


class Storage(Protocol):
    """One database with all its stores."""

    @property
    def threads(self) -> ThreadStore:
        """Threads."""
        ...

    @property
    def inbox(self) -> InboxStore:
        """People's messages."""
        ...

    @property
    def log(self) -> MessageLog:
        """The agents' message histories."""
        ...

    @property
    def checkpoints(self) -> AmendingStore:
        """Checkpoints and their journals."""
        ...

    @property
    def approvals(self) -> ApprovalStore:
        """Approvals."""
        ...

    @property
    def posts(self) -> PostStore:
        """The agents' texts."""
        ...

    @property
    def whispers(self) -> WhisperStore:
        """Private answers."""
        ...

    @property
    def delegations(self) -> DelegationStore:
        """Delegations and absences."""
        ...

    @property
    def people(self) -> PeopleStore:
        """Single people: their wishes, and what they were sent."""
        ...

    @property
    def grants(self) -> GrantStore:
        """Standing grants."""
        ...

    @property
    def lists(self) -> ListStore:
        """The lists that people are shown."""
        ...

    @property
    def audit(self) -> AuditStore:
        """The audit."""
        ...

    @property
    def trail(self) -> TrailStore:
        """The audit, as it is chained."""
        ...

    @property
    def retention(self) -> RetentionStore:
        """Deletes threads."""
        ...

    @property
    def restoring(self) -> RestoreStore:
        """Marks what a copy left unfinished."""
        ...

    async def open(self) -> None:
        """Connect, and create tables or indexes where they are missing; may be repeated.

        Raises:
            StoreUnavailableError: The server does not answer, or the file cannot be used.
            StoreBusyError: The data directory belongs to another process.
        """
        ...

    async def open_beside(self) -> None:
        """Open it beside those who have it, to change it.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be used.
            RecordFormatError: It was written by another release.
        """
        ...

    async def open_to_read(self) -> None:
        """Open it beside those who have it, and change nothing: no table, no index, no lease.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be read.
            RecordFormatError: It was written by another release.
        """
        ...

    async def reconsider(self) -> None:
        """Look again at what this release has set aside: it may have been repaired since."""
        ...

    async def ping(self) -> None:
        """Ask for a sign of life, and make a small write.

        Raises:
            StoreUnavailableError: It does not answer, or takes no writes.
        """
        ...

    async def server_ms(self) -> int | None:
        """Read the clock of the database's server; None where it is the clock of this machine.

        Raises:
            StoreUnavailableError: The server does not answer.
        """
        ...

    async def examine(self) -> Sequence[Remark]:
        """Try out what decisions rest on; for people, and slow. Leaves nothing behind.

        Raises:
            StoreUnavailableError: It does not answer, or refuses.
        """
        ...

    async def count_unreadable(self) -> int:
        """Count the documents that this release cannot read."""
        ...

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name documents that this release cannot read."""
        ...

    async def close(self) -> None:
        """Close connections and locks; may be repeated."""
        ...


class SameStorage:
    """A database as it is: others put something of theirs in the place of a store.

    Args:
        storage: The database.
    """

    def __init__(self, storage: Storage) -> None:
        self.inbox = storage.inbox
        self.threads = storage.threads
        self.checkpoints = storage.checkpoints
        self.approvals = storage.approvals
        self.audit = storage.audit
        self.log = storage.log
        self.posts = storage.posts
        self.whispers = storage.whispers
        self.delegations = storage.delegations
        self.people = storage.people
        self.grants = storage.grants
        self.lists = storage.lists
        self.retention = storage.retention
        self.trail = storage.trail
        self.restoring = storage.restoring
        self.open = storage.open
        self.open_beside = storage.open_beside
        self.open_to_read = storage.open_to_read
        self.reconsider = storage.reconsider
        self.ping = storage.ping
        self.server_ms = storage.server_ms
        self.examine = storage.examine
        self.count_unreadable = storage.count_unreadable
        self.unreadable = storage.unreadable
        self.close = storage.close
