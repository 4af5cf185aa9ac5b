"""Process due approvals: update messages, remind, escalate, expire.

Each step is idempotent, and the scheduler repeats steps that a crash prevented.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from cachetools import LRUCache

from bot.approvals.changes import (
    claim_ended,
    decided,
    redrawn,
    released,
    with_requester_gone,
)
from bot.approvals.due.agent_answers import EXPLAIN_AGAIN, AgentAnswers, BackQuestions
from bot.approvals.due.approval_pass import ApprovalPass, write_held
from bot.approvals.due.batch_cards import Debouncer, SharedCards, together
from bot.approvals.due.card_updates import Drawing
from bot.approvals.due.escalation import EscalationPlanner
from bot.approvals.due.messages import Alarming, Messages, NoAlarm, TermsSteps
from bot.approvals.due.out_of_office import (
    LOOK_AGAIN,
    Absences,
    QuorumMonitor,
    waiting_for_people,
)
from bot.approvals.due.quiet_hours import DoNotDisturb, NeverQuiet
from bot.approvals.due.thread_reactions import SHARED, WAITS, ThreadReactions
from bot.approvals.execution import can_take_back, execution_of, lets_run
from bot.audit.entries import (
    act_entries,
    decision_entries,
    note_decision,
    note_request,
    vote_entries,
)
from bot.clock import milliseconds
from bot.errors import REFUSALS, DeliveryError, DirectoryError
from bot.leases import (
    ATTENDANCE,
    CARD_RETRY,
    LEASE,
    ClaimedWork,
)
from bot.observability.events import about
from bot.people.lookup import LookupOnce, left_by_requester
from bot.people.quorum import QuorumCheck
from bot.people.recipients import Audience
from bot.ports.notifier import BatchCards, Notifier
from bot.ports.people import Directory
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.ports.process import Clock
from bot.ports.programs import ProgramCalls
from bot.records.approval import Approval, ApprovalMessage, Decision, Kind, Status
from bot.records.approval_queries import START, newest_of, undelivered, waiting
from bot.records.origin import AgentRun, ProgramCall
from bot.records.program_events import is_settled
from bot.stores import Stores
from storage.documents import Place, update, update_or_none

logger = logging.getLogger(__name__)

RESULT_PATIENCE_S = 0.15
"""Seconds to wait for an approved call's result, so the card is updated once."""
MOST_AT_ONCE = 500
"""Maximum number of cards to update when Slack accepts the app again."""
_REMEMBERED = 1_000
"""Number of decisions whose threads this process remembers as woken."""


_PAGE = 100
_LOOKED_BACK = 50
"""Number of a thread's newest requests among which a replaced one is searched."""


def replaced_by(newer: Approval, known: Sequence[Approval]) -> Approval | None:
    """Return the newest cancelled request of the same call, which a new one replaces."""
    same = (
        approval
        for approval in known
        if approval.status is Status.SUPERSEDED
        and (approval.address, approval.kind) == (newer.address, newer.kind)
        and approval.created_ms <= newer.created_ms
        and not approval.newer_ts
    )
    return next(same, None)


def _nothing() -> None:
    """Do nothing."""


