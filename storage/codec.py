"""The stored form of what is no document: entries of the audit, checkpoints, and texts.

A row maps field names to texts, integers, booleans and None, and has the schema version in `v`. The
detail of an entry is one field with JSON text. A row that this program does not understand is an
error, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, get_type_hints

from agents.core.checkpoint import (
    CheckpointStatus,
    StoredCheckpoint,
)
from storage.errors import RecordFormatError, RecordRefusedError
from storage.records import SCHEMA_VERSION, AuditEntry

Scalar = str | int | bool | None
Row = dict[str, Scalar]


class AuditCodec:
    """Turns entries of the audit into rows, and rows into entries.

    Attributes:
        kind: What an entry is, in words, for errors.
        key: Name of the field that identifies an entry.
        names: Names of all columns, `v` first.
    """

    kind = "audit entry"
    key = "entry_id"

    def __init__(self) -> None:
        hints = get_type_hints(AuditEntry)
        self._readers = {field.name: _reader(hints[field.name]) for field in fields(AuditEntry)}
        self.names = ("v", *self._readers)

    def encode(self, record: AuditEntry) -> Row:
        """Make the row of an entry.

        Raises:
            RecordRefusedError: A value is not JSON data.
        """
        row: Row = {"v": SCHEMA_VERSION}
        try:
            for name in self._readers:
                value = getattr(record, name)
                row[name] = value if type(value) in _AS_THEY_ARE else _scalar(value)
        except (TypeError, ValueError) as error:
            raise RecordRefusedError(f"the {self.kind} is not JSON data") from error
        return row

    def decode(self, row: Mapping[str, object]) -> AuditEntry:
        """Make the entry of a row.

        Raises:
            RecordFormatError: The row has an unknown version, or a field makes no sense.
        """
        found = row.get(self.key)
        record_id = found if isinstance(found, str) else ""
        check_version(self.kind, row.get("v"), record_id)
        values: dict[str, Any] = {}
        for name, read in self._readers.items():
            try:
                values[name] = read(row.get(name))
            except (TypeError, ValueError, RecursionError) as error:
                fault = f"field {name!r} is damaged"
                raise RecordFormatError(
                    self.kind, SCHEMA_VERSION, fault, record_id=record_id
                ) from error
        return AuditEntry(**values)


def check_version(kind: str, version: object, record_id: str = "") -> None:
    """Refuse what another release wrote.

    Args:
        kind: What is read, in words.
        version: The version found.
        record_id: Id of the record.

    Raises:
        RecordFormatError: The version is not the one that this program writes.
    """
    if version != SCHEMA_VERSION:
        raise RecordFormatError(kind, version, record_id=record_id)


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
"""Types of values that rows hold; known without a look at each class that they may be of."""


def _scalar(value: object) -> Scalar:
    match value:
        case StrEnum():
            return value.value
        case None | str() | int():
            return value
        case _:
            return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not value.isascii():
        value.encode()  # refuses what stands for bytes that were no text
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError
    return int(value)


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


def _flag(value: object) -> bool:
    if value not in {0, 1}:  # SQLite has no booleans
        raise TypeError
    return bool(value)


def _object(value: object) -> dict[str, object]:
    found = json.loads(_text(value))
    if not isinstance(found, dict):
        raise TypeError
    return found


_READERS: dict[object, Callable[[object], object]] = {
    str: _text,
    int: _number,
    bool: _flag,
    int | None: _number_or_none,
    dict[str, object]: _object,
}


def _reader(hint: Any) -> Callable[[object], object]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    return _READERS[hint]


AUDIT = AuditCodec()


def stored_checkpoint(
    checkpoint_id: str, head: Mapping[str, object], journal: Sequence[Mapping[str, object]]
) -> StoredCheckpoint:
    """Make a checkpoint of its stored head and the entries of its journal.

    Raises:
        RecordFormatError: Part of it has an unknown version, or a field makes no sense.
    """
    check_version("checkpoint", head.get("v"), checkpoint_id)
    for entry in journal:
        check_version("journal entry", entry.get("v"), checkpoint_id)
    try:
        return StoredCheckpoint(
            data=_text(head.get("data", "")),
            claim=_text(head.get("claim", "")),
            status=CheckpointStatus(_text(head.get("status"))),
            version=_number(head.get("version")),
            base=_number(head.get("base")),
            journal=tuple(_text(entry["entry"]) for entry in journal),
            changes=_changes(head.get("changes", ())),
        )
    except (TypeError, ValueError) as error:
        fault = "a field is damaged"
        raise RecordFormatError(
            "checkpoint", SCHEMA_VERSION, fault, record_id=checkpoint_id
        ) from error


def stored_text(kind: str, record_id: str, row: Mapping[str, object]) -> str:
    """Read the text `data` of a record that is nothing but a text.

    Raises:
        RecordFormatError: It has an unknown version, or holds no text.
    """
    check_version(kind, row.get("v"), record_id)
    try:
        return _text(row.get("data"))
    except (TypeError, ValueError) as error:
        fault = "field 'data' is damaged"
        raise RecordFormatError(kind, SCHEMA_VERSION, fault, record_id=record_id) from error


UNREADABLE = "unreadable"
"""The action of an entry of the audit that cannot be read."""


def read_entry(row: Mapping[str, object]) -> AuditEntry:
    """Read an entry of the audit; if it cannot be read, it says at least that it is there."""
    try:
        return AUDIT.decode(row)
    except RecordFormatError as error:
        at_ms = row.get("at_ms")
        return AuditEntry(
            entry_id=str(row.get("entry_id")),
            at_ms=at_ms if isinstance(at_ms, int) else 0,
            action=UNREADABLE,
            thread_id=str(row.get("thread_id")),
            approval_id=str(row.get("approval_id")),
            actor_id=str(row.get("actor_id")),
            detail={"why": str(error)},
        )


def _changes(value: object) -> tuple[str, ...]:
    """Changes of a document: a list of texts, or one text with a line for each."""
    if isinstance(value, str):
        return tuple(line for line in value.split("\n") if line)
    if not isinstance(value, Sequence):
        raise TypeError(value)
    return tuple(map(_text, value))
