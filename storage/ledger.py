"""Entries of the audit and their stored rows: the chained part and the deletable part.

The content of an entry is everything that people, models and tools wrote. It is stored apart from
the chained part, which contains its hash. The content can therefore be deleted with its thread, and
the chain stays valid.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, create_model

from storage.audit import AuditEntry, Link
from storage.chain import (
    NO_KEY,
    PLAIN,
    SEGMENT,
    Form,
    Head,
    Seal,
    canonical,
    content_hash,
    is_alg,
)
from storage.documents import Row, fault_of
from storage.errors import Fault, RecordFormatError, RecordRefusedError, StoreBrokenError
from storage.log import SCHEMA_VERSION, check_version, checked_text
from storage.thread_ids import team_of

logger = logging.getLogger(__name__)

CONTENT_HASH = "content_hash"
"""Name of the content hash in the evidence. Stored."""

UNREADABLE = "unreadable"
"""Action of an entry that cannot be read."""

STRIPPED: Row = {"content": "", "salt": "", "erased": True}
"""New values of the columns when the content of an entry is deleted."""

SEALED = ("seq", "alg", "prev", "hash")
"""Columns that a seal sets."""

_NOUN = "audit entry"
_NAMES = tuple(field.name for field in fields(AuditEntry))


_TYPES = {
    name: Annotated[str, AfterValidator(checked_text)] if kind is str else kind
    for name, kind in get_type_hints(AuditEntry).items()
}
_FIELDS: Any = create_model("_FIELDS", **{name: (kind, ...) for name, kind in _TYPES.items()})  # type: ignore[call-overload]

KEPT = frozenset(
    {
        "address",
        "backups",
        "call",
        "checkpoint",
        "choice",
        "count",
        "decided_by",
        "deciders",
        "digest",
        "escalates_ms",
        "expires_ms",
        "file",
        "for",
        "grant",
        "groups",
        "groups_read_ms",
        "how",
        "kind",
        "message",
        "method",
        "number",
        "outcome",
        "payload",
        "post",
        "revision",
        "rule",
        "shown",
        "stage",
        "status",
        "step",
        "to_ms",
        "tool",
        "until_ms",
        "upto_hash",
        "upto_seq",
        "uses",
        "was",
    }
)
"""Names of evidence that outlives its thread: ids, configured names, times and digests.

