"""The ports: what the bot asks of a database. The contract is here; adapters only obey.

Every method may raise `StoreUnavailableError`. All conditional writes are single-record and atomic:
of any number of concurrent callers, in any number of processes, exactly one sees success.

A record that cannot be read never keeps others from being read. Where work is looked for (`due`,
`claim`), it is set aside: marked as unreadable for this release, logged once, and not looked at
again but by another release, or after a restart. It is never changed otherwise, and never deleted.
What belongs to one thread and decides what may run there (messages, open approvals, the agent's
history and checkpoint) raises `RecordFormatError` instead: that thread stands still, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agents.core.checkpoint import AmendingStore, MessageLog
from storage.lists import ListStore
from storage.people import PeopleStore
from storage.records import (
    Approval,
    ApprovalHead,
    AuditEntry,
    Decision,
    DrawnCard,
    Lease,
    Message,
    Post,
    Remark,
    Thread,
    Unreadable,
    Whisper,
)
from storage.restoring import RestoreStore
from storage.retention import RetentionStore
from storage.rights import DelegationStore, GrantStore
from storage.trail import TrailStore


class ThreadStore(Protocol):
    """Threads, and the right to work on one."""

    async def add(self, thread: Thread) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def ensure(self, thread: Thread) -> Thread:
        """Insert the thread unless its id exists; return what is stored."""
        ...

    async def get(self, thread_id: str) -> Thread:
        """Read a thread.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        ...

    async def wake(
        self, thread_id: str, *, now_ms: int, lease: Lease | None = None
    ) -> Thread | None:
        """Ask for work: set `due_ms` and `active_ms` to `now_ms` and add one to `wakes`.

        A lease is taken along where nobody has one, as by `claim`, and `due_ms` is its end then.

        Returns:
            The thread as stored; None when no lease was offered, or it cannot be read.

        Whoever holds the lease.

        Raises:
            RecordNotFoundError: No thread has this id.
        """
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Thread]:
        """Threads with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def count_due(self, *, now_ms: int) -> int:
        """Count the threads that `due` would give without a limit."""
        ...

    async def running(
        self, team_id: str, requester_id: str, *, now_ms: int, limit: int
    ) -> Sequence[Thread]:
        """Threads of a requester whose open turn somebody works on: with a lease beyond `now_ms`.

        Those that cannot be read are left out.
        """
        ...

    async def claim(
        self, thread_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Thread | None:
        """Take the lease if work is due (`due_ms <= now_ms`) and `leased_until_ms <= now_ms`.

        Sets `leased_by`, `leased_until_ms` and `due_ms` to `until_ms`, and adds one to `fence`.

        Returns:
            The thread as claimed; None when nothing is due, somebody else has the lease, or it
            cannot be read: then it is set aside.
        """
        ...

    async def set_aside(self, thread_id: str, *, fence: int, why: str) -> bool:
        """Mark a thread of which something cannot be read, and give the lease back.

        Nothing of it is due for this release until it is started again. False when the lease was
        lost.
        """
        ...

    async def extend(self, thread_id: str, *, fence: int, until_ms: int) -> bool:
        """Prolong the lease: `leased_until_ms` and `due_ms` become `until_ms`.

        A wake meanwhile is not lost by that: `release` knows it by `wakes`, and when the holder
        dies, the end of the lease is when the thread can be claimed again in any case.

        Returns:
            False when the lease was lost (somebody claimed with a higher fence) or given back.
        """
        ...

    async def set_turn(
        self,
        thread_id: str,
        *,
        fence: int,
        turn: int,
        turn_open: bool,
        requesters_json: str | None = None,
    ) -> bool:
        """Record that a turn begins or has ended. False when the lease was lost.

        `requesters_json`, unless None, is recorded in the same write.
        """
        ...

    async def set_requesters(self, thread_id: str, *, fence: int, requesters_json: str) -> bool:
        """Record whose words the agent reads. False when the lease was lost."""
        ...

    async def release(
        self,
        thread_id: str,
        *,
        fence: int,
        wakes: int,
        now_ms: int,
        retry_ms: int | None = None,
        ends_turn: bool = False,
    ) -> bool:
        """Give the lease back; with `ends_turn`, the same write records that the turn has ended.

        When `wakes` still is what the caller saw at its claim, `due_ms` becomes `retry_ms` (None:
        nothing is due any more). When somebody woke the thread meanwhile, `due_ms` becomes
        `now_ms`. In both cases `attempts` becomes 0, or one higher when `retry_ms` is given.

        Returns:
            True when nothing more is due now; False when there is more to do now, or the lease was
            lost.
        """
        ...


class InboxStore(Protocol):
    """People's messages, in the order of their `ts`."""

    async def add(self, message: Message) -> bool:
        """Keep a message. False (and nothing written) when its id is already known."""
        ...

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        """Messages that no turn has taken, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        """Make new messages the input of a turn; a message that was taken before stays as it is.

        Returns:
            Those of them that the turn has now, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...

    async def revise(self, message_id: str, text: str) -> Message | None:
        """Change the text of a message that no turn has taken; one that was taken stays as it is.

        Returns:
            The message as it is now; None when there is none.

        Raises:
            RecordFormatError: It cannot be read.
        """
        ...

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        """The input of a turn, oldest first.

        Raises:
            RecordFormatError: One cannot be read: nobody knows what was said.
        """
        ...


