"""Entries of what does not count any more: votes, a call as it was, a decision that lapsed."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.audit.acts import Act
from bot.core.audit.entries import (
    TakesEntries,
    entries_of_votes,
    entry_of,
    note,
    parsed,
    vote_entries,
)
from bot.policy.ballot import CastVote
from bot.questions.form import ask_of
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


async def note_edit(store: AuditStore, before: Approval, after: Approval, at_ms: int) -> None:
    """Put on record that a call was changed while it waits, and who is asked about it from then.

    Its votes are void; they stay on record.
    """
    edited = entry_of(
        Act.EDITED,
        key=f"{after.approval_id}:{after.revision}",
        at_ms=at_ms,
        about=after,
        by=after.edited_by,
        masks=ask_of(after).masks,
        before=parsed(before.arguments_json),
        arguments=parsed(after.arguments_json),
        shown=before.digest,
        digest=after.digest,
        rule=after.rule,
        ruling=parsed(after.ruling_json),
        deciders=parsed(after.approvers_json),
        backups=parsed(after.backups_json) or "",
        expires_ms=after.expires_ms,
    )
    await store.append_all([*vote_entries(before), edited])


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
