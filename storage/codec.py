"""Records to flat rows and back: the stored form that both adapters share.

A row maps field names to texts, integers, booleans and None, and has the schema version in `v`.
Anything deeper (a decision, the detail of an audit entry) is one field with JSON text. A row that
this program does not understand is an error, never a guess.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from typing import Any, Generic, TypeVar, get_type_hints

from agents.core.checkpoint import (
    SCHEMA_VERSION as RUN_VERSION,
    CheckpointStatus,
    StoredCheckpoint,
)
from storage.errors import RecordFormatError, RecordRefusedError
from storage.records import (
    SCHEMA_VERSION,
    Approval,
    ApprovalHead,
    AuditEntry,
    Decision,
    Kind,
    Message,
    MessageStatus,
    Post,
    Status,
    Thread,
    Whisper,
)

logger = logging.getLogger(__name__)

Scalar = str | int | bool | None
Row = dict[str, Scalar]

Record = TypeVar(
    "Record",
    bound=Thread | Message | Approval | ApprovalHead | Post | Whisper | AuditEntry | Decision,
)


class Codec(Generic[Record]):
    """Turns records of one kind into rows, and rows into records.

    Attributes:
        kind: What the record is, in words, for errors.
        key: Name of the field that identifies a record; empty when there is none.
        added: Fields that records of earlier releases lack; they have defaults.
        names: Names of all columns, `v` first.
    """

    def __init__(
        self, kind: str, record: type[Record], *, key: str = "", added: Collection[str] = ()
    ) -> None:
        self.kind = kind
        self.key = key
        self.added = frozenset(added)
        self._record = record
        hints = get_type_hints(record)
        self._readers = {field.name: _reader(hints[field.name]) for field in fields(record)}
        self.names = ("v", *self._readers)

    def encode(self, record: Record) -> Row:
        """Make the row of a record.

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

    def decode(self, row: Mapping[str, object]) -> Record:
        """Make the record of a row.

        Raises:
            RecordFormatError: The row has an unknown version, or a field makes no sense.
        """
        found = row.get(self.key) if self.key else ""
        record_id = found if isinstance(found, str) else ""
        check_version(self.kind, row.get("v"), record_id)
        values: dict[str, Any]
        try:  # a row of this release, and whole, as nearly all are
            values = {name: read(row[name]) for name, read in self._readers.items()}
        except (KeyError, TypeError, ValueError, RecursionError):
            values = self._read_each(row, record_id)
        return self._record(**values)

    def _read_each(self, row: Mapping[str, object], record_id: str) -> dict[str, Any]:
        """Read a row that lacks something, one field after the other.

        Raises:
            RecordFormatError: A field makes no sense; it is named.
        """
        values: dict[str, Any] = {}
        for name, read in self._readers.items():
            if name in self.added and name not in row:
                continue  # written before there was such a field: its default holds
            try:
                values[name] = read(row.get(name))
            except (TypeError, ValueError, RecursionError) as error:
                fault = f"field {name!r} is damaged"
                raise RecordFormatError(
                    self.kind, SCHEMA_VERSION, fault, record_id=record_id
                ) from error
        return values

    def legible(self, rows: Iterable[Mapping[str, object]]) -> list[Record]:
        """Make the records of rows; those that cannot be read are passed over."""
        found: list[Record] = []
        for row in rows:
            try:
                found.append(self.decode(row))
            except RecordFormatError as error:
                logger.warning(
                    "skipped an unreadable record: %s", error, extra={"action": "storage"}
                )
        return found


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


def decision_text(decision: Decision) -> str:
    """Make the stored form of a decision: JSON text with a version of its own."""
    return json.dumps(DECISIONS.encode(decision), separators=(",", ":"))


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
"""Types of values that rows hold; known without a look at each class that they may be of."""


def _scalar(value: object) -> Scalar:
    match value:
        case StrEnum():
            return value.value
        case None | str() | int():
            return value
        case Decision():
            return decision_text(value)
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


def _decision_or_none(value: object) -> Decision | None:
    if value is None:
        return None
    try:
        return DECISIONS.decode(_object(value))
    except RecordFormatError as error:
        raise ValueError from error


_READERS: dict[object, Callable[[object], object]] = {
    str: _text,
    int: _number,
    bool: _flag,
    int | None: _number_or_none,
    Decision | None: _decision_or_none,
    dict[str, object]: _object,
}


def _reader(hint: Any) -> Callable[[object], object]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    return _READERS[hint]


DECISIONS = Codec("decision", Decision)
THREADS = Codec("thread", Thread, key="thread_id")
MESSAGES = Codec("message", Message, key="message_id")
APPROVALS = Codec("approval", Approval, key="approval_id")
HEADS = Codec("approval", ApprovalHead, key="approval_id")
"""Reads a part of what `APPROVALS` writes."""
REBOUND = (
    "rule",
    "title",
    "preview",
    "arguments_json",
    "schema_json",
    "digest",
    "approvers_json",
    "self_approval",
    "backups_json",
    "members_json",
    "ruling_json",
    "original_json",
    "edited_by",
    "editors_excluded",
    "editors_json",
    "edit_json",
    "voided_json",
    "counted_json",
    "stuck",
    "expires_ms",
    "remind_ms",
    "escalate_ms",
    "terms_json",
    "policy_file",
    "votes_json",
    "stage",
    "steps",
    "ladder_ms",
    "mentioned_json",
    "claim_json",
    "status",
    "decision",
)
"""Fields of an approval that an edit changes while it waits; it may be the last that it needed."""
VOTED = ("status", "decision", "votes_json", "stage", "claim_json")
"""Fields of an approval that each vote changes."""
ANNOTATED = ("claim_json", "snoozes_json", "dialog_json")
"""Fields of an approval that people change beside their votes: who sees to it, who is left in peace
until when, what was asked and answered about it."""
RESTARTED = (
    "ladder_ms",
    "remind_ms",
    "reminders",
    "steps",
    "escalate_ms",
    "escalated_ms",
    "escalation_told",
)
"""Fields of an approval whose reminders and escalation begin anew, with those who are asked now."""
CLIMBED = (
    "reminders",
    "steps",
    "escalate_ms",
    "escalated_ms",
    "mentioned_json",
    "snoozes_json",
    "cards_json",
    "messages_json",
    "ladder_json",
)
"""Fields of an approval that a step of its ladder changes."""
POSTS = Codec("post", Post, key="post_id")
WHISPERS = Codec("whisper", Whisper, key="whisper_id")
AUDIT = Codec("audit entry", AuditEntry, key="entry_id")


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


def _fingerprint(*codecs: Codec[Any]) -> str:
    """A name for all that this release can read; another one for a release that reads more."""
    shapes = [(codec.kind, codec.names) for codec in codecs]
    words = [tuple(kind) for kind in (Kind, Status, MessageStatus, CheckpointStatus)]
    text = json.dumps([SCHEMA_VERSION, RUN_VERSION, shapes, words])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


READER = _fingerprint(DECISIONS, THREADS, MESSAGES, APPROVALS, POSTS, WHISPERS, AUDIT)
"""Stands in `aside_by` of records that this release cannot read: it looks at them no more, and
another release does. (Stored, but only ever compared with itself.)"""

MAX_WHY = 300
"""Characters that are kept of the reason why a record was set aside."""
