"""Audit entries for dropped votes, edits, and lapsed decisions."""

from __future__ import annotations

from collections.abc import Sequence

from bot.audit.acts import Act
from bot.audit.entries import (
    edit_entries,
    entry_of,
    note,
    removed_vote_entry,
    vote_entries,
)
from bot.records.approval import Approval, CastVote, LastEdit
from storage.audit import AuditEntry, AuditStore


async def note_gone(
    store: AuditStore, approval: Approval, at_ms: int, *, votes: Sequence[CastVote]
) -> None:
    """Record that votes no longer count, before they are removed.

    The votes themselves are recorded, too: the process that counted them may have crashed.
    """
    dropped = [removed_vote_entry(Act.VOTE_DROPPED, approval, vote, at_ms) for vote in votes]
    await store.append(*vote_entries(approval), *dropped)


def last_edit(before: Approval, at_ms: int, note: str = "") -> LastEdit:
    """Return the state before an edit, so the edit can be recorded after a crash."""
    # Without an original, the arguments before the edit are the original.
    arguments = None if before.edits.original is None else before.arguments
    return LastEdit(at_ms=at_ms, shown=before.digest, note=note, arguments_before=arguments)


async def note_edit(store: AuditStore, before: Approval, after: Approval) -> None:
    """Record an edit of a pending call, which voids its votes."""
    await store.append(*vote_entries(before), *edit_entries(after))


async def note_edit_refusal(
    store: AuditStore, approval: Approval, at_ms: int, *, by: str, code: str, why: str
) -> None:
    """Record a refused edit. The card and its votes do not change."""
    key = f"{approval.approval_id}:{by}:{at_ms}"
    await note(
        store, Act.EDIT_REFUSED, key=key, at_ms=at_ms, about=approval, by=by, why=why, code=code
    )


def lapse_entry(approval: Approval, at_ms: int, *, why: str) -> AuditEntry:
    """Build the entry of a decision that lapsed unused, so people are asked again."""
    return entry_of(Act.LAPSED, key=approval.approval_id, at_ms=at_ms, about=approval, why=why)
