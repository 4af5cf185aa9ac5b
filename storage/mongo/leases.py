"""Due work and leases: the same for threads and approvals."""

from __future__ import annotations

from storage.mongo.collection import Collection
from storage.mongo.documents import Document, Filter, Update, put
from storage.records import SCHEMA_VERSION


def _is_due(now_ms: int) -> Filter:
    return {
        "due_ms": {"$lte": now_ms},
        "leased_until_ms": {"$lte": now_ms},
        "v": SCHEMA_VERSION,  # a newer release's records wait for a newer process
    }


async def find_due(collection: Collection, *, now_ms: int, limit: int) -> list[Document]:
    """Read what is due and not leased, earliest first."""
    return await collection.find(_is_due(now_ms), [("due_ms", 1)], limit)


async def count_due(collection: Collection, *, now_ms: int) -> int:
    """How much is due and not leased."""
    return await collection.count(_is_due(now_ms))


async def claim(
    collection: Collection, key: str, *, owner: str, now_ms: int, until_ms: int
) -> Document | None:
    """Take the lease by one conditional update; None when it cannot be had."""
    return await collection.update_and_get(
        {"_id": key, **_is_due(now_ms)},
        {
            "$set": {"leased_by": owner, "leased_until_ms": until_ms, "due_ms": until_ms},
            "$inc": {"fence": 1},
        },
    )


def held(key: str, fence: int) -> Filter:
    """The condition of everything that only the holder of the lease may do."""
    return {"_id": key, "fence": fence, "leased_until_ms": {"$gt": 0}}


def given_back(due_ms: int | None) -> Update:
    """The update that ends a lease, with the time when the record is due next."""
    update: Update = {"$set": {"leased_by": "", "leased_until_ms": 0}}
    return put(update, "due_ms", due_ms)
