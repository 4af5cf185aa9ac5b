"""Audit reports: the history of a thread or an approval, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.audit.acts import Act
from bot.audit.entries import masked_evidence
from bot.records.approval import Approval
from bot.redaction.masks import Names
from bot.stores import Stores
from storage.audit import AuditEntry, Link

MOST = 100_000
"""Maximum number of audit entries to read of one thread."""

_ORDER = {act: place for place, act in enumerate(Act)}


async def story(storage: Stores, *, thread_id: str = "", approval_id: str = "") -> list[AuditEntry]:
    """Read the audit entries of a thread or of one approval, in order.

    Raises:
        RecordNotFoundError: There is no such approval.
    """
    if not approval_id:
        return in_order(await storage.audit.of_thread(thread_id, limit=MOST))
    approval = await storage.approvals.get(approval_id)
    entries = await storage.audit.of_thread(approval.thread_id, limit=MOST)
    return in_order(entry for entry in entries if _concerns(entry, approval))


def _concerns(entry: AuditEntry, approval: Approval) -> bool:
    if entry.approval_id:
        return entry.approval_id == approval.approval_id
    here = (approval.checkpoint_id, approval.address)
    return (entry.detail.get("checkpoint"), entry.detail.get("address")) == here


def in_order(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Sort by time; entries of one millisecond by the usual order of their acts."""
    last = len(_ORDER)
    return sorted(
        entries,
        key=lambda entry: (
            entry.at_ms,
            _ORDER.get(Act(entry.action), last) if entry.action in set(Act) else last,
            entry.entry_id,
        ),
    )


def line(entry: AuditEntry) -> str:
    """Format an entry for a terminal: time, act, actor, subject and evidence."""
    words = [when(entry.at_ms), printable(entry.action)]
    if entry.actor_id:
        words.append(f"by {printable(entry.actor_id)}")
    if entry.for_id:
        words.append(f"for {printable(entry.for_id)}")
    if entry.approval_id:
        words.append(printable(entry.approval_id))
    words += [f"{printable(name)}={printable(item)}" for name, item in _evidence(entry).items()]
    if entry.erased:
        words.append("(content deleted)")
    return "  ".join(words)


def json_line(entry: AuditEntry) -> str:
    """Format an entry as one line of JSON."""
    return json.dumps(
        {
            "at": when(entry.at_ms),
            "action": entry.action,
            "thread_id": entry.thread_id,
            "approval_id": entry.approval_id,
            "by": entry.actor_id,
            **({"for": entry.for_id} if entry.for_id else {}),
            "evidence": _evidence(entry),
            **({"erased": True} if entry.erased else {}),
        }
    )


def _evidence(entry: AuditEntry) -> dict[str, object]:
    """Return the evidence, masked again with the current rules."""
    return masked_evidence(entry.detail, Names(shown=_texts(entry.detail.get("declared_shown"))))


def when(at_ms: int, timespec: str = "milliseconds") -> str:
    """Format a time in UTC; one out of range, such as of a damaged entry, as its number."""
    try:
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(at_ms)
    return at.isoformat(timespec=timespec).replace("+00:00", "Z")


def printable(item: object) -> str:
    """Serialize a value without line breaks and terminal control characters."""
    text = item if isinstance(item, str) and item else json.dumps(item, ensure_ascii=False)
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(text) for text in value) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Filter for audit entries. All given fields must match."""

    since_ms: int | None = None
    until_ms: int | None = None
    user: str = ""
    action: str = ""
    tool: str = ""
    thread_id: str = ""


def fits(entry: AuditEntry, query: AuditQuery) -> bool:
    """Whether an entry matches the query."""
    wanted = (
        (query.user, (entry.actor_id, entry.for_id)),
        (query.action, (entry.action,)),
        (query.tool, (entry.detail.get("tool"),)),
        (query.thread_id, (entry.thread_id,)),
    )
    is_late = query.since_ms is None or entry.at_ms >= query.since_ms
    is_early = query.until_ms is None or entry.at_ms < query.until_ms
    return is_late and is_early and all(not item or item in values for item, values in wanted)


def exported(link: Link) -> dict[str, object]:
    """Return a masked entry with its chain position, for other programs."""
    entry = link.entry
    return {
        **link.form,
        "at": when(entry.at_ms),
        "detail": _evidence(entry),
        **({"erased": True} if entry.erased else {}),
    }
