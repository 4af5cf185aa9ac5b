"""Leases in MongoDB, between two commands: what no server can be made to do at the right moment."""

from dataclasses import dataclass, field
from typing import cast

from storage.codec import READER, THREADS
from storage.mongo.commands import Commands
from storage.mongo.documents import Document, Filter, Update
from storage.mongo.leases import claim

MINE, OTHERS = "me:1", "other:2"


@dataclass
class OneDocument:
    """A collection of one document, which somebody else may take between two commands."""

    document: Document
    taken_by: str = ""
    updates: list[Filter] = field(default_factory=list)

    async def update_and_get(self, where: Filter, update: Update) -> Document | None:
        assert where["_id"] == self.document["_id"]
        self.document |= update["$set"]
        claimed = dict(self.document)
        if self.taken_by:
            self.document["leased_by"] = self.taken_by
        return claimed

    async def update(self, where: Filter, update: Update) -> bool:
        is_met = all(self.document.get(key) == value for key, value in where.items())
        if is_met:
            self.document |= update["$set"]
        return is_met


async def claim_damaged(taken_by: str) -> Document:
    """Claim what cannot be read; return the document afterwards."""
    kept = OneDocument({"_id": "t1", "v": 1, "due_ms": 5, "channel_id": 7}, taken_by)
    record = await claim(cast("Commands", kept), THREADS, "t1", owner=MINE, now_ms=10, until_ms=60)
    assert record is None
    return kept.document


async def test_what_was_claimed_and_cannot_be_read_is_given_back_and_set_aside() -> None:
    document = await claim_damaged(taken_by="")
    assert (document["leased_by"], document["leased_until_ms"]) == ("", 0)
    assert document["aside_by"] == READER


async def test_a_lease_that_somebody_else_has_taken_meanwhile_stays_theirs() -> None:
    document = await claim_damaged(taken_by=OTHERS)
    assert (document["leased_by"], document["leased_until_ms"]) == (OTHERS, 60)
    assert "aside_by" not in document