class ApprovalStore(Protocol):
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
        `storage.codec.VOTED` to those of `changed`, those of `storage.codec.RESTARTED`, too, if it
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
        `expires_ms > now_ms`. Sets all fields of `storage.codec.REBOUND` to those of `changed`,
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
        `expires_ms > now_ms`. Sets the fields of `storage.codec.ANNOTATED` to those of `changed`;
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
        lease: Lease | None = None,
    ) -> Approval | None:
        """Record what has become of the call that was approved, or answered.

        One conditional write: the approval is approved or answered, and its `run_json` still is
        `was`. Sets `run_json`, adds one to `revision`, and sets `due_ms` to `now_ms`; unsets
        `open`, too, if it `closes`. A lease is taken along where nobody has one, as by `claim`, and
        `due_ms` is its end then.

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

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Approval]:
        """Approvals with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def undelivered(self, *, reasons: frozenset[str], limit: int) -> Sequence[Approval]:
        """Approvals whose `undeliverable` is one of the reasons, the newest first."""
        ...

    async def redraw(self, approval_id: str, *, now_ms: int, newer_ts: str = "") -> bool:
        """Ask for the card to be drawn again, whatever it shows.

        Adds one to `revision`, and sets `due_ms` to `now_ms`, whoever holds the lease; and
        `newer_ts`, unless it is empty.

        Returns:
            False, and nothing written, when no approval has this id.
        """
        ...

    async def count_due(self, *, now_ms: int) -> int:
        """Count the approvals that `due` would give without a limit."""
        ...

    async def count_pending(self) -> int:
        """Count the approvals that nobody has decided yet."""
        ...

    async def claim(
        self, approval_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Approval | None:
        """Take the lease, as `ThreadStore.claim` does."""
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

    async def escalate(self, approval_id: str, *, fence: int, now_ms: int) -> Approval | None:
        """Let the backup people decide, too: once, and before anybody is told.

        One conditional write: the lease is held, the approval is pending, `escalate_ms <= now_ms`,
        and `expires_ms > now_ms`. Sets `escalated_ms` to `now_ms` and `escalate_ms` to None, and
        adds one to `revision`.

        Returns:
            The approval as escalated; None, and nothing written, otherwise.
        """
        ...

    async def climb(
        self, changed: Approval, *, revision: int, now_ms: int, redraws: bool
    ) -> Approval | None:
        """Record a step of the ladder: what is sent next, to whom, and who may decide, too.

        One conditional write, before anything is sent: the lease of `changed.fence` is held, the
        approval is pending, its `revision` still is the given one, and `expires_ms > now_ms`. Sets
        the fields of `storage.codec.CLIMBED` to those of `changed`, and adds one to `revision` if
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

    async def mark_escalation_told(
        self, approval_id: str, *, fence: int, digest: str, escalation_ts: str
    ) -> bool:
        """Record that the message to the backup people is posted.

        False, and nothing written, when the lease was lost, or the approval has another digest: an
        edit has others asked, who have not been told.
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


class PostStore(Protocol):
    """The agent's texts on their way into threads."""

    async def add(self, post: Post) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def add_or_get(self, post: Post) -> Post | None:
        """Insert, and return None; when the id exists, write nothing, and return what is stored."""
        ...

    async def get(self, post_id: str) -> Post | None:
        """Read one; None when there is none."""
        ...

    async def begin(self, post_id: str, *, ts: str) -> None:
        """Record that the message `ts` shows a part of the text."""
        ...

    async def finish(self, post_id: str, *, ts: str, text: str | None = None) -> None:
        """Record that the text stands in Slack, whole, as the message `ts`.

        Args:
            post_id: Of the post.
            ts: Of the message.
            text: The whole text, where the record was made when it began to grow.
        """
        ...

    async def fail(self, post_id: str, *, reason: str) -> None:
        """Record that the text will never stand in Slack, and why; never empty."""
        ...

    async def unfinished(self, thread_id: str) -> Sequence[Post]:
        """Posts of a thread that neither are finished nor have failed, oldest first.

        One that cannot be read is marked, and left out.
        """
        ...

    async def any_of(self, checkpoint_id: str) -> bool:
        """Whether its thread has a post whose id begins with `checkpoint_id` and a colon."""
        ...


class WhisperStore(Protocol):
    """Private answers on their way to people."""

    async def add(self, whisper: Whisper) -> bool:
        """Insert. False (and nothing written) when the id exists."""
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Whisper]:
        """Whispers with `due_ms <= now_ms` and no lease beyond `now_ms`, earliest first.

        Those that were set aside are not among them.
        """
        ...

    async def claim(
        self, whisper_id: str, *, owner: str, now_ms: int, until_ms: int
    ) -> Whisper | None:
        """Take the lease, as `ThreadStore.claim` does."""
        ...

    async def release(self, whisper_id: str, *, fence: int, due_ms: int | None) -> bool:
        """Give the lease back; None means that it was told, or never will be.

        Returns:
            False, and nothing is written, when the lease was lost.
        """
        ...


