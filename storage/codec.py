"""The stored form of checkpoints, and of texts.

A row maps field names to texts, integers, booleans and None, and has the schema version in `v`. A
row that this program does not understand is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.core.checkpoint import (
    CheckpointStatus,
    StoredCheckpoint,
)
from storage.errors import RecordFormatError

SCHEMA_VERSION = 1
"""The version of all that is no document."""


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


def _changes(value: object) -> tuple[str, ...]:
    """Changes of a document: a list of texts, or one text with a line for each."""
    if isinstance(value, str):
        return tuple(line for line in value.split("\n") if line)
    if not isinstance(value, Sequence):
        raise TypeError(value)
    return tuple(map(_text, value))
