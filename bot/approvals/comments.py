"""Questions about pending approvals, and their answers (6.9). They decide nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from bot.approvals.model import Approval
from bot.redaction.mask import mask_text

LONGEST_ASKED = 1_000
AGENT = "agent"
"""Value for the agent in fields that hold a person's id."""
MOST_KEPT = 20
"""Maximum number of stored questions per card. The thread and the audit have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A question. Stored in `Approval.dialog_json`: version 1, must stay readable.

    Attributes:
        by: Slack user id of the person who asks.
        text: The question, masked and shortened.
        at_ms: Time of the question.
        ts: `ts` of the message; empty until it is known to be posted.
        answer: Like `text`; empty while open.
        answered_by: Slack user id of the person who answered, or `AGENT`.
        answer_ts: `ts` of the answer's message; `AGENT` without one.
        to: Slack user id of the only recipient, or `AGENT`; empty for the requesters.
        closed: Not empty once the message says that no answer is needed.
    """

    by: str
    text: str
    at_ms: int
    ts: str = ""
    answer: str = ""
    answered_by: str = ""
    answer_ts: str = ""
    to: str = ""
    closed: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the question has no answer."""
        return not self.answer_ts

    def key(self, approval: Approval) -> str:
        """Return the key of the question's message, to find it in Slack."""
        return f"{approval.approval_id}:{self.by}:{self.at_ms}"

    def answered(self, *, by: str, text: str, ts: str) -> Comment:
        """Return the question with its answer."""
        return replace(self, answer=short(text), answered_by=by, answer_ts=ts)


def dialog_of(approval: Approval) -> tuple[Comment, ...]:
    """Return the questions about an approval, oldest first, without damaged ones."""
    try:
        found = json.loads(approval.dialog_json)
    except (ValueError, RecursionError):
        return ()
    names = frozenset(Comment.__slots__)
    return tuple(
        Comment(**one)
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, dict)
        and names >= set(one) >= {"by", "text", "at_ms"}
        and type(one["at_ms"]) is int
        and all(isinstance(value, str) for name, value in one.items() if name != "at_ms")
    )


def write_dialog(exchanges: Sequence[Comment]) -> str:
    """Serialize questions for `Approval.dialog_json`."""
    kept = [asdict(one) for one in exchanges[-MOST_KEPT:]]
    rows = [{name: value for name, value in one.items() if value != ""} for one in kept]
    return json.dumps(rows, separators=(",", ":"))


def with_exchange(approval: Approval, before: Comment | None, after: Comment) -> Approval:
    """Return the approval with a question added or replaced."""
    found = dialog_of(approval)
    changed = [after if one == before else one for one in found]
    dialog = changed if before is not None else [*found, after]
    return approval.changed(dialog_json=write_dialog(dialog))


def short(text: str) -> str:
    """Mask and shorten a text. Masking comes first: half a secret is not recognized."""
    clean = mask_text(text).strip()
    return clean if len(clean) <= LONGEST_ASKED else f"{clean[: LONGEST_ASKED - 1]}…"
