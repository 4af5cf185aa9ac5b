"""One collection: the operations that we use, with our errors."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pymongo
from pymongo import DeleteOne, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from storage.mongo.client import INDEX_S, Apart, Client
from storage.mongo.documents import Document, Filter, Update

Sort = Sequence[tuple[str, int]]

_TAKEN = 11000
"""The server's code for a key that exists."""


class Commands:
    """Finds, inserts, and conditional updates of single documents; nothing else.

    Every method may raise `StoreUnavailableError` and `RecordRefusedError`.
    """

    def __init__(self, client: Client, name: str, *, limit_s: float | None = None) -> None:
        self._client = client
        self._name = name
        self._limit_s = limit_s

    @property
    def patient(self) -> Commands:
        """The same, where a call may take as long as the making of an index."""
        return Commands(self._client, self._name, limit_s=INDEX_S)

    async def insert(self, document: Document) -> bool:
        """Insert; False when the key is taken."""
        async with self._call() as apart:
            try:
                await apart(self._collection.insert_one(document))
            except DuplicateKeyError:
                return False
        return True

    async def insert_all(self, documents: Sequence[Document]) -> frozenset[str]:
        """Insert those whose keys are free, in one command; return their keys."""
        keys = frozenset(document["_id"] for document in documents)
        if not keys:
            return keys
        async with self._call() as apart:
            try:
                await apart(self._collection.insert_many(documents, ordered=False))
            except BulkWriteError as error:
                return keys - _taken_keys(error)
        return keys

    async def find(
        self,
        where: Filter,
        sort: Sort,
        limit: int | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> list[Document]:
        """Read documents in an order: all when `limit` is None, and whole when `names` is None."""
        if limit is not None and limit < 1:
            return []  # to MongoDB, 0 would mean all
        async with self._call() as apart:
            cursor = self._collection.find(where, names).sort(list(sort)).limit(limit or 0)
            found: list[Document] = await apart(cursor.to_list(limit))
        return found

    async def keys(self, where: Filter, limit: int, sort: Sort = (("_id", 1),)) -> list[str]:
        """Read the first keys, in an order, of documents that are as `where` says."""
        async with self._call() as apart:
            cursor = self._collection.find(where, {"_id": 1}).sort(list(sort)).limit(limit)
            found: list[Document] = await apart(cursor.to_list(limit))
        return [document["_id"] for document in found]

    async def count(self, where: Filter) -> int:
        """Count the documents that fit `where`."""
        async with self._call() as apart:
            # Not `count_documents`: its way of counting has some servers read every document.
            cursor = self._collection.aggregate([{"$match": where}, {"$count": "found"}])
            if inspect.isawaitable(cursor):
                cursor = await apart(cursor)
            answer = await apart(cursor.to_list(1))
        return int(answer[0]["found"]) if answer else 0

    async def update(self, where: Filter, update: Update) -> bool:
        """Change one document; False when none is as `where` says."""
        async with self._call() as apart:
            result = await apart(self._collection.update_one(where, update))
        return bool(result.matched_count)

    async def update_and_get(self, where: Filter, update: Update) -> Document | None:
        """Change one document and return it as it is then; None when none is as `where` says."""
        async with self._call() as apart:
            changed: Document | None = await apart(
                self._collection.find_one_and_update(
                    where, update, return_document=ReturnDocument.AFTER
                )
            )
        return changed

    async def change_each(self, changes: Sequence[tuple[Filter, Update]]) -> None:
        """Change one document for each filter, in this order, in one command."""
        if changes:
            async with self._call() as apart:
                await apart(
                    self._collection.bulk_write(
                        [UpdateOne(where, update) for where, update in changes], ordered=True
                    )
                )

    async def remove(self, keys: Sequence[str]) -> int:
        """Delete the documents with these keys, in this order; return how many there were."""
        if not keys:
            return 0
        async with self._call() as apart:
            result = await apart(
                self._collection.bulk_write([DeleteOne({"_id": key}) for key in keys], ordered=True)
            )
        return int(result.deleted_count)

    async def update_all(self, where: Filter, update: Mapping[str, Any]) -> None:
        """Make the same change to every document that is as `where` says, one by one."""
        async with self._call() as apart:
            await apart(self._collection.update_many(where, update))

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[Apart]:
        if self._limit_s is None:
            async with self._client.call() as apart:
                yield apart
            return
        with pymongo.timeout(self._limit_s):
            async with self._client.call(self._limit_s) as apart:
                yield apart

    @property
    def _collection(self) -> Any:
        return self._client.collection(self._name)


def _taken_keys(error: BulkWriteError) -> frozenset[str]:
    """The keys of the documents that were there already; raises when that is not all."""
    details = error.details or {}
    faults = details.get("writeErrors") or []
    if details.get("writeConcernErrors") or any(fault.get("code") != _TAKEN for fault in faults):
        raise error
    return frozenset(fault["op"]["_id"] for fault in faults)
