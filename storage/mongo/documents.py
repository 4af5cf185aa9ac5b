"""Records to documents and back; and the parts of updates that stores share.

A document is the row of `storage.codec` with the record's id as `_id`, and without the fields that
are None: an index on `due_ms` then has no entry of a record that is not due. (A missing field sorts
as null, and a range of numbers never meets null.)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from storage.codec import Codec, Record
from storage.errors import RecordFormatError

logger = logging.getLogger(__name__)

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
    return codec.decode({**document, codec.key: document.get("_id")})


def put(update: Update, name: str, value: object) -> Update:
    """Add to an update: set the field, or unset it when the value is None."""
    if value is None:
        update.setdefault("$unset", {})[name] = ""
    else:
        update.setdefault("$set", {})[name] = value
    return update


def legible(codec: Codec[Record], documents: Sequence[Document]) -> list[Record]:
    """Read records; those that cannot be read are passed over."""
    found: list[Record] = []
    for document in documents:
        try:
            found.append(to_record(codec, document))
        except RecordFormatError as error:
            logger.warning("passed over: %s", error, extra={"action": "storage"})
    return found
