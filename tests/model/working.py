"""A small world of processes that work on one approval, and may die between any two writes.

A process claims the due approval, posts or updates its card, wakes the thread of a decision, and
gives the approval back. The thread starts the approved call and closes the approval. Meanwhile Ada
decides, Rosa adds words, and the deadline comes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from bot.approvals import changes, execution
from bot.approvals.execution import has_ended
from bot.records.approval import CARD, Approval, Decision, ExecutionState, RequesterMessage, Status
from tests.model.voting import ADA, EXPIRES_MS, START_MS, asked, body_of, the_terms

TS = "1700000000.000200"
"""The place of the card in Slack."""
STARTS, DRAWS, TELLS, RELEASES = "starts", "draws the card", "tells the thread", "releases it"


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What one process knows while it holds the lease.

    Attributes:
        held: The approval as it was claimed.
        step: What it does next.
        is_first: Whether it is the first that tries to post the card: it looks for no other.
    """

    held: Approval
    step: str = STARTS
    is_first: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkingWorld:
    """The stored approval, Slack, the thread, and the moves that are left.

    Attributes:
        approval: As it is stored.
        now_ms: The time.
        worker: The process that holds the lease; None while nobody does.
        deaths: How often a process may still die.
        decides: Whether Ada may still decide.
        words: How often Rosa may still add words.
        posts: How many cards stand in Slack.
        shown: What the card shows.
        is_woken: Whether the thread has work.
        is_started: Whether the start of the call is in the journal.
        has_run: Whether the call ran.
        ended: The first final state of the call that people were told; empty before.
    """

    approval: Approval
    now_ms: int = START_MS
    worker: Worker | None = None
    deaths: int = 2
    decides: bool = True
    words: int = 1
    posts: int = 0
    shown: int = 0
    is_woken: bool = False
    is_started: bool = False
    has_run: bool = False
    ended: str = ""

    def key(self) -> Hashable:
        """Return what tells this world from others."""
        approval, worker = self.approval, self.worker
        held = None if worker is None else (body_of(worker.held), worker.step, worker.is_first)
        rest = replace(self, approval=START, worker=None)
        return (
            body_of(approval),
            approval.due_ms,
            approval.fence,
            held,
            tuple(vars(rest).values())[1:],
        )

    def wrong(self) -> str:
        """Return which invariant does not hold; empty when all hold."""
        approval = self.approval
        faults = {
            "the card was posted twice": self.posts > 1,
            "a call ran that nobody approved": self.has_run
            and approval.status is not Status.APPROVED,
            "the end of a call was changed": self.ended not in {"", approval.execution.state},
        }
        fault = next((what for what, is_so in faults.items() if is_so), "")
        return fault or ("" if self._is_in_work() else self._left_undone())

    def _is_in_work(self) -> bool:
        due_ms = self.approval.due_ms
        is_due = due_ms is not None and due_ms <= self.now_ms
        return is_due or self.is_woken or self.worker is not None

    def _left_undone(self) -> str:
        """Return what nobody is about to do."""
        approval = self.approval
        is_pending = approval.status is Status.PENDING
        faults = {
            "nobody waits for the deadline": is_pending and approval.due_ms is None,
            "the thread was not told the decision": not is_pending and approval.open,
            "the card shows an old state": self.shown != approval.shown_revision,
        }
        return next((what for what, is_so in faults.items() if is_so), "")


START = asked(the_terms(1))


def moves(world: WorkingWorld) -> Iterator[tuple[str, WorkingWorld]]:
    """Return all that can happen next."""
    approval = world.approval
    if world.words:
        said = (RequesterMessage(by="UROSA", text="please", at_ms=world.now_ms),)
        new = changes.with_messages(
            approval, said, revision=approval.shown_revision, now_ms=world.now_ms
        )
        yield "Rosa adds words", replace(world, words=0, approval=new or approval)
    if world.decides:
        for status in (Status.APPROVED, Status.REJECTED):
            decision = Decision(status=status, by=ADA, at_ms=world.now_ms, digest=approval.digest)
            new = changes.decided(approval, decision, digest=approval.digest)
            yield f"Ada: {status}", replace(world, decides=False, approval=new or approval)
    if world.now_ms < EXPIRES_MS:
        yield "time passes to the deadline", replace(world, now_ms=EXPIRES_MS)
    yield from _work(world)
    if world.is_woken:
        yield from _resume(world)


