"""The stores of all features, over the collections of one database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.records.approval import Approval
from bot.records.copies import EpochDocument, RestoreStore
from bot.records.erasures import RetentionStore
from bot.records.messages import EphemeralMessage, InboxStore, Message, Post, PostStore
from bot.records.people import (
    DelegationRecord,
    DelegationStore,
    Grant,
    GrantStore,
    PeopleStore,
    PersonRecord,
)
from bot.records.programs import ProgramKeyRecord, ProgramRecord, ProgramStore
from bot.records.starts import ThreadStart
from bot.records.switch import SwitchRecord
from bot.records.thread import Thread, ThreadStore
from bot.records.webhooks import (
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    WebhookStore,
)
from storage.base import DocumentDatabase
from storage.documents import Collection, Document, Unreadable
from storage.thread_ids import ids_after, team_of

KINDS: tuple[type[Document], ...] = (
    Thread,
    Message,
    Approval,
    Post,
    EphemeralMessage,
    DelegationRecord,
    PersonRecord,
    Grant,
    EpochDocument,
    SwitchRecord,
    ProgramRecord,
    ProgramKeyRecord,
    ThreadStart,
    WebhookEndpoint,
    WebhookQueue,
    WebhookDelivery,
)
"""The kinds of documents that a database of the bot holds."""


class Stores:
    """One database with the stores of all features.

    Args:
        database: Made for `KINDS`.
    """

    def __init__(self, database: DocumentDatabase) -> None:
        self.database = database
        collections: dict[str, Collection[Any]] = {
            kind.spec.name: database.collection(kind) for kind in KINDS
        }
        self._collections = collections
        self.audit = self.trail = database.trail
        self.log, self.checkpoints = database.log, database.checkpoints
        self.threads = ThreadStore(collections["threads"])
        self.inbox = InboxStore(collections["messages"])
        self.approvals: Collection[Approval] = collections["approvals"]
        self.posts = PostStore(collections["posts"])
        self.ephemeral_messages: Collection[EphemeralMessage] = collections["ephemeral_messages"]
        self.delegations = DelegationStore(collections["delegations"])
        self.people = PeopleStore(collections["people"])
        self.grants = GrantStore(collections["grants"])
        self.switches: Collection[SwitchRecord] = collections["switches"]
        self.programs = ProgramStore(collections["programs"], collections["program_keys"])
        self.starts: Collection[ThreadStart] = collections["thread_starts"]
        self.webhooks = WebhookStore(
            collections["webhook_endpoints"],
            collections["webhook_queues"],
            collections["webhook_deliveries"],
        )
        self.retention = RetentionStore(collections, database)
        self.restoring = RestoreStore(collections, database)
        self.open, self.open_beside = database.open, database.open_beside
        self.open_to_read, self.close = database.open_to_read, database.close
        self.ping, self.examine = database.ping, database.examine
        self.server_ms = database.server_ms

    async def teams(self) -> set[str]:
        """Return the workspaces that have approvals. Their audit cannot be empty."""
        teams: set[str] = set()
        team_id = ""
        while places := await self.approvals.places(
            {"thread_id": {"$gte": ids_after(team_id)}},
            sort=("thread_id", "created_ms", "position"),
            limit=1,
        ):
            team_id = team_of(str(places[0][0]))
            teams.add(team_id)
        return teams

    async def reconsider(self) -> None:
        """Lift the quarantine of all documents: an operator may have repaired them."""
        for collection in self._collections.values():
            await collection.recheck()

    @property
    def may_claim(self) -> bool:
        """Whether this process may claim work."""
        return all(collection.may_claim for collection in self._collections.values())

    def allow_claims(self, *, allowed: bool) -> None:
        """Allow or stop all claims of this process."""
        for collection in self._collections.values():
            collection.may_claim = allowed

    async def hasten(self, *, now_ms: int, before_ms: int) -> None:
        """Make all work due that was due soon when the clock was put back."""
        for collection in self._collections.values():
            await collection.hasten(now_ms=now_ms, before_ms=before_ms)

    async def end_false_leases(self, *, now_ms: int) -> None:
        """End all leases that no process can have."""
        for collection in self._collections.values():
            await collection.end_false_leases(now_ms=now_ms)

    async def count_unreadable(self) -> int:
        """Count the quarantined documents: this release read them and failed."""
        return sum(
            [await collection.count_quarantined() for collection in self._collections.values()]
        )

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Read all documents, and return those that this release cannot read. Slow."""
        documents: list[Unreadable] = []
        for collection in self._collections.values():
            documents += await collection.unreadable(limit=limit - len(documents))
        return documents
