"""Questions that are asked back about what waits, and their answers (6.9): nothing is decided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from bot.redaction.mask import mask_text
from storage.records import Approval

LONGEST_ASKED = 1_000
AGENT = "agent"
"""Stands for the agent where a question has the id of a person; nobody's id is like this."""
MOST_KEPT = 20
"""Questions of one card that are kept; all of them are in the thread and in the audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A question asked back. Stored in `Approval.dialog_json`: version 1, must stay readable.

    Attributes:
        by: Slack user id of who asks.
        text: The question, with secrets masked, and cut where it is long.
        at_ms: When.
        ts: `ts` of the message that asks it; empty while that is not known to be posted.
        answer: As `text`; empty while it is open.
        answered_by: Slack user id of who answered, or `AGENT`.
        answer_ts: `ts` of their message; `AGENT` where there is none.
        to: Slack user id of the only person whom it is for, or `AGENT`; empty for the requesters.
        closed: Not empty once its message says that no answer is needed any more.
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
        """Whether nobody has answered it."""
        return not self.answer_ts

    def key(self, approval: Approval) -> str:
        """The name of its message: by it, one that was posted is found."""
        return f"{approval.approval_id}:{self.by}:{self.at_ms}"

    def answered(self, *, by: str, text: str, ts: str) -> Comment:
        """The same with its answer."""
        return replace(self, answer=short(text), answered_by=by, answer_ts=ts)


def dialog_of(approval: Approval) -> tuple[Comment, ...]:
    """Read what was asked back about an approval, oldest first; what is damaged is left out."""
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
    """Write them for `Approval.dialog_json`."""
    kept = [asdict(one) for one in exchanges[-MOST_KEPT:]]
    rows = [{name: value for name, value in one.items() if value != ""} for one in kept]
    return json.dumps(rows, separators=(",", ":"))


def with_exchange(approval: Approval, before: Comment | None, after: Comment) -> Approval:
    """The approval with a question that is new, or changed."""
    found = dialog_of(approval)
    changed = [after if one == before else one for one in found]
    dialog = changed if before is not None else [*found, after]
    return replace(approval, dialog_json=write_dialog(dialog))


def short(text: str) -> str:
    """Masked before it is cut: half of a secret would not be recognised."""
    clean = mask_text(text).strip()
    return clean if len(clean) <= LONGEST_ASKED else f"{clean[: LONGEST_ASKED - 1]}…"
