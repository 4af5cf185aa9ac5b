"""One collection: the operations of the storage, with its errors."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import DeleteOne, IndexModel, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError

from storage.mongo.client import Client

Document = dict[str, Any]
Filter = dict[str, Any]
Update = dict[str, dict[str, Any]]


Sort = Sequence[tuple[str, int]]


def both(condition: Filter, more: Filter) -> Filter:
    """Return the conjunction of two conditions."""
    if condition.keys() & more.keys():
        return {"$and": [condition, more]}
    return {**condition, **more}


_TAKEN = 11000
"""MongoDB's error code for a duplicate key."""


class Commands:
    """Finds, inserts, and conditional updates of single documents.

    Every method may raise `StoreUnavailableError` and `RecordRefusedError`.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name

    async def insert(self, document: Document) -> bool:
        """Insert a document; return False if its key exists."""
        async with self._client.call() as apart:
            try:
                await apart(self._collection.insert_one(document))
            except DuplicateKeyError as error:
                if not _is_taken_key(error.details or {}):
                    raise
                return False
        return True

    async def insert_own(self, document: Document, *, mark: str) -> bool:
        """Insert a document that only this process uses; return False if its key exists.

        The mark recognizes the document after a lost reply, as in `claim`.
        """
        marked = {**document, mark: secrets.token_hex(8)}
        if await self.insert(marked):
            return True
        where = {name: marked[name] for name in ("_id", mark)}
        return bool(await self.keys(where, 1))

    async def insert_all(self, documents: Sequence[Document]) -> frozenset[str]:
        """Insert the documents with unused keys, in one command; return these keys."""
        keys = frozenset(document["_id"] for document in documents)
        if not keys:
            return keys
        async with self._client.call() as apart:
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
        """Return sorted documents: all if `limit` is None, with all fields if `names` is None."""
        if limit is not None and limit < 1:
            return []  # MongoDB treats 0 as no limit
        async with self._client.call() as apart:
            cursor = self._collection.find(where, names, sort=list(sort) or None, limit=limit or 0)
            documents: list[Document] = await apart(cursor.to_list(limit))
        return documents

    async def keys(self, where: Filter, limit: int, sort: Sort = ()) -> list[str]:
        """Return the first keys of the documents that match `where`, in the order of `sort`."""
        return [document["_id"] for document in await self.find(where, sort, limit, names=["_id"])]

    async def count(self, where: Filter) -> int:
        """Return the number of documents that match `where`."""
        async with self._client.call() as apart:
            # Not `count_documents`: some servers read every document for its aggregation.
            cursor = self._collection.aggregate([{"$match": where}, {"$count": "found"}])
            if inspect.isawaitable(cursor):
                cursor = await apart(cursor)
            answer = await apart(cursor.to_list(1))
        return int(answer[0]["found"]) if answer else 0

    async def update(self, where: Filter, update: Update) -> bool:
        """Update one document; return False if no document matches `where`."""
        async with self._client.call() as apart:
            result = await apart(self._collection.update_one(where, update))
        return bool(result.matched_count)

    async def claim(self, where: Filter, update: Update, *, mark: str) -> Document | None:
        """Update one document and return the new version; None if no document matches `where`.

        After a lost reply, the driver sends the update again. A server without retryable writes
        then runs it again, on a document that it has changed already. The condition therefore also
        accepts a document with the mark of this update.

        Args:
            where: Selects the document by `_id`, and is the condition of the update.
            update: The change.
            mark: The field for a value that is unique to this update.
        """
        unique = secrets.token_hex(8)
        rest = {name: wanted for name, wanted in where.items() if name != "_id"}
        async with self._client.call() as apart:
            changed: Document | None = await apart(
                self._collection.find_one_and_update(
                    {"_id": where["_id"], "$or": [rest, {mark: unique}]},
                    {**update, "$set": {**update["$set"], mark: unique}},
                    return_document=ReturnDocument.AFTER,
                )
            )
        return changed

    async def change_each(self, changes: Sequence[tuple[Filter, Update]]) -> None:
        """Update one document per filter, in this order, in one command."""
        if changes:
            async with self._client.call() as apart:
                await apart(
                    self._collection.bulk_write(
                        [UpdateOne(where, update) for where, update in changes], ordered=True
                    )
                )

    async def remove(self, keys: Sequence[str], where: Filter) -> int:
        """Delete the documents with these keys, in this order, and return how many were deleted.

        A document that no longer matches `where`, by which its key was found, stays.
        """
        if not keys:
            return 0
        async with self._client.call() as apart:
            result = await apart(
                self._collection.bulk_write(
                    [DeleteOne(both(where, {"_id": key})) for key in keys], ordered=True
                )
            )
        return int(result.deleted_count)

    async def update_all(self, where: Filter, update: Mapping[str, Any]) -> None:
        """Apply an update to every document that matches `where`, one by one."""
        async with self._client.call() as apart:
            await apart(self._collection.update_many(where, update))

    async def make_unique(self, name: str, fields: Sequence[str], where: Filter) -> None:
        """Create a unique index of the documents that match `where`. Idempotent."""
        keys = [(field, 1) for field in fields]
        model = IndexModel(keys, name=name, unique=True, partialFilterExpression=where)
        await self._client.create_indexes(self._name, [model])

    async def drop_index(self, name: str) -> None:
        """Drop an index. Idempotent."""
        async with self._client.call() as apart:
            if name in await apart(self._collection.index_information()):
                await apart(self._collection.drop_index(name))

    @property
    def _collection(self) -> Any:
        return self._client.collection(self._name)


def _taken_keys(error: BulkWriteError) -> frozenset[str]:
    """Return the keys that existed already; raise the error if it has another cause."""
    details = error.details or {}
    faults = details.get("writeErrors") or []
    if details.get("writeConcernErrors") or not all(map(_is_taken_key, faults)):
        raise error
    return frozenset(fault["op"]["_id"] for fault in faults)


def _is_taken_key(fault: Mapping[str, Any]) -> bool:
    """Whether a document was refused because its key exists, and by no other unique index.

    Some servers do not name the index.
    """
    return fault.get("code", _TAKEN) == _TAKEN and {*fault.get("keyPattern", ["_id"])} == {"_id"}
