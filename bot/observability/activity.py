"""The events of the bot's work, one typed method each; counts, times and spans come from here.

What is written twice after a crash is told once, where a conditional write says that it was the
first. Times from a decision to what follows are seen when both happen in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Literal

from cachetools import LRUCache

from bot.observability.telemetry import Count, Telemetry, Time
from storage.records import Approval, Decision, Kind, Message, Status, Thread

_MOST = 10_000
"""The most decisions, and leases that ended, that are remembered at a time."""

Step = Literal["checkpoint", "resume", "end"]
"""A step of a run that its checkpoint shows."""


class Activity:
    """Makes counts, times and spans of events.

    Args:
        telemetry: Takes them.
        clock: The time now, in milliseconds since the epoch.
    """

    def __init__(self, telemetry: Telemetry, clock: Callable[[], int]) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._decided: LRUCache[str, Approval] = LRUCache(_MOST)
        self._undrawn: LRUCache[str, Approval] = LRUCache(_MOST)
        self._ended: LRUCache[str, int] = LRUCache(_MOST)

    def keeping(self, message: Message) -> AbstractContextManager[None]:
        """Mark the step in which a person's message is kept."""
        return self._telemetry.span("message", message.thread_id, message=message.message_id)

    def kept(self, *, is_new: bool) -> None:
        """A person's message is on record."""
        self._telemetry.count(Count.MESSAGES, result="kept" if is_new else "known")

    @contextmanager
    def asking(self, approvals: Sequence[Approval]) -> Iterator[None]:
        """Mark the step in which people are asked."""
        with ExitStack() as spans:
            for approval in approvals:
                spans.enter_context(self._span("ask", approval))
            yield

    def asked(self, approval: Approval) -> None:
        """A new approval is on record."""
        self._telemetry.count(Count.REQUESTED, kind=str(approval.kind))
        if approval.kind is Kind.DOUBT:
            self._telemetry.count(Count.IN_DOUBT)

    def escalated(self, approval: Approval) -> None:
        """The backup people may decide, too."""
        with self._span("escalate", approval):
            self._telemetry.count(Count.ESCALATED, kind=str(approval.kind))

    def decided(self, approval: Approval, decision: Decision) -> None:
        """An approval is no longer pending."""
        with self._span("decide", approval):
            self._telemetry.count(Count.DECIDED, outcome=str(approval.status))
        if approval.status is not Status.EXPIRED:
            waited = (decision.at_ms - approval.created_ms) / 1000
            self._telemetry.observe(Time.DECISION, waited, kind=str(approval.kind))
            self._decided[approval.approval_id] = approval
            self._undrawn[approval.approval_id] = approval

    def drawn(self, approval_id: str, revision: int) -> None:
        """A card shows this revision of its record."""
        decided: Approval | None = self._undrawn.get(approval_id)
        if decided is not None and revision >= decided.revision:
            self._undrawn.pop(approval_id)  # what is drawn later is what became of it
            with self._span("redraw", decided):
                self._telemetry.observe(Time.REDRAW, self._since(decided))

    def closed(self, approval_id: str) -> None:
        """The agent has gone on from a decision."""
        decided: Approval | None = self._decided.get(approval_id)
        if decided is not None:
            self._telemetry.observe(Time.RESUME, self._since(decided))

    def refused(self) -> None:
        """Somebody who may not decide has tried to."""
        self._telemetry.count(Count.REFUSED_CLICKS)

    def turn_ended(self) -> None:
        """A turn of an agent is over."""
        self._telemetry.count(Count.TURNS)

    def run_step(self, step: Step, checkpoint_id: str) -> AbstractContextManager[None]:
        """Mark a step of a run, while its checkpoint is written."""
        thread_id, _, turn = checkpoint_id.rpartition("#")
        return self._telemetry.span(step, thread_id, turn=turn)

    def due(self, record: Thread | Approval) -> None:
        """Work is due; if its record has a lease, that ended unreleased."""
        if record.leased_by:
            self._ended[_id_of(record)] = record.fence

    def claimed(self, record: Thread | Approval) -> None:
        """This process has the lease of a record."""
        if self._ended.pop(_id_of(record), None) == record.fence - 1:
            kind = "approval" if isinstance(record, Approval) else "thread"
            self._telemetry.count(Count.TAKEOVERS, record=kind)

    def failed(self, record: Literal["thread", "approval"]) -> None:
        """Work has failed, and is due again."""
        self._telemetry.count(Count.RETRIES, record=record)

    def _span(self, name: str, approval: Approval) -> AbstractContextManager[None]:
        return self._telemetry.span(
            name,
            approval.thread_id,
            approval=approval.approval_id,
            interrupt=approval.interrupt_id,
            turn=approval.checkpoint_id.rpartition("#")[2],
        )

    def _since(self, approval: Approval) -> float:
        decision = approval.decision
        return (self._clock() - decision.at_ms) / 1000 if decision is not None else 0.0


def _id_of(record: Thread | Approval) -> str:
    return record.approval_id if isinstance(record, Approval) else record.thread_id
