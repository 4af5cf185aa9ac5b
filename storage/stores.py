"""The stores that are written once, over the collections of either database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from storage.approvals import ApprovalDocument, ApprovalLists, ApprovalRecords
from storage.documents import Collection, D, Document
from storage.erasing import Ledgers, RetentionRecords
from storage.messages import (
    InboxRecords,
    MessageDocument,
    PostDocument,
    PostRecords,
    WhisperDocument,
    WhisperRecords,
)
from storage.people import DelegationStore, GrantStore, PeopleStore
from storage.ports.audit import AuditStore
from storage.records import DelegationRecord, Grant, PersonRecord, Unreadable
from storage.restoring import CopyMarks, EpochDocument, RestoreRecords
from storage.threads import ThreadDocument, ThreadRecords

KINDS: tuple[type[Document], ...] = (
    ThreadDocument,
    MessageDocument,
    ApprovalDocument,
    PostDocument,
    WhisperDocument,
    DelegationRecord,
    PersonRecord,
    Grant,
    EpochDocument,
)
"""The kinds of documents that each database holds."""


class Collections(Protocol):
    """A database of documents."""

    def collection(self, kind: type[D]) -> Collection[D]:
        """Return the collection of a kind."""
        ...


class Stores:
    """The stores over collections.

    Args:
        database: Where the collections are.
        kinds: The kinds of documents that it holds.
        audit: Where entries go that are written with approvals.
        ledgers: What the database keeps of a thread beside its documents.
        marks: What the database knows of being a copy.
    """

    def __init__(
        self,
        database: Collections,
        kinds: Sequence[type[Document]],
        audit: AuditStore,
        ledgers: Ledgers,
        marks: CopyMarks,
    ) -> None:
        found: dict[str, Collection[Any]] = {
            kind.spec.name: database.collection(kind) for kind in (*KINDS, *kinds)
        }
        self._known = [found[kind.spec.name] for kind in kinds]
        self._approvals = found["approvals"]
        self.threads = ThreadRecords(found["threads"])
        self.inbox = InboxRecords(found["messages"])
        self.approvals = ApprovalRecords(found["approvals"], audit)
        self.lists = ApprovalLists(found["approvals"])
        self.posts = PostRecords(found["posts"])
        self.whispers = WhisperRecords(found["whispers"])
        self.delegations = DelegationStore(found["delegations"])
        self.people = PeopleStore(found["people"])
        self.grants = GrantStore(found["grants"])
        self.retention = RetentionRecords(found, ledgers)
        self.restoring = RestoreRecords(found, marks)

    async def teams(self) -> set[str]:
        """The workspaces that have approvals; all thread ids of one are skipped at once."""
        found: set[str] = set()
        first = ""
        while places := await self._approvals.places(
            {"thread_id": {"$gte": first}}, sort=("thread_id", "created_ms", "position"), limit=1
        ):
            team_id = str(places[0][0]).partition(":")[0]
            found.add(team_id)
            first = f"{team_id};"
        return found

    async def reconsider(self) -> None:
        """Lift the quarantine of this release everywhere."""
        for one in self._known:
            await one.recheck()

    async def count_unreadable(self) -> int:
        """Count the documents that this release cannot read."""
        return sum([await one.count_quarantined() for one in self._known])

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Look at all documents, and name those that this release cannot read; it takes long."""
        found: list[Unreadable] = []
        for one in self._known:
            found += await one.unreadable(limit=limit - len(found))
        return found
