"""Entries of what does not count any more: votes, a call as it was, a decision that lapsed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from bot.audit.acts import Act
from bot.audit.entries import (
    TakesEntries,
    edit_entries,
    entries_of_votes,
    entry_of,
    note,
    vote_entries,
)
from bot.policy.tally import CastVote
from storage.ports.audit import AuditStore
from storage.records import Approval


async def note_gone(
    store: AuditStore, approval: Approval, at_ms: int, *, votes: Sequence[CastVote]
) -> None:
    """Put on record that votes do not count any more; before they are removed.

    Whoever counted them may have died before they were on record: they are put there, too.
    """
    await store.append_all(
        [
            *vote_entries(approval),
            *(
                entry_of(
                    Act.VOTE_DROPPED,
                    key=f"{approval.approval_id}:{vote.by}:{vote.at_ms}",
                    at_ms=at_ms,
                    about=approval,
                    by=vote.by,
                    behalf_of=vote.on_behalf_of,
                    choice=vote.choice,
                    digest=vote.digest,
                )
                for vote in votes
            ),
        ]
    )


async def note_taken_back(
    store: AuditStore, approval: Approval, at_ms: int, *, vote: CastVote
) -> None:
    """Put on record that somebody removed their vote, and what it was."""
    back = entry_of(
        Act.TAKEN_BACK,
        key=f"{approval.approval_id}:{vote.by}:{vote.at_ms}",
        at_ms=at_ms,
        about=approval,
        by=vote.by,
        behalf_of=vote.on_behalf_of,
        choice=vote.choice,
        digest=vote.digest,
    )
    await store.append_all([*entries_of_votes(approval, [vote]), back])


def edit_text(before: Approval, at_ms: int, note: str = "") -> str:
    """The state that an edit finds, for the record: whoever goes on after a crash can note it.

    Args:
        before: The approval before it.
        at_ms: When.
        note: What the editor wrote beside it, where no vote of theirs has it.
    """
    found: dict[str, object] = {"at_ms": at_ms, "shown": before.digest}
    if note:
        found["note"] = note
    if before.original_json:  # else what it finds becomes that
        found["before"] = before.arguments_json
    return json.dumps(found)


async def note_edit(store: AuditStore, before: Approval, after: Approval) -> None:
    """Put on record that a call was changed while it waits, and who is asked about it from then.

    Its votes are void; they stay on record.
    """
    await store.append_all([*vote_entries(before), *edit_entries(after)])


async def note_edit_refusal(
    store: AuditStore, approval: Approval, at_ms: int, *, by: str, code: str, why: str
) -> None:
    """Put on record that an edit was not taken: the card and its votes stay as they are."""
    key = f"{approval.approval_id}:{by}:{at_ms}"
    await note(
        store, Act.EDIT_REFUSED, key=key, at_ms=at_ms, about=approval, by=by, why=why, code=code
    )


async def note_lapse(store: TakesEntries, approval: Approval, at_ms: int, *, why: str) -> None:
    """Put on record that what was decided started nothing, and people are asked anew."""
    await note(store, Act.LAPSED, key=approval.approval_id, at_ms=at_ms, about=approval, why=why)