def _work(world: WorkingWorld) -> Iterator[tuple[str, WorkingWorld]]:
    approval, worker = world.approval, world.worker
    if worker is None:
        if approval.due_ms is not None and approval.due_ms <= world.now_ms:
            held = approval.changed(fence=approval.fence + 1)
            yield "a process claims it", replace(world, approval=held, worker=Worker(held=held))
        return
    if world.deaths:
        # The lease ends, and the approval is due again.
        free = approval.changed(due_ms=world.now_ms)
        yield (
            "the process dies",
            replace(world, approval=free, worker=None, deaths=world.deaths - 1),
        )
    step = {STARTS: _start, DRAWS: _draw, TELLS: _tell, RELEASES: _release}[worker.step]
    yield f"the process {worker.step}", step(world, worker)


def _start(world: WorkingWorld, worker: Worker) -> WorkingWorld:
    """Expire what is over; store the intent before the first post."""
    approval, held = world.approval, worker.held
    if held.status is Status.PENDING and world.now_ms >= held.expires_ms:
        decision = Decision(status=Status.EXPIRED, by="", at_ms=world.now_ms)
        approval = held = changes.decided(approval, decision, digest=held.digest) or approval
    if held.message(CARD) is None:
        approval, worker = approval.with_message(held.thread_card), replace(worker, is_first=True)
    return replace(world, approval=approval, worker=replace(worker, held=held, step=DRAWS))


def _draw(world: WorkingWorld, worker: Worker) -> WorkingWorld:
    """Post the card or update it; whoever is not the first looks for it in Slack first."""
    held = worker.held
    is_new = not held.thread_card.ts and (worker.is_first or not world.posts)
    return replace(
        world,
        posts=world.posts + is_new,
        shown=held.shown_revision,
        worker=replace(worker, step=TELLS),
    )


def _tell(world: WorkingWorld, worker: Worker) -> WorkingWorld:
    """Wake the thread of a decision that it has not been told."""
    held = worker.held
    is_news = held.status is not Status.PENDING and held.open
    return replace(world, is_woken=world.is_woken or is_news, worker=replace(worker, step=RELEASES))


def _release(world: WorkingWorld, worker: Worker) -> WorkingWorld:
    held = worker.held
    new = changes.released(
        world.approval,
        revision=held.shown_revision,
        due_ms=held.expires_ms if held.status is Status.PENDING else None,
        now_ms=world.now_ms,
        shows=held.shown_revision,
        places={CARD: held.thread_card.changed(ts=TS)},
    )
    return replace(world, approval=new, worker=None)


def _resume(world: WorkingWorld) -> Iterator[tuple[str, WorkingWorld]]:
    """The thread's turn: start, run, tell the end, close. It may stop after any of them."""
    approval = world.approval
    if not execution.has_yes(approval):
        yield "the thread goes on", _close(world)
    elif not world.is_started and not has_ended(approval):
        yield from _begin(world)
    elif not has_ended(approval):
        yield "the call ends", _ended(world, ExecutionState.ENDED)
    else:
        # Somebody who read the approval before the call ended tells it late.
        yield "an old end is told late", _ended(world, ExecutionState.FAILED)
        yield "the thread goes on", _close(world)


def _begin(world: WorkingWorld) -> Iterator[tuple[str, WorkingWorld]]:
    """The start: on the approval first, then in the journal, then the tool."""
    approval = world.approval
    if approval.execution.state is ExecutionState.STARTED:
        yield "the call starts", replace(world, is_started=True, has_run=True)
    facts = execution.StartFacts(now_ms=START_MS, runner="process")
    begun = execution.started(approval, facts)
    if begun is not None and begun != approval:
        yield "the approval says that the call starts", replace(world, approval=begun)
    yield "the start is refused", _ended(world, ExecutionState.LAPSED)


def _ended(world: WorkingWorld, state: ExecutionState) -> WorkingWorld:
    new = execution.with_outcome(world.approval, state, fence=0, now_ms=START_MS)
    if new is None:
        return world
    return replace(world, approval=new, ended=world.ended or str(state))


def _close(world: WorkingWorld) -> WorkingWorld:
    return replace(world, is_woken=False, approval=changes.closed(world.approval) or world.approval)