class AuditStore(Protocol):
    """The audit: a record of all that happened; append-only."""

    async def append(self, entry: AuditEntry) -> None:
        """Keep an entry; a second one with the same id is ignored."""
        ...

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        """Keep several, in one command; each as `append` does."""
        ...

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        """The first entries of a thread, oldest first (by `at_ms`, then `entry_id`).

        One that cannot be read is there as the action `unreadable`, with the reason.
        """
        ...


class Storage(Protocol):
    """One database with all its stores."""

    @property
    def threads(self) -> ThreadStore:
        """Threads."""
        ...

    @property
    def inbox(self) -> InboxStore:
        """People's messages."""
        ...

    @property
    def log(self) -> MessageLog:
        """The agents' message histories."""
        ...

    @property
    def checkpoints(self) -> AmendingStore:
        """Checkpoints and their journals."""
        ...

    @property
    def approvals(self) -> ApprovalStore:
        """Approvals."""
        ...

    @property
    def posts(self) -> PostStore:
        """The agents' texts."""
        ...

    @property
    def whispers(self) -> WhisperStore:
        """Private answers."""
        ...

    @property
    def delegations(self) -> DelegationStore:
        """Delegations and absences."""
        ...

    @property
    def people(self) -> PeopleStore:
        """Single people: their wishes, and what they were sent."""
        ...

    @property
    def grants(self) -> GrantStore:
        """Standing grants."""
        ...

    @property
    def lists(self) -> ListStore:
        """The lists that people are shown."""
        ...

    @property
    def audit(self) -> AuditStore:
        """The audit."""
        ...

    @property
    def trail(self) -> TrailStore:
        """The audit, as it is chained."""
        ...

    @property
    def retention(self) -> RetentionStore:
        """Deletes threads."""
        ...

    @property
    def restoring(self) -> RestoreStore:
        """Marks what a copy left unfinished."""
        ...

    async def open(self) -> None:
        """Connect, and create tables or indexes where they are missing; may be repeated.

        Raises:
            StoreUnavailableError: The server does not answer, or the file cannot be used.
            StoreBusyError: The data directory belongs to another process.
        """
        ...

    async def open_beside(self) -> None:
        """Open it beside those who have it, to change it.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be used.
            RecordFormatError: It was written by another release.
        """
        ...

    async def open_to_read(self) -> None:
        """Open it beside those who have it, and change nothing: no table, no index, no lease.

        Raises:
            StoreUnavailableError: There is no database, or it cannot be read.
            RecordFormatError: It was written by another release.
        """
        ...

    async def reconsider(self) -> None:
        """Look again at what this release has set aside: it may have been repaired since."""
        ...

    async def ping(self) -> None:
        """Ask for a sign of life, and make a small write.

        Raises:
            StoreUnavailableError: It does not answer, or takes no writes.
        """
        ...

    async def examine(self) -> Sequence[Remark]:
        """Try out what decisions rest on; for people, and slow. Leaves nothing behind.

        Raises:
            StoreUnavailableError: It does not answer, or refuses.
        """
        ...

    async def count_unreadable(self, *, now_ms: int) -> int:
        """Count the due threads, approvals and whispers that this release cannot read."""
        ...

    async def unreadable(self, *, limit: int) -> Sequence[Unreadable]:
        """Name what cannot be read of what has yet to be done; for people, and slow."""
        ...

    async def close(self) -> None:
        """Close connections and locks; may be repeated."""
        ...
