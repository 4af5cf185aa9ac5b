"""Records to documents and back; and the parts of updates that stores share.

A document is the row of `storage.codec` with the record's id as `_id`, and without the fields that
are None: an index on `due_ms` then has no entry of a record that is not due. (A missing field sorts
as null, and a range of numbers never meets null.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storage.codec import Codec, Record, Row
from storage.records import Approval

Document = dict[str, Any]
Filter = dict[str, Any]
Update = dict[str, dict[str, Any]]


def to_document(codec: Codec[Record], record: Record) -> Document:
    """Make the document of a record."""
    row = codec.encode(record)
    key = row.pop(codec.key)
    return {"_id": key, **{name: value for name, value in row.items() if value is not None}}


def to_record(codec: Codec[Record], document: Document) -> Record:
    """Make the record of a document.

    Raises:
        RecordFormatError: The document has an unknown version, or a field makes no sense.
    """
    return codec.decode(_row_of(codec, document))


def put(update: Update, name: str, value: object) -> Update:
    """Add to an update: set the field, or unset it when the value is None."""
    if value is None:
        update.setdefault("$unset", {})[name] = ""
    else:
        update.setdefault("$set", {})[name] = value
    return update


def decider(approval: Approval) -> str:
    """The person in `decided_by`, the only field that serves no record: lists are found by it."""
    return approval.decision.by if approval.decision is not None else ""


def legible(codec: Codec[Record], documents: Sequence[Document]) -> list[Record]:
    """Read records; those that cannot be read are passed over."""
    return codec.legible(_row_of(codec, document) for document in documents)


def _row_of(codec: Codec[Record], document: Document) -> Row:
    return {**document, codec.key: document.get("_id")}