Everything that people, models or tools wrote is deleted: arguments, edits, answers, reasons and
errors.
"""

_DIGEST = re.compile(r"[0-9a-f]{64}")

COLUMNS = ("v", *_NAMES, "content", "salt", *SEALED)
"""The columns of a sealed entry."""


def check_alg(alg: object, seal: Seal) -> None:
    """Refuse to continue a chain whose key is unknown.

    Args:
        alg: Algorithm of the last entry. An invalid name is ignored here, because `verify` reports
            such damage.
        seal: Seals the next entry.

    Raises:
        StoreBrokenError: The key is unknown here.
    """
    if is_alg(alg) and not seal.knows(alg):
        raise StoreBrokenError(
            f"its audit is sealed with the key {str(alg).rpartition(':')[2]} (the first digits of "
            "its SHA-256), which is not given here",
            Fault.KEY,
        )


def segment_id(team_id: str, name: str) -> str:
    """Return the id of the entry that `segment_row` makes."""
    return f"{team_id}:{name}:{SEGMENT}"


def segment_row(team_id: str, *, behind: int, at_ms: int, name: str = "") -> Row:
    """Make the row of the entry that reports an unreadable end of a chain.

    Args:
        team_id: Workspace of the chain.
        behind: Number of the last entry that has a number.
        at_ms: Time of the next entry.
        name: Part of the entry's id; the number, if empty.
    """
    logger.warning(
        "the end of the audit of %s is damaged behind entry %d; it goes on",
        team_id or "no workspace",
        behind,
        extra={"action": "audit_chain_broken"},
    )
    return row_of(
        AuditEntry(
            entry_id=segment_id(team_id, name or str(behind)),
            at_ms=at_ms,
            action=SEGMENT,
            thread_id="",
            approval_id="",
            actor_id="",
            team_id=team_id,
            detail={"upto_seq": behind},
        ),
        NO_KEY,
    )


def row_of(entry: AuditEntry, seal: Seal) -> Row:
    """Make the row of an open entry.

    Raises:
        RecordRefusedError: A value is not JSON data.
    """
    content = {name: item for name, item in entry.detail.items() if not _is_kept(name, item)}
    detail = {name: item for name, item in entry.detail.items() if name not in content}
    salt = ""
    if content:
        salt = secrets.token_hex(16)
        detail[CONTENT_HASH] = content_hash(content, salt)
    try:
        text = json.dumps(content, separators=(",", ":"), allow_nan=False) if content else ""
        json.dumps(detail, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordRefusedError(f"the {_NOUN} is not JSON data") from error
    row = {"v": SCHEMA_VERSION, **{name: getattr(entry, name) for name in _NAMES}}
    row |= {"detail": canonical(detail), "team_id": entry.team, "content": text, "salt": salt}
    return {**row, "mac": seal.mac(open_form(row)) if seal.key else ""}


def _is_kept(name: str, item: object) -> bool:
    """Whether a field of the evidence outlives its thread."""
    # A full ruling contains the reasons that its author wrote; its digest does not
    if name == "ruling":
        return isinstance(item, str) and _DIGEST.fullmatch(item) is not None
    return name in KEPT


def read_entry(row: Mapping[str, object]) -> AuditEntry:
    """Read the chained part of an entry. Return an entry `unreadable` if that fails."""
    try:
        return _checked(row)
    except RecordFormatError as error:
        at_ms = row.get("at_ms")
        return AuditEntry(
            entry_id=str(row.get("entry_id")),
            at_ms=at_ms if isinstance(at_ms, int) and not isinstance(at_ms, bool) else 0,
            action=UNREADABLE,
            thread_id=str(row.get("thread_id")),
            approval_id=str(row.get("approval_id")),
            actor_id=str(row.get("actor_id")),
            detail={"why": str(error)},
        )


def _checked(row: Mapping[str, object]) -> AuditEntry:
    entry_id = row.get("entry_id")
    record_id = entry_id if isinstance(entry_id, str) else ""
    check_version(_NOUN, row.get("v"), record_id)
    values = {name: row.get(name) for name in _NAMES} | {"detail": _detail(row.get("detail"))}
    erased = row.get("erased")
    if isinstance(erased, int) and erased in {0, 1}:  # SQLite has no booleans
        values["erased"] = bool(erased)
    try:
        return AuditEntry(**dict(_FIELDS.model_validate(values, strict=True)))
    except ValueError as error:
        fault = fault_of(error)
        raise RecordFormatError(_NOUN, SCHEMA_VERSION, fault, record_id=record_id) from error


def entry_of_row(row: Mapping[str, object]) -> AuditEntry:
    """Read an entry with its content. Return an entry `unreadable` if that fails."""
    entry = read_entry(row)
    if entry.action == UNREADABLE:
        return entry
    content = _object(row.get("content"))
    if entry.team == replace(entry, team_id="").team:
        entry = replace(entry, team_id="")
    detail = {name: item for name, item in entry.detail.items() if name != CONTENT_HASH}
    return replace(entry, detail={**detail, **content})


def open_form(row: Mapping[str, object]) -> dict[str, object]:
    """Return the chained form of an open entry."""
    thread_id = row.get("thread_id")
    return {
        "v": row.get("v"),
        "team": row.get("team_id") or team_of(str(thread_id)),
        "id": row.get("entry_id"),
        "at_ms": row.get("at_ms"),
        "action": row.get("action"),
        "thread": thread_id,
        "approval": row.get("approval_id"),
        "actor": row.get("actor_id"),
        "for": row.get("for_id") or "",
        "detail": _detail(row.get("detail")),
    }


def link_of(row: Mapping[str, object], seal: Seal) -> Link:
    """Return the link of a row, sealed or open."""
    form = open_form(row)
    is_whole = _is_whole(row, form)
    if row.get("seq") is None:
        is_whole = is_whole and is_ours(row, form, seal)
    else:
        form |= {name: row.get(name) for name in SEALED}
    return Link(form, entry_of_row(row), is_whole)


def is_ours(row: Mapping[str, object], form: Form, seal: Seal) -> bool:
    """Return whether a process with the key appended the open entry; true without a key."""
    return seal.is_ours(form, str(row.get("mac") or ""))


def seal_for(row: Mapping[str, object], seal: Seal, *, is_keyed: bool) -> Seal | None:
    """Return the seal for an open entry.

    An open entry has a mark if a process with a key appended it. An entry without a valid mark
    never gets a seal with the key. If it has no mark at all, it is sealed without a key while the
    chain has no entry with a key. Afterwards it stays unsealed, because no process with the key can
    have appended it.

    Args:
        row: The open entry.
        seal: The seal of this process.
        is_keyed: Whether the last entry of the chain is sealed with a key.

    Returns:
        The seal, or None if the entry must not be sealed.
    """
    if is_ours(row, open_form(row), seal):
        return seal
    return None if is_keyed or row.get("mac") else NO_KEY


def tell_key_begins(team_id: str, head: Head, alg: str, seal: Seal) -> None:
    """Log the last entry without a key when the next entry is the first one with a key.

    Args:
        team_id: Workspace of the chain.
        head: Last entry of the chain. Nothing is logged for an empty chain.
        alg: Algorithm of that entry.
        seal: Seals the next entry.
    """
    if head.seq and alg == PLAIN and seal.key:
        logger.warning(
            "the audit of %s is sealed with a key from now on; its last entry without one is %d:%s",
            team_id or "no workspace",
            head.seq,
            head.hash,
            extra={"action": "audit_key_begins"},
        )


def _is_whole(row: Mapping[str, object], form: Form) -> bool:
    """Return whether the content matches its hash, or is marked as deleted."""
    detail = form.get("detail")
    due = detail.get(CONTENT_HASH) if isinstance(detail, Mapping) else None
    text = row.get("content")
    if not text:
        return due is None or bool(row.get("erased"))
    try:
        content = json.loads(str(text))
    except (ValueError, RecursionError):
        return False
    return content_hash(content, str(row.get("salt"))) == due


def _detail(text: object) -> object:
    """Parse the evidence. Return damaged evidence as text, which matches no hash."""
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return text


def _object(text: object) -> dict[str, object]:
    try:
        parsed = json.loads(str(text)) if text else {}
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
