"""Due work and leases: the same for threads, approvals and whispers.

Each document is read alone. One that cannot be read is marked, so that this release looks at it no
more; another release, and this one when it is started again, does.
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.aside import reason
from storage.codec import MAX_WHY, READER, Codec, Record
from storage.errors import RecordFormatError
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Filter, Update, put, to_record
from storage.records import SCHEMA_VERSION, Unreadable

PAGE = 200


def _is_due(now_ms: int) -> Filter:
    return {
        "due_ms": {"$lte": now_ms},
        "leased_until_ms": {"$lte": now_ms},
        "v": SCHEMA_VERSION,  # a newer release's records wait for a newer process
        "aside_by": {"$nin": [READER]},  # looked at by this release, and not understood
    }


async def find_due(
    collection: Commands, codec: Codec[Record], *, now_ms: int, limit: int
) -> list[Record]:
    """Read what is due and not leased, earliest first."""
    found = await collection.find(_is_due(now_ms), [("due_ms", 1)], limit)
    return await readable(collection, codec, found)


async def count_due(collection: Commands, *, now_ms: int) -> int:
    """Count the documents that are due and not leased."""
    return await collection.count(_is_due(now_ms))


async def count_unreadable(collection: Commands, *, now_ms: int) -> int:
    """Count the due documents that this release cannot read."""
    due: Filter = {"due_ms": {"$lte": now_ms}}
    marked = await collection.count({**due, "aside_by": READER, "v": SCHEMA_VERSION})
    return marked + await collection.count({**due, "v": {"$ne": SCHEMA_VERSION}})


async def claim(
    collection: Commands,
    codec: Codec[Record],
    key: str,
    *,
    owner: str,
    now_ms: int,
    until_ms: int,
) -> Record | None:
    """Take the lease by one conditional update; None when it cannot be had, or not be read."""
    document = await collection.update_and_get(
        {"_id": key, **_is_due(now_ms)},
        {
            "$set": {"leased_by": owner, "leased_until_ms": until_ms, "due_ms": until_ms},
            "$inc": {"fence": 1},
            "$unset": {"aside_by": "", "aside_why": ""},
        },
    )
    return None if document is None else await claimed(collection, codec, document, owner=owner)


async def claimed(
    collection: Commands, codec: Codec[Record], document: Document, *, owner: str
) -> Record | None:
    """Read what was claimed; None when that cannot be done, and the lease is given back."""
    try:
        return to_record(codec, document)
    except RecordFormatError as error:
        update = set_aside(reason(error))
        await collection.update({"_id": document["_id"], "leased_by": owner}, update)
        return None


async def readable(
    collection: Commands, codec: Codec[Record], documents: Iterable[Document]
) -> list[Record]:
    """Make the record of each document; mark those that cannot be read, and leave them out."""
    records: list[Record] = []
    for document in documents:
        try:
            records.append(to_record(codec, document))
        except RecordFormatError as error:
            if document.get("aside_by") != READER:
                mark = {"aside_by": READER, "aside_why": reason(error)}
                await collection.update({"_id": document["_id"]}, {"$set": mark})
    return records


async def unreadable(collection: Commands, codec: Codec[Record], *, limit: int) -> list[Unreadable]:
    """Name what has something to be done and cannot be read, or is marked."""
    found: list[Unreadable] = []
    last = ""
    while len(found) < limit:
        where: Filter = {"due_ms": {"$exists": True}, "_id": {"$gt": last}}
        page = await collection.find(where, [("_id", 1)], PAGE)
        found += [one for each in page if (one := _fault_of(codec, each)) is not None]
        if len(page) < PAGE:
            break
        last = str(page[-1]["_id"])
    return found[:limit]


async def marked(collection: Commands, codec: Codec[Record], *, limit: int) -> list[Unreadable]:
    """Name those that are marked, and still cannot be read."""
    page = await collection.find({"aside_by": {"$gt": ""}}, [("_id", 1)], limit)
    return [one for each in page if (one := _fault_of(codec, each)) is not None]


async def forget_marks(collection: Commands) -> None:
    """Look again at what this release could not read: it may have been repaired."""
    where: Filter = {"due_ms": {"$exists": True}, "aside_by": READER}
    await collection.update_all(where, {"$unset": {"aside_by": "", "aside_why": ""}})


def _fault_of(codec: Codec[Record], document: Document) -> Unreadable | None:
    try:
        to_record(codec, document)
    except RecordFormatError as error:
        why = str(error)
    else:
        why = str(document.get("aside_why", "")) if codec.kind == "thread" else ""
    key = str(document.get("_id"))
    return Unreadable(kind=codec.kind, record_id=key, why=why) if why else None


def held(key: str, fence: int) -> Filter:
    """The condition of everything that only the holder of the lease may do."""
    return {"_id": key, "fence": fence, "leased_until_ms": {"$gt": 0}}


def given_back(due_ms: int | None) -> Update:
    """The update that ends a lease, with the time when the record is due next."""
    update: Update = {"$set": {"leased_by": "", "leased_until_ms": 0}}
    return put(update, "due_ms", due_ms)


def set_aside(why: str) -> Update:
    """The update that ends a lease on what cannot be read; when it is due stays as it is."""
    mark = {"aside_by": READER, "aside_why": why[:MAX_WHY]}
    return {"$set": {"leased_by": "", "leased_until_ms": 0, **mark}}
