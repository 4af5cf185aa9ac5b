"""The use cases of approvals: look, decide, edit, open; what follows is their attendance's.

The order is always record, act, redraw: a decision is one conditional write before anything else
happens; then the thread is woken; then the card is drawn again from the record. Each step may be
repeated without harm, and the scheduler repeats what a crash left open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from bot.approvals.break_glass import BreakGlassDecisions, Reasons
from bot.approvals.disclosure import (
    Opened,
    Surface,
    guesses,
    has_opened,
    is_yes,
    pages_read,
    with_opened,
    with_page,
)
from bot.approvals.due.worker import ApprovalWorker
from bot.approvals.votes import Votes
from bot.approvals.withdrawals import Withdrawals
from bot.audit.entries import NO_VOTES, note_opened, note_refusal
from bot.audit.invalidated import note_gone, note_taken_back
from bot.clock import milliseconds
from bot.errors import (
    ApprovalClosedError,
    NotSeenError,
    OutdatedCardError,
    RefusalError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.people.access import Access
from bot.people.current_policy import CurrentPolicy, NoPolicy
from bot.people.delegated import PowersNow
from bot.people.feasibility import FeasibilityCheck
from bot.people.lookup import PeopleLookup
from bot.policy.refusals import RefusalCode
from bot.policy.tally import REJECT, CastVote
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.questions.base import check_decision
from bot.redaction.masks import masked_once
from bot.words import say
from storage.base import Storage
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Decision, Kind, Status

JUST_DECIDED = timedelta(seconds=5)
"""After a decision: whoever clicks then has not seen the card that is being drawn."""


_NOT_THEIRS = frozenset(
    {
        RefusalCode.NOT_APPROVER,
        RefusalCode.EXCLUDED,
        RefusalCode.OWN_REQUEST,
        RefusalCode.OWN_EDIT,
        RefusalCode.DEACTIVATED,
        RefusalCode.USED_UP,
    }
)
"""Refusals of a person who may have been the last that was left."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals: all that people do with them.

    Args:
        storage: Where records are kept.
        access: Who may decide.
        clock: The time now.
        shows: Tells whether a surface shows all of a pending record.
        attendance: Does what follows, and all that is due by the clock.
        policy: The policy in force.
        powers: The rights that people handed on, for one moment; None reads them each time.
    """

    storage: Storage
    access: Access
    clock: Clock
    shows: Callable[[Approval, Surface], bool]
    attendance: ApprovalWorker
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    powers: PowersNow | None = None

    async def find(
        self, approval_id: str, actor: Actor, *, shown: str, known: Approval | None = None
    ) -> Approval:
        """Read an approval that a person means to decide; who they are is not looked up yet.

        Args:
            approval_id: As carried by the button or the modal.
            actor: Who asks.
            shown: The digest, or the beginning of it, that the person was shown.
            known: The approval, where it was read for the same click; None reads it.

        Returns:
            The pending approval.

        Raises:
            UnknownApprovalError: There is none, or it belongs to another workspace.
            ApprovalClosedError: Somebody, or the clock, decided first.
            OutdatedCardError: The person was shown something else than is on record.
        """
        try:
            approval = known or await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.noting(approval, actor):
            self._check_pending(approval)
            if not shown or not approval.digest.startswith(shown):
                raise OutdatedCardError(approval_id)
        return approval

    async def look(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval for a person who may have a say in it now; see `find` and `check`."""
        approval = await self.find(approval_id, actor, shown=shown)
        await self.check(approval, actor)
        return approval

    async def check(self, approval: Approval, actor: Actor, *, choice: str = REJECT) -> None:
        """Refuse a person who may not decide an approval, as they are known at this moment.

        Raises:
            NotApproverError: This person may not decide it.
            DirectoryError: Who they are could not be looked up.
        """
        async with self.noting(approval, actor):
            if approval.kind is Kind.QUESTION:
                await self.access.check_decider(approval, actor)
            else:
                await self.votes.check(approval, actor, choice=choice)

    async def check_editor(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not edit the call of an approval, as they are known now.

        Raises:
            NotApproverError: This person may not edit it.
            DirectoryError: Who they are could not be looked up.
        """
        async with self.noting(approval, actor):
            self._check_pending(approval)
            await self.votes.check_editor(approval, actor)

    async def decide(
        self,
        approval: Approval,
        decision: Decision,
        actor: Actor | None = None,
        *,
        surface: Surface = Surface.ELSEWHERE,
    ) -> Approval:
        """Record a person's choice, once: an answer, or a vote, and what it decides.

        Who they are is looked up here; but for a question, of which `check` has done so.

        Args:
            approval: As read by `find`; the decision covers what that record shows.
            decision: What the person chose.
            actor: Who it is; the person of the decision when None.
            surface: Where they chose it: a yes counts where that shows all of it, or where they
                have opened it.

        Returns:
            The approval as stored: decided, or waiting for others. `follow_up` does the rest.

        Raises:
            ApprovalClosedError: Somebody, or the clock, was first.
            OutdatedCardError: The record has changed since it was read.
            InvalidInputError: The record takes no such answer.
            NotApproverError: The vote does not count: see `RefusalError`.
            NotSeenError: It is a yes, and the person has not opened what its place does not show.
            DirectoryError: It could not be looked up whether it counts.
        """
        actor = actor or Actor(user_id=decision.by, team_id="")
        async with self.noting(approval, actor):
            check_decision(approval, decision)
            if approval.kind is not Kind.QUESTION:
                return await self.votes.cast(approval, decision, actor, surface)
            if is_yes(approval, decision):
                self._check_seen(approval, decision.by, surface)
            try:
                return await self.storage.approvals.decide(
                    approval.approval_id, decision, digest=approval.digest
                )
            except RecordConflictError as error:
                raise await self._why_lost(approval) from error

    async def check_emergency(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not let a call run without those who should decide.

        Raises:
            UserFacingError: With the reason.
        """
        async with self.noting(approval, actor):
            self._check_pending(approval)
            await self.emergencies.check(approval, actor)

    async def break_glass(self, approval: Approval, actor: Actor, reasons: Reasons) -> Approval:
        """Let a call run as it is shown, without those who should decide.

        Returns:
            The approval as decided. `follow_up` does the rest: those who should decide are told.

        Raises:
            UserFacingError: They may not, have not said enough, or somebody was first.
        """
        async with self.noting(approval, actor):
            self._check_pending(approval)
            return await self.emergencies.decide(approval, actor, reasons)

    @property
    def emergencies(self) -> BreakGlassDecisions:
        """The calls that run without those who should decide."""
        return BreakGlassDecisions(self.votes)

    async def take_back(self, approval_id: str, actor: Actor) -> Approval:
        """Remove a person's own vote, while others still have to decide.

        Returns:
            The approval as stored. `follow_up` does the rest.

        Raises:
            UserFacingError: They have no vote there, or it is decided.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.noting(approval, actor):
            stored, vote = await self.votes.take_back(approval, actor)
        await note_taken_back(self.storage.audit, stored, self.clock(), vote=vote)
        return stored

    async def rebind(self, approval: Approval, changed: Approval, *, actor: Actor) -> Approval:
        """Record that a call was edited, and who is asked about it now.

        Returns:
            The approval as stored. `follow_up` does the rest.

        Raises:
            ApprovalClosedError: Somebody, or the clock, was first.
            OutdatedCardError: The record has changed since it was read.
            NotSeenError: The editor has not opened what the form does not show.
        """
        async with self.noting(approval, actor):
            self._check_seen(approval, actor.user_id, Surface.EDIT_FORM)
            await self._note_gone(approval, ())  # the edit voids them
            try:
                return await self.storage.approvals.rebind(
                    changed, digest=approval.digest, now_ms=self.clock()
                )
            except RecordConflictError as error:
                raise await self._why_lost(approval) from error

    def outlook(self, channels: tuple[str, ...] = ()) -> FeasibilityCheck:
        """Sees to it that nobody is asked what nobody can decide.

        Args:
            channels: The only channels where approval is asked for without terms.
        """
        return FeasibilityCheck(self.access.directory, channels, self.policy, self.clock)

    @property
    def votes(self) -> Votes:
        """The votes on what people decide under terms."""
        powers = self.powers or self.storage.delegations
        return Votes(
            approvals=self.storage.approvals,
            census=PeopleLookup(self.access.directory, self.policy, self.clock, powers),
            policy=self.policy,
            clock=self.clock,
            unseen=self.unseen,
            gone=self._note_gone,
        )

    @asynccontextmanager
    async def noting(self, approval: Approval, actor: Actor) -> AsyncIterator[None]:
        """Put a refusal on record; what a rule denies by now is over with it (2.11)."""
        try:
            yield
        except UserFacingError as error:
            at_ms, by = self.clock(), actor.user_id
            await note_refusal(self.storage.audit, approval, at_ms, by=by, error=error)
            if error.code == RefusalCode.RULE_DENIES and isinstance(error, RefusalError):
                await self._deny(approval, error.detail)
            if error.code in _NOT_THEIRS:
                await self.attendance.look_soon(approval)
            raise

    async def _deny(self, approval: Approval, why: str) -> None:
        """End what the policy in force denies; somebody else may have been quicker."""
        decision = Decision(
            status=Status.DENIED,
            by="",
            at_ms=self.clock() + 1,  # after the refusal, wherever they are put in order
            reason=why,
            digest=approval.digest,
        )
        with suppress(RecordConflictError):
            denied = await self.storage.approvals.decide(
                approval.approval_id, decision, digest=approval.digest
            )
            await self.attendance.tell_thread(denied)

    async def _note_gone(self, approval: Approval, votes: Sequence[CastVote]) -> None:
        if votes or approval.votes_json != NO_VOTES:
            await note_gone(self.storage.audit, approval, self.clock(), votes=votes)

    async def check_seen(self, approval: Approval, user_id: str, surface: Surface) -> None:
        """Refuse who has not opened what a surface does not show of an approval.

        Raises:
            NotSeenError: They have not, or something else.
        """
        async with self.noting(approval, Actor(user_id=user_id, team_id="")):
            self._check_seen(approval, user_id, surface)

    def _check_seen(self, approval: Approval, user_id: str, surface: Surface) -> None:
        error = self.unseen(approval, user_id, surface)
        if error is not None:
            raise error

    def unseen(self, approval: Approval, user_id: str, surface: Surface) -> NotSeenError | None:
        """Say what a person would agree to without having seen it; None for nothing."""
        with masked_once():
            if guesses(approval):
                what, needed, button = say("refuse.masked"), Opened.CLEAR, say("button.reveal")
            elif not self.shows(approval, surface):
                what, needed, button = say("refuse.folded"), Opened.DETAILS, say("button.details")
            else:
                return None
            if has_opened(approval, user_id, needed) and self.shows(approval, Surface.DETAILS):
                return None
        return NotSeenError(what, button)

    async def reveal(
        self, approval: Approval, user_id: str, show: Callable[[], Awaitable[None]]
    ) -> None:
        """Show one person what is masked by a guess; on record before they see it."""
        now = self.clock()
        names = guesses(approval) or ("arguments",)
        await note_opened(self.storage.audit, approval, now, by=user_id, fields=names)
        await show()
        await self._mark_seen(approval, user_id, Opened.CLEAR)

    async def note_details(self, approval: Approval, user_id: str) -> None:
        """Put on record that a person was shown all details of a pending approval."""
        if approval.status is not Status.PENDING or has_opened(approval, user_id, Opened.DETAILS):
            return
        await note_opened(self.storage.audit, approval, self.clock(), by=user_id)
        await self._mark_seen(approval, user_id, Opened.DETAILS)

    async def note_page(self, approval: Approval, user_id: str, number: int, *, of: int) -> None:
        """Remember that a person was shown a page of the full text; with the last, all details.

        A page counts after the one before it: so nobody is at the end who has not seen the rest.
        """
        if number > pages_read(approval, user_id) + 1 or not 0 < number <= of:
            return
        if number == of:
            await self.note_details(approval, user_id)
            return
        if number > pages_read(approval, user_id):
            await self._mark(approval, lambda newest: with_page(newest, user_id, number))

    async def _mark_seen(self, approval: Approval, user_id: str, what: Opened) -> None:
        await self._mark(approval, lambda newest: with_opened(newest, user_id, what))

    async def _mark(self, approval: Approval, seen_of: Callable[[Approval], str]) -> None:
        """Remember what was seen; when others opened it at the same moment, after them."""
        store, digest = self.storage.approvals, approval.digest
        while approval.status is Status.PENDING and approval.digest == digest:
            seen = seen_of(approval)
            if await store.mark_seen(
                approval.approval_id, digest=digest, before=approval.seen_json, seen_json=seen
            ):
                return
            approval = await store.get(approval.approval_id)

    async def _why_lost(self, approval: Approval) -> UserFacingError:
        """Why somebody else was first, as the record says now."""
        try:
            self._check_pending(await self.storage.approvals.get(approval.approval_id))
        except ApprovalClosedError as error:
            return error
        return OutdatedCardError(approval.approval_id)

    @property
    def withdrawals(self) -> Withdrawals:
        """The withdrawals: all that requesters can do."""
        return Withdrawals(self.storage, self.clock)

    async def follow_up(self, approval: Approval) -> None:
        """Do what follows a vote or a decision: the audit, a wake of the thread, and the card.

        The wake needs no lease: a process that died with the card's lease does not keep the agent
        waiting.
        """
        await self.tell([approval])
        await self.attendance.attend_decided(approval)

    async def tell(self, approvals: Sequence[Approval]) -> None:
        """Do what follows votes and decisions of one moment, but for the cards.

        A thread is woken once for all of them.
        """
        for approval in approvals:
            if approval.status is Status.PENDING:
                await self.attendance.note_votes(approval)
        waiting = [one for one in approvals if one.status is not Status.PENDING]
        told = [one for one in waiting if one.open and not one.run_json]
        await self.attendance.tell_threads(told)

    async def refresh(self, approval_id: str) -> None:
        """Draw a card again that may show what is no longer so: somebody has clicked on it.

        Who clicks just after a decision has not seen the card that is being drawn.

        Raises:
            RecordNotFoundError: There is no such approval.
            StoreUnavailableError: It is drawn with the next such click.
        """
        approval = await self.storage.approvals.get(approval_id)
        now, decision = self.clock(), approval.decision
        if decision is None or now - decision.at_ms > milliseconds(JUST_DECIDED):
            await self.attendance.redraw(approval_id)

    def _check_pending(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING or self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)
