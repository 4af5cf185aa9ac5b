"""The port to approvals as work: what is due, and what the process with the lease records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import Approval, DrawnCard


class AttendanceStore(Protocol):
    """Approvals that are due: their leases, their cards, their reminders, their ladder."""

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        """Approvals with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def count_due(self, *, now_ms: int) -> int:
        """Count the approvals that `due` would give without a limit."""
        ...

    async def count_pending(self) -> int:
        """Count the approvals that nobody has decided yet."""
        ...

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        """Approvals whose `undeliverable` is one of the reasons, the newest first."""
        ...

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        """Take the lease, as `ThreadStore.claim` does."""
        ...

    async def release(  # noqa: PLR0913 - the parts of one write, given by name
        self,
        approval_id: str,
        *,
        fence: int,
        revision: int,
        due_ms: int | None,
        now_ms: int,
        failed: bool = False,
        drawn: DrawnCard | None = None,
        sign: str | None = None,
    ) -> bool:
        """Give the lease back.

        `due_ms` becomes the given value when `revision` still is what the caller saw; otherwise
        `now_ms`, as there is something new to show. `attempts` becomes one higher when `failed`,
        else 0. With `drawn`, the same write records what `mark_card` would of that card; with
        `sign`, the sign that the root of the thread has now.

        Returns:
            True when the given value was taken; False when there is more to do now, or the lease
            was lost.
        """
        ...

    async def mark_card(
        self, approval_id: str, *, fence: int, card_ts: str | None, drawn_revision: int | None
    ) -> bool:
        """Record a step with the card; False when the lease was lost.

        `card_ts` None means that a post is about to begin (`post_tried` is set); otherwise the
        card's `ts`, or an empty text when the card is gone (`post_tried` is unset). With
        `drawn_revision`, the card has been shown: `undeliverable` becomes empty.
        """
        ...

    async def mark_undeliverable(self, approval_id: str, *, fence: int, reason: str) -> bool:
        """Record that Slack does not take the card; False when the lease was lost."""
        ...

    async def mark_reminded(
        self,
        approval_id: str,
        *,
        fence: int,
        digest: str,
        remind_ms: int | None,
        reminder_ts: str,
    ) -> bool:
        """Add one to `reminders`, and set the time of the next one and `reminder_ts`.

        False, and nothing written, when the lease was lost, or the approval is no longer pending,
        or no longer about what has this digest: an edit has others asked.
        Called before the reminder is posted, with `UNKNOWN_TS`: after a crash it is looked for.
        """
        ...

    async def mark_messages(
        self,
        approval_id: str,
        *,
        fence: int,
        reminder_ts: str | None,
        escalation_ts: str | None,
    ) -> bool:
        """Set `reminder_ts` and `escalation_ts`, unless None; False when the lease was lost."""
        ...

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        """Let the backup people decide, too: once, and before anybody is told.

        One conditional write: the lease is held, the approval is pending, `escalate_ms <= now_ms`,
        and `expires_ms > now_ms`. Sets `escalated_ms` to `now_ms` and `escalate_ms` to None, and
        adds one to `revision`.

        Returns:
            The approval as escalated; None, and nothing written, otherwise.
        """
        ...

    async def mark_escalation_told(
        self, approval_id: str, *, fence: int, digest: str, escalation_ts: str
    ) -> bool:
        """Record that the message to the backup people is posted.

        False, and nothing written, when the lease was lost, or the approval has another digest: an
        edit has others asked, who have not been told.
        """
        ...

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        """Record a step of the ladder: what is sent next, to whom, and who may decide, too.

        One conditional write, before anything is sent: the lease of `changed.fence` is held, the
        approval is pending, its `revision` still is the given one, and `expires_ms > now_ms`. Sets
        the fields of `CLIMBED` to those of `changed`, and adds one to `revision` if
        it `redraws` the cards.

        Returns:
            The approval as stored; None, and nothing written, otherwise.
        """
        ...

    async def mark_beside(
        self,
        approval_id: str,
        *,
        fence: int,
        cards_json: str | None = None,
        messages_json: str | None = None,
        dialog_json: str | None = None,
    ) -> bool:
        """Set these fields, unless None; False when the lease was lost.

        `dialog_json` only of what is not pending: while it is, people add to it (`annotate`).
        """
        ...

    async def mark_batch(
        self, approval_id: str, *, fence: int, batch_ts: str | None = None, leaves: bool = False
    ) -> bool:
        """Record a step with the one card of several; False when the lease was lost.

        Sets `batch_ts`, unless None. One that `leaves` that card gets one of its own, of which no
        post was begun.
        """
        ...

    async def mark_stuck(
        self, approval_id: str, *, fence: int, digest: str, stuck: str
    ) -> Approval | None:
        """Record why nobody can decide it now; empty when somebody can.

        One conditional write: the lease is held, and the approval is pending and has this digest.
        Sets `stuck`, and adds one to `revision`.

        Returns:
            The approval as stored; None, and nothing written, otherwise.
        """
        ...