async def _no_grant(_: Approval) -> int | None:
    """Return None: there are no grants."""
    return None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a pass.

    Attributes:
        seen: The record as last read.
        due_ms: When the approval is due next, or None.
        failed: Whether it is due because of an error.
        sign: The thread's reaction, if not stored yet.
    """

    seen: Approval
    due_ms: int | None
    failed: bool = False
    sign: str | None = None


@dataclass(slots=True)
class _RunningPass:
    """A running pass of this process.

    Attributes:
        is_wanted: Whether another pass was requested that no release has seen.
        card_owners: Ids of approvals whose batch cards must be updated afterwards.
        over: Set at the end.
    """

    is_wanted: bool = False
    card_owners: set[str] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class ApprovalWorker:
    """Processes due approvals, one process per approval.

    Args:
        storage: The database.
        directory: Looks people up, to check feasibility.
        notifier: Sends messages.
        clock: The time now.
        owner: Name of this process in leases.
        wake: Starts the work of a thread in this process, without waiting for it.
        policy: The policy in force.
        alarm: Sends break-glass alerts.
        signs: Updates reactions of threads; None for no reactions.
        batches: Displays several approvals on one card; None for separate cards.
        visited: Called when an approval may have changed.
        pause: Waits for some seconds.
        consideration: Notification preferences and quiet hours.
        answers: Lets agents answer questions; None if no agent can be asked.
        grant: Creates the missing grant of an approval; returns when to retry, or None.
        programs: Takes what becomes of requests of programs; None without a door for them.
    """

    storage: Stores
    directory: Directory
    notifier: Notifier
    clock: Clock
    owner: str
    wake: Callable[[str], None]
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    alarm: Alarming = field(default_factory=NoAlarm)
    signs: ThreadReactions | None = None
    batches: BatchCards | None = None
    visited: Callable[[], None] = _nothing
    consideration: DoNotDisturb = field(default_factory=NeverQuiet)
    answers: AgentAnswers | None = None
    grant: Callable[[Approval], Awaitable[int | None]] = _no_grant
    programs: ProgramCalls | None = None
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _running: dict[str, _RunningPass] = field(default_factory=dict)
    _gathering: Debouncer = field(default_factory=Debouncer)
    _announced: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_REMEMBERED))
    _quorum_monitor: QuorumMonitor = field(default_factory=QuorumMonitor)

    @property
    def _drawing(self) -> Drawing:
        stores = self.storage.approvals, self.storage.audit
        return Drawing(*stores, self.notifier, self.clock, self.shared)

    @property
    def shared(self) -> SharedCards | None:
        """Batch cards; None if each approval has its own card."""
        if self.batches is None:
            return None
        return SharedCards(self.storage.approvals, self.batches, self.clock, self._want_drawn)

    async def _want_drawn(self, batch_id: str) -> None:
        """Store that a batch card must be updated; one write for several requests."""

        async def redraw() -> None:
            await self._redraw(batch_id)

        await self._gathering.write(batch_id, redraw)

    def together(self, approvals: Sequence[Approval]) -> list[Approval]:
        """Assign new approvals of one turn to batch cards, before they are stored."""
        return [*approvals] if self.batches is None else together(approvals, self.batches.takes)

    def planner(self, directory: Directory | None = None) -> EscalationPlanner:
        """Return the planner of reminders and escalation.

        Args:
            directory: Looks people up; None for the default directory.
        """
        where = directory or self.directory
        absences = Absences(self.storage.delegations, self.clock)
        audience = Audience(
            directory=where,
            clock=self.clock,
            policy=self.policy,
            away=absences.away,
        )
        stores = self.storage.approvals, self.storage.audit
        return EscalationPlanner(
            *stores, audience, self.clock, self.consideration, absences.next_ms
        )

    def _steps(self, directory: Directory) -> TermsSteps:
        """Return the reminders and the escalation."""
        return TermsSteps(self.planner(directory), self._messages, self.clock)

    @property
    def _messages(self) -> Messages:
        stores = self.storage.approvals, self.storage.audit
        return Messages(*stores, self.notifier, self.clock, self.alarm, self.shared)

    @property
    def _questions(self) -> BackQuestions:
        return BackQuestions(self.storage.approvals, self.notifier)

    def leased_here(self, approval: Approval, *, is_shared: bool = False) -> Approval:
        """Return a new, unstored approval that this process already holds the lease of.

        No claim is needed. If this process crashes, the card is searched for before it is posted.

        Args:
            approval: The record.
            is_shared: Whether another process may be working on its thread.
        """
        until_ms = self.clock() + milliseconds(LEASE)
        if not approval.is_batched:
            approval = approval.with_message(approval.thread_card)
        return approval.changed(
            leased_by=self.owner,
            leased_until_ms=until_ms,
            due_ms=until_ms,
            fence=1,
            sign="" if self.signs is None else SHARED if is_shared else WAITS,
        )

    async def request(self, approvals: Sequence[Approval]) -> None:
        """Show the cards of new approvals, in order; they and their requests are stored.

        Raises:
            StoreUnavailableError: The leases expire, and the approvals are due again.
        """
        for approval in approvals:
            await self._show(approval)
            if approval.asked_again:
                await self._lead_on(approval)

    async def _show(self, approval: Approval) -> None:
        """Show the card of a new approval, under the lease that it was created with."""
        hold = self._work.already_claimed(approval)
        if hold is None:
            await self._give_back(approval)
            await self.attend(approval.approval_id)
            return
        worker_pass = ApprovalPass(hold=hold, is_born=True)
        if not await self._attend_and_release(worker_pass):
            await self.attend(approval.approval_id)
        for name in worker_pass.card_owners:
            await self.attend(name)

    async def _lead_on(self, newer: Approval) -> None:
        """Link the card of a replaced request to the new card, once that is posted."""
        store = self.storage.approvals
        card_ts = (await store.get(newer.approval_id)).thread_card.ts
        older = replaced_by(newer, await newest_of(store, newer.thread_id, limit=_LOOKED_BACK))
        if older is not None and card_ts:
            await self._redraw(older.approval_id, newer_ts=card_ts)
            await self.attend(older.approval_id)

    async def tell_thread(self, approval: Approval) -> None:
        """Store a decision and wake its thread; see `tell_threads`."""
        await self.tell_threads([approval])

    async def tell_threads(self, approvals: Sequence[Approval]) -> None:
        """Store decisions and wake their threads, each thread once."""
        for thread_id in dict.fromkeys(approval.thread_id for approval in approvals):
            decided = [approval for approval in approvals if approval.thread_id == thread_id]
            entries = [
                decision_entries(approval, approval.decision)
                for approval in decided
                if approval.decision
            ]
            runs = any(isinstance(approval.asker, AgentRun) for approval in decided)
            # In any order: a run that goes on records the decisions, too, before it uses them.
            await asyncio.gather(
                self.storage.audit.append(*chain.from_iterable(entries)),
                *([self.storage.threads.wake(thread_id, now_ms=self.clock())] if runs else []),
            )
            for approval in decided:
                await self.alert(approval)
                if self.programs is not None and isinstance(approval.asker, ProgramCall):
                    await self.programs.close_request(approval)
                if approval.decision is not None:
                    self._announced[approval.approval_id] = approval.decision.at_ms
            if runs:  # a program looks itself
                self.wake(thread_id)

    def saw(self, thread_id: str, approvals: Sequence[Approval]) -> None:
        """Take the open approvals of a thread as just read."""
        if self.signs is not None:
            self.signs.saw(
                thread_id, {approval.approval_id: approval.status for approval in approvals}
            )

    def has_told(self, approval: Approval) -> bool:
        """Whether this process has stored a decision in the audit, and woken the thread for it."""
        decision = approval.decision
        return decision is not None and self._announced.get(approval.approval_id) == decision.at_ms

    def _knows(self, approval: Approval, worker_pass: ApprovalPass) -> bool:
        """Whether the thread was woken for the decision; once per process suffices.

        A run that has started the call knows of the decision. A program's request may be open then.
        """
        has_begun = isinstance(approval.asker, AgentRun) and execution_of(approval) is not None
        return has_begun or self.has_told(approval) or worker_pass.knows(approval)

    async def alert(self, approval: Approval) -> None:
        """Send the alerts of a break-glass decision, once per process."""
        if approval.decision is not None and approval.decision.emergency:
            await self.alarm(approval)

    async def note_votes(self, approval: Approval) -> None:
        """Record current votes that are not in the audit yet."""
        entries = vote_entries(approval)
        if entries:
            await self.storage.audit.append(*entries)

    async def redraw(self, approval_id: str) -> None:
        """Update a card again, even if it seems current."""
        if await self._redraw(approval_id) is not None:
            await self.attend(approval_id)

    async def _redraw(self, approval_id: str, *, newer_ts: str = "") -> Approval | None:
        """Store that a card must be updated; None if the approval was deleted."""
        write = partial(redrawn, now_ms=self.clock(), newer_ts=newer_ts)
        store = self.storage.approvals
        return await update_or_none(store, approval_id, write, writes_due=True)

    async def look_soon(self, approval: Approval) -> None:
        """Schedule a feasibility check after a refused vote, limited in frequency."""
        now = self.clock()
        if self._quorum_monitor.asks(approval, now):
            await self._redraw(approval.approval_id)

    async def look_who_is_left(self, team_id: str) -> None:
        """Re-check pending approvals after an absence or the end of a delegation.

        Raises:
            StoreUnavailableError: Checked approvals are due; the others follow on schedule.
        """
        async for approval in waiting_for_people(self.storage, team_id):
            await self.redraw(approval.approval_id)

    async def look_who_asked(self, user_id: str) -> None:
        """Show on pending cards that their requester left, or is back; a failed look-up skips one.

        Raises:
            StoreUnavailableError: The next escalation step of each card looks again.
        """
        store, look = self.storage.approvals, LookupOnce(self.directory)
        place: Place | None = START
        while place:
            asked, place = await waiting(
                store, now_ms=self.clock(), limit=_PAGE, after=place, asked_by=user_id
            )
            for approval in asked:
                write = await self._requester_now(approval, look)
                if write and await update_or_none(
                    store, approval.approval_id, write, writes_due=True
                ):
                    await self.attend(approval.approval_id)

    async def _requester_now(
        self, approval: Approval, look: Directory
    ) -> Callable[[Approval], Approval | None] | None:
        """Return the change that says what the requester has left; None if none, or unknown."""
        try:
            gone = await left_by_requester(look, approval)
        except DirectoryError:
            return None
        write = partial(with_requester_gone, gone=gone, now_ms=self.clock())
        return None if write(approval) is None else write

    async def catch_up(self) -> None:
        """Update the cards that failed because Slack had refused the app.

        Raises:
            StoreUnavailableError: Each of them is due again on schedule.
        """
        waiting = await undelivered(self.storage.approvals, reasons=REFUSALS, limit=MOST_AT_ONCE)
        for approval in waiting:
            await self.redraw(approval.approval_id)

    async def attend_decided(self, approval: Approval) -> None:
        """Process a vote or a decision that the audit and the thread know.

        A result that is available at once is drawn together with the decision.
        """
        if lets_run(approval):
            await self.pause(RESULT_PATIENCE_S)
            newest = self.storage.approvals.known.get(approval.approval_id)
            if newest is not None and newest.due_ms is None:
                return  # this process has drawn the result, and nothing is due any more
        await self.attend(approval.approval_id, announced=approval)

    async def attend(self, approval_id: str, *, announced: Approval | None = None) -> None:
        """Process one approval if it is due, unless another process owns it.

        Within this process, one pass runs at a time. Later callers wait for it; their changes are
        seen by its release, or trigger another pass.

        Args:
            approval_id: The approval.
            announced: See `ApprovalPass.announced`. The claimed approval may have votes and a
                decision of others.

        Raises:
            StoreUnavailableError: The lease expires, and the approval is due again.
        """
        running_pass = self._running.get(approval_id)
        if running_pass is not None:
            running_pass.is_wanted = True
            await running_pass.over.wait()
            return
        running_pass = self._running[approval_id] = _RunningPass(is_wanted=True)
        try:
            while running_pass.is_wanted:
                running_pass.is_wanted = False
                await self._work.do(
                    approval_id,
                    lambda hold: self._attend_and_release(
                        ApprovalPass(
                            hold=hold, announced=announced, card_owners=running_pass.card_owners
                        ),
                        running_pass,
                    ),
                )
        finally:
            del self._running[approval_id]
            running_pass.over.set()
        for name in running_pass.card_owners - {approval_id}:
            await self._attend_together(name)

    async def _attend_together(self, batch_id: str) -> None:
        """Update a batch card again: the first change at once, later ones combined.

        The card is stored as due, so callers need not wait.
        """
        if await self._gathering.wait(batch_id, self.clock, self.pause):
            await self.attend(batch_id)

    @property
    def _work(self) -> ClaimedWork[Approval]:
        return ClaimedWork(
            claim=self.storage.approvals.claim,
            owner=self.owner,
            clock=self.clock,
            attendance=ATTENDANCE,
        )

    async def _give_back(self, approval: Approval) -> None:
        """Release a lease of a new approval that is too short to use."""
        now = self.clock()
        write = partial(released, revision=approval.shown_revision, due_ms=now, now_ms=now)
        await self._release(approval, write)

    async def _release(
        self, held: Approval, write: Callable[[Approval], Approval]
    ) -> Approval | None:
        """Release a lease; return the approval, or None if the lease was lost."""
        return await update_or_none(
            self.storage.approvals,
            held.approval_id,
            write,
            fence=held.fence,
            writes_due=True,
            releases=True,
        )

    async def _attend_and_release(
        self, worker_pass: ApprovalPass, running_pass: _RunningPass | None = None
    ) -> bool:
        """Do the due work under a lease and release it; return whether nothing is due."""
        approval = worker_pass.hold.record
        with about(
            thread_id=approval.thread_id,
            approval_id=approval.approval_id,
            interrupt_id=approval.interrupt_id,
        ):
            outcome = await self._attend_in_time(worker_pass)
            await self._hand_over(outcome.seen, worker_pass)
        if running_pass is not None:
            running_pass.is_wanted = False  # later changes are seen by the release
        revision = outcome.seen.shown_revision
        write = partial(
            released,
            revision=revision,
            due_ms=outcome.due_ms,
            now_ms=self.clock(),
            failed=outcome.failed,
            shows=worker_pass.shows,
            places=worker_pass.places,
            sign=outcome.sign,
            recorded=worker_pass.recorded,
            handed=worker_pass.handed,
        )
        stored = await self._release(approval, write)
        self.visited()
        if stored is None:
            await self._make_good(approval, worker_pass)
        return stored is not None and stored.shown_revision == revision

    async def _make_good(self, approval: Approval, worker_pass: ApprovalPass) -> None:
        """Repair the messages after this process lost its lease: others may have shown them.

        Requests sent by this process may have arrived later, so the card is updated once more. A
        message that both have posted is removed: the record does not know it.
        """
        newest = await self._redraw(approval.approval_id)
        if newest is None:
            return
        for ours in filter(None, worker_pass.places.values()):
            theirs = newest.message(ours.key)
            if theirs is not None and theirs.is_posted and theirs.ts != ours.ts:
                await self._remove(approval, ours)

    async def _remove(self, approval: Approval, message: ApprovalMessage) -> None:
        """Remove a message that was posted twice; ignore Slack's refusal."""
        try:
            await self.notifier.remove(approval, message)
        except DeliveryError as error:
            logger.warning(
                "could not remove a message that was posted twice, it stays: %s",
                error,
                extra={"action": "removal_failed"},
            )

    async def _attend_in_time(self, worker_pass: ApprovalPass) -> _Outcome:
        try:
            async with asyncio.timeout_at(worker_pass.hold.deadline):
                approval = worker_pass.hold.record
                await self._record(approval, worker_pass)
                if is_settled(approval):
                    return _Outcome(approval, None)
                return await self._attend_claimed(approval, worker_pass)
        except TimeoutError:
            return self._later(
                worker_pass.hold.record, DeliveryError("attend", "no answer in time")
            )

    async def _attend_claimed(self, approval: Approval, worker_pass: ApprovalPass) -> _Outcome:
        """Process the record as claimed; what happened before is recorded."""
        now, look = self.clock(), LookupOnce(self.directory)
        if approval.status is Status.PENDING and now >= approval.expires_ms:
            approval = await self._expire(approval, now)
        if self.programs is not None:
            approval = await self.programs.overdue(approval)
        approval = await self._end_claim(approval, now)
        steps = self._steps(look)
        approval = await steps.step(approval, worker_pass, now)
        if approval.status is Status.PENDING:
            approval = await self._look_ahead(approval, worker_pass, look)
        elif approval.open and not self._knows(approval, worker_pass):
            await self.tell_thread(approval)
        approval = await self._messages.keep_untold(approval)
        try:
            approval = await self._draw(approval, worker_pass)
            approval = await self._ask(approval)
            due_ms = await steps.update_messages(approval, worker_pass)
            if due_ms is not None:
                due_ms = min(due_ms, *_changes_by_itself(approval, now))
            if self.programs is not None:
                due_ms = _earliest(due_ms, self.programs.due_ms(approval))
            return await self._with_sign(_Outcome(approval, due_ms), worker_pass)
        except DeliveryError as error:
            return self._later(approval, error)

    async def _draw(self, approval: Approval, worker_pass: ApprovalPass) -> Approval:
        """Update the cards, below the first message of a program's group."""
        if self.programs is not None:
            approval = await self.programs.placed(approval)
        return await self._drawing.draw(approval, worker_pass)

    async def _ask(self, approval: Approval) -> Approval:
        """Post new questions; then ask the agent its questions."""
        approval = await self._questions.post(approval)
        if self.answers is not None:
            self.answers.ask_agent(approval)
        return approval

    async def _end_claim(self, approval: Approval, now: int) -> Approval:
        """End an expired claim, so the card shows it no longer."""
        write = partial(claim_ended, now_ms=now)
        if write(approval) is None:
            return approval
        return await write_held(self.storage.approvals, approval, write) or approval

    async def _with_sign(self, outcome: _Outcome, worker_pass: ApprovalPass) -> _Outcome:
        """Update the thread's reaction, as the last step."""
        outcome = replace(outcome, due_ms=_earliest(outcome.due_ms, worker_pass.again_ms))
        if self.signs is None or isinstance(outcome.seen.asker, ProgramCall):
            return outcome
        sign, again_ms = await self.signs.update_reaction(outcome.seen, worker_pass)
        return replace(outcome, sign=sign, due_ms=_earliest(outcome.due_ms, again_ms))

    async def _record(self, approval: Approval, worker_pass: ApprovalPass) -> None:
        """Record actions of people, and what a crash prevented: the request, votes, a grant.

        Events go to the queues of a program's endpoints here: Slack may be slow.
        """
        if approval.card.revision == 0 and not worker_pass.is_born:
            await note_request(self.storage.audit, approval)
            if approval.decision is not None and not approval.open:  # a rule decided it at once
                await note_decision(self.storage.audit, approval, approval.decision)
        is_noted = (
            worker_pass.announced is not None and worker_pass.announced.votes == approval.votes
        )
        if (approval.status is Status.PENDING or can_take_back(approval)) and not is_noted:
            await self.note_votes(approval)
        if approval.acts:
            await self.storage.audit.append(*act_entries(approval))
            worker_pass.recorded = approval.acts
        worker_pass.again_ms = await self.grant(approval)
        await self._hand_over(approval, worker_pass)

    async def _hand_over(self, approval: Approval, worker_pass: ApprovalPass) -> None:
        """Give events that are new in this pass to the queues of a program's endpoints."""
        if self.programs is not None and set(approval.events) - set(worker_pass.handed):
            await self.programs.hand_over(approval)
            worker_pass.handed = (*worker_pass.handed, *approval.events)

    async def _look_ahead(
        self, approval: Approval, worker_pass: ApprovalPass, look: Directory
    ) -> Approval:
        """Check whether the approval can be decided, and whether its requester is there.

        See `QuorumMonitor`.
        """
        quorum_check = QuorumCheck(look, policy=self.policy, clock=self.clock)
        store, is_step = self.storage.approvals, worker_pass.is_step
        approval = await self._quorum_monitor.note_obstacle(
            approval, store, quorum_check, is_step=is_step
        )
        asks_vote = is_step and approval.kind is not Kind.QUESTION
        write = await self._requester_now(approval, look) if asks_vote else None
        return (await write_held(store, approval, write) if write else None) or approval

    def _later(self, approval: Approval, error: DeliveryError) -> _Outcome:
        """Schedule a retry after a failure; escalation and expiry are never delayed."""
        is_late = error.retry_after is not None  # only rate-limited
        if is_late:
            logger.debug(
                "card update waits its turn: %s",
                error,
                extra={"action": "card_failed", "approval_id": approval.approval_id},
            )
        else:
            logger.warning(
                "card update failed, will retry: %s",
                error,
                extra={"action": "card_failed", "approval_id": approval.approval_id},
            )
        wait_ms = CARD_RETRY.wait_ms(approval.attempts, approval.approval_id, error.retry_after)
        due_ms = self.clock() + wait_ms
        if approval.status is Status.PENDING:
            due_ms = min(due_ms, self._steps(self.directory).next_right(approval))
        return _Outcome(approval, due_ms, failed=not is_late)

    async def _expire(self, approval: Approval, now: int) -> Approval:
        decision = Decision(status=Status.EXPIRED, by="", at_ms=now)
        write = partial(decided, decision=decision, digest=approval.digest)
        store, name = self.storage.approvals, approval.approval_id
        return await update(store, name, write, writes_due=True) or await store.get(name)


def _earliest(*times: int | None) -> int | None:
    """Return the earliest time, or None."""
    return min((at_ms for at_ms in times if at_ms is not None), default=None)


def _changes_by_itself(approval: Approval, now: int) -> Iterator[int]:
    """Yield the times at which a pending card changes without an action."""
    yield approval.expires_ms
    if approval.stuck:
        yield now + milliseconds(LOOK_AGAIN)
    if AgentAnswers.wait(approval):  # the process that asks the agent may crash
        yield now + milliseconds(EXPLAIN_AGAIN)
    claim = approval.claim
    if claim.holds(now):
        yield claim.until_ms
