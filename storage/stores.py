"""The stores that are written once, over the collections of either database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from storage.documents import Collection, D, Document
from storage.people import DelegationStore, GrantStore, PeopleStore
from storage.records import DelegationRecord, Grant, PersonRecord, Unreadable

KINDS: tuple[type[Document], ...] = (DelegationRecord, PersonRecord, Grant)
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
    """

    def __init__(self, database: Collections, kinds: Sequence[type[Document]]) -> None:
        self.collections: list[Collection[Any]] = [database.collection(kind) for kind in kinds]
        self.delegations = DelegationStore(database.collection(DelegationRecord))
        self.people = PeopleStore(database.collection(PersonRecord))
        self.grants = GrantStore(database.collection(Grant))

    async def recheck(self) -> None:
        """Lift the quarantine of this release everywhere."""
        for one in self.collections:
            await one.recheck()

    async def count_quarantined(self) -> int:
        """Count the documents that this release cannot read."""
        return sum([await one.count_quarantined() for one in self.collections])

    async def quarantined(self, *, limit: int) -> list[Unreadable]:
        """Name documents that this release cannot read."""
        found: list[Unreadable] = []
        for one in self.collections:
            found += await one.quarantined(limit=limit - len(found))
        return found
