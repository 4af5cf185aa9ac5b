"""The port to approvals: what people must decide or answer, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.ports.attendance import AttendanceStore
from storage.records import Approval, ApprovalHead, AuditEntry, Decision


class ApprovalStore(AttendanceStore, Protocol):
    """Approvals: what people must decide or answer, and their cards."""

    async def add(self, approval: Approval) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def add_all(
        self, approvals: Sequence[Approval], *, entries: Sequence[AuditEntry] = ()
    ) -> frozenset[str]:
        """Insert several, and after them the entries of the audit that go with them.

        One command for the approvals, and one for the entries, however many there are. May be
        repeated: what is there already stays as it is.

        Returns:
            Ids of those that are new.
        """
        ...

    async def get(self, approval_id: str) -> Approval:
        """Read one.

        Raises:
            RecordNotFoundError: No approval has this id.
        """
        ...

    async def get_all(self, approval_ids: Sequence[str]) -> Sequence[Approval]:
        """Read several in one command, in the order of the ids.

        Raises:
            RecordNotFoundError: No approval has one of these ids.
            RecordFormatError: One cannot be read.
        """
        ...

    async def decide(self, approval_id: str, decision: Decision, *, digest: str) -> Approval:
        """Record the decision, once: the whole product stands on this.

        One conditional write: the approval is pending, its `digest` equals `digest`, and, unless
        the decision is an expiry, `decision.at_ms < expires_ms`. Sets `status` and `decision`, adds
        one to `revision`, sets `remind_ms` to None and `due_ms` to `decision.at_ms`.

        Returns:
            The approval as decided.

        Raises:
            RecordNotFoundError: No approval has this id.
            RecordConflictError: It is not pending, has another digest, or is past its expiry; read
                it to learn which.
        """
        ...

    async def vote(
        self, changed: Approval, *, revision: int, now_ms: int, restarts: bool = False
    ) -> Approval:
        """Record a vote: with the votes, the stage, the count and the decision together.

        One conditional write: the approval is pending, its `revision` still is the given one, its
        `digest` is that of `changed`, and `expires_ms > now_ms`. Sets the fields of
        `VOTED` to those of `changed`, those of `RESTARTED`, too, if it
        `restarts` its reminders and escalation, `due_ms` to `now_ms`, and `remind_ms` to None when
        it decides; adds one to `revision`.

        Args:
            changed: The approval as it is to be: pending, or decided by this vote.
            revision: The revision that the vote was judged by.
            now_ms: The time of the vote.
            restarts: Whether others are asked from now on: another stage.

        Returns:
            The approval as stored.

        Raises:
            RecordNotFoundError: No approval has this id.
            RecordConflictError: It is not pending, was changed meanwhile, or is past its expiry:
                read it and judge again.
        """
        ...

    async def rebind(self, changed: Approval, *, digest: str, now_ms: int) -> Approval:
        """Ask other people, or about something else: a call that was edited, on the same card.

        One conditional write: the approval is pending, its `digest` equals `digest`, and
        `expires_ms > now_ms`. Sets all fields of `REBOUND` to those of `changed`,
        `reminders` to 0, `seen_json` to an empty list, `escalated_ms` to None, `escalation_told` to
        False and `due_ms` to `now_ms`, and adds one to `revision`.

        Args:
            changed: The approval as it is to be: pending, or decided by the edit.
            digest: What it was about before.
            now_ms: The time of the edit.

        Returns:
            The approval as stored.

        Raises:
            RecordNotFoundError: No approval has this id.
            RecordConflictError: It is not pending, is about something else by now, or is past its
                expiry.
        """
        ...

    async def withdraw(self, approval_id: str, decision: Decision) -> Approval:
        """Cancel an approval whose decision the agent's run refused: nothing was done with it.

        One conditional write: the approval is open, and approved, rejected or answered. Sets
        `status` and `decision`, adds one to `revision`, and sets `due_ms` to `decision.at_ms`.

        Args:
            approval_id: The approval.
            decision: With the status cancelled, and the reason.

        Returns:
            The approval as cancelled.

        Raises:
            RecordNotFoundError: No approval has this id.
            RecordConflictError: It is closed, or nothing in it can be cancelled.
        """
        ...

    async def set_said(
        self, approval_id: str, said_json: str, *, revision: int, now_ms: int
    ) -> bool:
        """Record what requesters wrote while it waits; the card shows it.

        One conditional write: the approval is pending, and its `revision` still is the given one.
        Sets `said_json`, adds one to `revision`, and sets `due_ms` to `now_ms`.

        Returns:
            False, and nothing written, when somebody changed it meanwhile, or there is none.
        """
        ...

    async def annotate(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool = True
    ) -> Approval | None:
        """Record what somebody does beside voting: a claim, a snooze, a question asked back.

        One conditional write: the approval is pending, its `revision` still is the given one, and
        `expires_ms > now_ms`. Sets the fields of `ANNOTATED` to those of `changed`;
        adds one to `revision` and sets `due_ms` to `now_ms`, too, if it `redraws` the card.

        Returns:
            The approval as stored; None, and nothing written, otherwise.
        """
        ...

    async def open_of(self, thread_id: str) -> Sequence[Approval]:
        """Approvals of a thread with `open` set, by creation time, then position.

        Raises:
            RecordFormatError: One cannot be read. To leave it out would be to ask twice, or to lose
                a decision.
        """
        ...

    async def heads_of(self, thread_id: str) -> Sequence[ApprovalHead]:
        """Return the heads of the approvals that `open_of` gives, in the same order.

        It serves to find out which of them have to be read whole.

        Raises:
            RecordFormatError: Another release wrote one, or a field of this part is damaged.
        """
        ...

    async def newest_of(self, thread_id: str, *, limit: int) -> Sequence[Approval]:
        """Approvals of a thread, newest first; without those that cannot be read.

        So it serves what is shown, and decides nothing.
        """
        ...

    async def of_turn(self, checkpoint_id: str) -> Sequence[Approval]:
        """Approvals of one turn, whatever became of them, by creation time, then position.

        Without those that cannot be read: it serves what is shown, and decides nothing.
        """
        ...

    async def mark_run(
        self,
        approval_id: str,
        *,
        was: str,
        run_json: str,
        now_ms: int,
        closes: bool = False,
    ) -> Approval | None:
        """Record what has become of the call that was approved, or answered.

        One conditional write: the approval is approved or answered, and its `run_json` still is
        `was`. Sets `run_json`, adds one to `revision`, and sets `due_ms` to `now_ms`; unsets
        `open`, too, if it `closes`.

        Returns:
            The approval as stored; None, and nothing written, otherwise.
        """
        ...

    async def close(self, approval_id: str) -> None:
        """Unset `open`: the thread was resumed with the decision. May be repeated."""
        ...

    async def close_all(self, approval_ids: Sequence[str]) -> None:
        """Do what `close` does, for several in one command."""
        ...

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        """Ask for the card to be drawn again, whatever it shows.

        Adds one to `revision`, and sets `due_ms` to `now_ms`, whoever holds the lease; and
        `newer_ts`, unless it is empty.

        Returns:
            False, and nothing written, when no approval has this id.
        """
        ...

    async def split(self, batch: str, *, checkpoint_id: str, now_ms: int) -> frozenset[str]:
        """Give each pending approval that is on one card with others a card of its own.

        Sets `batch_left`, adds one to `revision`, and sets `due_ms` to `now_ms`.

        Args:
            batch: Id of the approval that keeps that card.
            checkpoint_id: Of their turn.
            now_ms: The time now.

        Returns:
            Their ids.
        """
        ...

    async def mark_seen(
        self, approval_id: str, *, digest: str, before: str, seen_json: str
    ) -> bool:
        """Record who has opened what the card does not show; the card stays as it is.

        One conditional write: the approval is pending, and its `digest` and `seen_json` are these.

        Args:
            approval_id: Which.
            digest: Of what was opened.
            before: The `seen_json` that was read.
            seen_json: The new one.

        Returns:
            False, and nothing written, when the approval has been decided or changed meanwhile.
        """
        ...
