"""Questions about pending approvals, and their answers. They decide nothing."""

from __future__ import annotations

from bot.records.approval import Approval, Comment
from bot.redaction.mask import mask_text

LONGEST_ASKED = 1_000
AGENT = "agent"
"""Value for the agent in fields that hold a person's id."""
MOST_KEPT = 20
"""Maximum number of stored questions per card. The thread and the audit have all."""


def with_answer(question: Comment, *, by: str, text: str, ts: str) -> Comment:
    """Return a question with its answer."""
    return question.changed(answer=short(text), answered_by=by, answer_ts=ts)


def with_exchange(approval: Approval, before: Comment | None, after: Comment) -> Approval:
    """Return the approval with a question added or replaced."""
    comments = approval.dialog
    changed = tuple(after if comment == before else comment for comment in comments)
    dialog = changed if before is not None else (*comments, after)
    return approval.changed(dialog=dialog[-MOST_KEPT:])


def short(text: str) -> str:
    """Mask and shorten a text. Masking comes first: half a secret is not recognized."""
    clean = mask_text(text).strip()
    return clean if len(clean) <= LONGEST_ASKED else f"{clean[: LONGEST_ASKED - 1]}…"
