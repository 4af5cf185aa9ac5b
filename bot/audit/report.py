"""The record, as people read it: the story of a thread or an approval, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.audit.acts import Act
from bot.audit.entries import masked_evidence
from bot.redaction.masks import Names
from storage.base import Storage
from storage.ports.audit import Link
from storage.records import Approval, AuditEntry

MOST = 100_000
"""Entries of one thread that are read."""

_ORDER = {act: place for place, act in enumerate(Act)}


async def story(
    storage: Storage, *, thread_id: str = "", approval_id: str = ""
) -> list[AuditEntry]:
    """Read what is on record of a thread, or of one approval, in the order in which it happened.

    Args:
        storage: Open.
        thread_id: Of which thread.
        approval_id: Of which approval; its gated call is part of it.

    Raises:
        RecordNotFoundError: There is no such approval.
    """
    if not approval_id:
        return in_order(await storage.audit.of_thread(thread_id, limit=MOST))
    approval = await storage.approvals.get(approval_id)
    entries = await storage.audit.of_thread(approval.thread_id, limit=MOST)
    return in_order(one for one in entries if _concerns(one, approval))


def _concerns(entry: AuditEntry, approval: Approval) -> bool:
    if entry.approval_id:
        return entry.approval_id == approval.approval_id
    here = (approval.checkpoint_id, approval.address)
    return (entry.detail.get("checkpoint"), entry.detail.get("address")) == here


def in_order(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Sort by time; within a millisecond, in the order in which such acts follow each other."""
    last = len(_ORDER)
    return sorted(
        entries,
        key=lambda one: (
            one.at_ms,
            _ORDER.get(Act(one.action), last) if one.action in set(Act) else last,
            one.entry_id,
        ),
    )


def line(entry: AuditEntry) -> str:
    """Write an entry for a terminal: when, what, who, what about, and the evidence."""
    words = [_when(entry.at_ms), entry.action]
    if entry.actor_id:
        words.append(f"by {entry.actor_id}")
    if entry.for_id:
        words.append(f"for {entry.for_id}")
    if entry.approval_id:
        words.append(entry.approval_id)
    words += [f"{name}={_dump(item)}" for name, item in _evidence(entry).items()]
    if entry.erased:
        words.append("(content deleted)")
    return "  ".join(words)


def json_line(entry: AuditEntry) -> str:
    """Write an entry as one JSON object on one line."""
    return json.dumps(
        {
            "at": _when(entry.at_ms),
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
    """Masked again: with the rules of today."""
    return masked_evidence(entry.detail, Names(shown=_texts(entry.detail.get("declared_shown"))))


def _when(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _dump(item: object) -> str:
    """Write a value so that nothing in it can forge a line, or move the terminal's cursor."""
    text = item if isinstance(item, str) and item else json.dumps(item, ensure_ascii=False)
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """The entries that somebody looks for: all that is given must fit.

    Attributes:
        since_ms: From then on.
        until_ms: Before then.
        user: Who did it, or for whom.
        action: The act.
        tool: The tool that the call is of.
        outcome: How it ended: a status, a choice, or the outcome of a call.
        thread_id: In which thread.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    user: str = ""
    action: str = ""
    tool: str = ""
    outcome: str = ""
    thread_id: str = ""


_OUTCOMES = ("status", "choice", "outcome")


def fits(entry: AuditEntry, query: AuditQuery) -> bool:
    """Whether an entry is one of those that somebody looks for."""
    wanted = (
        (query.user, {entry.actor_id, entry.for_id}),
        (query.action, {entry.action}),
        (query.tool, {entry.detail.get("tool")}),
        (query.outcome, {str(entry.detail.get(name)) for name in _OUTCOMES}),
        (query.thread_id, {entry.thread_id}),
    )
    is_late = query.since_ms is None or entry.at_ms >= query.since_ms
    is_early = query.until_ms is None or entry.at_ms < query.until_ms
    return is_late and is_early and all(not item or item in found for item, found in wanted)


def exported(link: Link) -> dict[str, object]:
    """An entry with its place in the chain, masked, for other programs."""
    entry = link.entry
    return {
        **link.form,
        "at": _when(entry.at_ms),
        "detail": _evidence(entry),
        **({"erased": True} if entry.erased else {}),
    }
