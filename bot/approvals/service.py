"""Use cases of approvals: read, decide, edit, reveal.

A decision is stored by one conditional write first; then the thread is woken; then the card is
updated from the record. Each step is idempotent, and the scheduler repeats steps that a crash
prevented.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from bot.approvals.break_glass import BreakGlassDecisions
from bot.approvals.changes import decided, edited, with_seen
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
from bot.approvals.execution import can_take_back, execution_of
from bot.approvals.votes import Votes
from bot.approvals.withdrawals import Withdrawals
from bot.audit.entries import note_opened, note_refusal
from bot.audit.invalidated import note_gone
from bot.clock import milliseconds
from bot.errors import (
    REFUSALS,
    ApprovalClosedError,
    NotSeenError,
    OutdatedCardError,
    RefusalError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.freezes.rules import FreezeOf, never_frozen
from bot.people.access import Access
from bot.people.break_glass import Reasons
from bot.people.lookup import PeopleLookup, PowersNow
from bot.people.quorum import QuorumCheck
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.ports.process import Clock
from bot.questions.base import check_decision
from bot.records.approval import REJECT, Approval, CastVote, Decision, Kind, SeenPart, Status
from bot.redaction.masks import masked_once
from bot.stores import Stores
from bot.words import say
from storage.documents import update_or_none
from storage.errors import RecordNotFoundError

JUST_DECIDED = timedelta(seconds=5)
"""Time after a decision in which a click can still come from the old card."""


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
"""Refusals that may mean that no approver is left."""


@dataclass(frozen=True, slots=True)
class Approvals:
    """Approvals, and what people do with them.

    Args:
        storage: The database.
        access: Checks who may decide.
        clock: The time now.
        shows: Whether a surface shows all of a pending record.
        attendance: Processes approvals.
        policy: The policy in force.
        powers: Delegations cached for one request; None reads them each time.
        freeze_of: Returns the freeze that covers a call.
    """

    storage: Stores
    access: Access
    clock: Clock
    shows: Callable[[Approval, Surface], bool]
    attendance: ApprovalWorker
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    powers: PowersNow | None = None
    freeze_of: FreezeOf = never_frozen

    async def get_pending(
        self,
        approval_id: str,
        actor: Actor,
        *,
        shown: str,
        known: Approval | None = None,
        rejects: bool = False,
    ) -> Approval:
        """Read an approval that a person wants to decide, without checking the person.

        Args:
            approval_id: From the button or the modal.
            actor: The person.
            shown: The digest, or its beginning, that the person was shown.
            known: The approval, if already read for this click.
            rejects: Whether the person rejects it; then its call may also be parked.

        Returns:
            The pending approval, or that of a parked call.

        Raises:
            UnknownApprovalError: It does not exist, or belongs to another workspace.
            ApprovalClosedError: It has already ended.
            OutdatedCardError: The person was shown something else.
        """
        try:
            approval = known or await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.noting(approval, actor):
            if not (rejects and can_take_back(approval)):
                self._check_pending(approval)
            if not shown or not approval.digest.startswith(shown):
                raise OutdatedCardError(approval_id)
        return approval

    async def get_decidable(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval that the person may decide; see `get_pending` and `check`."""
        approval = await self.get_pending(approval_id, actor, shown=shown)
        await self.check(approval, actor)
        return approval

    async def check(self, approval: Approval, actor: Actor, *, choice: str = REJECT) -> None:
        """Refuse a person who may not decide an approval now.

        Raises:
            NotApproverError: This person may not decide it.
            DirectoryError: Who they are could not be looked up.
        """
        async with self.noting(approval, actor):
            if approval.kind is Kind.QUESTION:
                await self.access.check_answerer(approval, actor)
            else:
                await self.votes.check(approval, actor, choice=choice)

    async def check_editor(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not edit an approval's call now.

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
        """Store an answer or a vote and, when the quorum is met, the decision.

        The person is looked up here, except for a question, where `check` has done so. The caller
        then calls `follow_up`.

        Args:
            approval: As returned by `find`; the decision covers what it shows.
            decision: The person's choice.
            actor: The person; None for the person of the decision.
            surface: Where they chose. Approval counts if the surface shows everything or they have
                opened the rest.

        Returns:
            The approval: decided or pending.

        Raises:
            ApprovalClosedError: It has already ended.
            OutdatedCardError: The record has changed since it was read.
            InvalidInputError: The approval does not accept this answer.
            NotApproverError: The vote does not count; see `RefusalError`.
            NotSeenError: The person has not opened hidden parts.
            DirectoryError: A look-up failed.
        """
        actor = actor or Actor(user_id=decision.by, team_id="")
        async with self.noting(approval, actor):
            check_decision(approval, decision)
            if decision.status is Status.REJECTED and can_take_back(approval):
                return await self.votes.reject_parked(approval, decision, actor)
            if approval.kind is not Kind.QUESTION:
                return await self.votes.cast(approval, decision, actor, surface)
            if is_yes(approval, decision):
                self._check_seen(approval, decision.by, surface)
            stored = await self._decide(approval, decision)
            if stored is None:
                raise await self._why_lost(approval)
            return stored

    async def check_emergency(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not break glass.

        Raises:
            UserFacingError: With the reason.
        """
        async with self.noting(approval, actor):
            self._check_pending(approval)
            await self.emergencies.check(approval, actor)

    async def break_glass(self, approval: Approval, actor: Actor, reasons: Reasons) -> Approval:
        """Approve a call as shown, without its approvers.

        The caller then calls `follow_up`, which alerts the approvers.

        Returns:
            The approval as decided.

        Raises:
            UserFacingError: The person may not, the reasons are too short, or it has ended.
        """
        async with self.noting(approval, actor):
            self._check_pending(approval)
            return await self.emergencies.decide(approval, actor, reasons)

    @property
    def emergencies(self) -> BreakGlassDecisions:
        """Break-glass decisions."""
        return BreakGlassDecisions(self.votes, self.freeze_of)

    async def take_back(self, approval_id: str, actor: Actor) -> Approval:
        """Withdraw a person's vote while the approval is pending.

        The caller then calls `follow_up`.

        Returns:
            The approval as stored.

        Raises:
            UserFacingError: The person has no vote there, or it is decided.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.noting(approval, actor):
            return await self.votes.take_back(approval, actor)

    async def rebind(
        self, approval: Approval, changed: Approval, *, actor: Actor
    ) -> Approval | None:
        """Store an edited call and its approvers.

        The caller then calls `follow_up`.

        Returns:
            The approval as stored; None when somebody voted or commented since it was read, so that
            the edit must be judged again.

        Raises:
            ApprovalClosedError: It has already ended.
            OutdatedCardError: Its call has changed since it was read.
            NotSeenError: The editor has not opened hidden parts.
        """
        async with self.noting(approval, actor):
            self._check_seen(approval, actor.user_id, Surface.EDIT_FORM)
            await self._note_gone(approval, ())  # the edit voids the votes
            write = partial(edited, judged=changed, unedited=approval, now_ms=self.clock())
            approvals, name = self.storage.approvals, approval.approval_id
            stored = await update_or_none(approvals, name, write, writes_due=True)
            if stored is None:
                newest = await approvals.get(name)
                self._check_pending(newest)
                if newest.digest != approval.digest:
                    raise OutdatedCardError(name)
            return stored

    def quorum_check(self) -> QuorumCheck:
        """Return the check that enough approvers exist."""
        return QuorumCheck(self.access.directory, self.policy, self.clock)

    @property
    def votes(self) -> Votes:
        """Votes under terms."""
        powers = self.powers or self.storage.delegations
        return Votes(
            approvals=self.storage.approvals,
            lookup=PeopleLookup(self.access.directory, self.policy, self.clock, powers),
            policy=self.policy,
            clock=self.clock,
            unseen=self.unseen,
            gone=self._note_gone,
        )

    @asynccontextmanager
    async def noting(self, approval: Approval, actor: Actor) -> AsyncIterator[None]:
        """Record refusals; cancel an approval whose call the policy now denies."""
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
        """Cancel an approval that the policy denies, unless it has ended."""
        decision = Decision(
            status=Status.DENIED,
            by="",
            at_ms=self.clock() + 1,  # sort after the refusal
            reason=why,
            digest=approval.digest,
        )
        denied = await self._decide(approval, decision)
        if denied is not None:
            await self.attendance.tell_thread(denied)

    async def _decide(self, approval: Approval, decision: Decision) -> Approval | None:
        write = partial(decided, decision=decision, digest=approval.digest)
        name = approval.approval_id
        return await update_or_none(self.storage.approvals, name, write, writes_due=True)

    async def _note_gone(self, approval: Approval, votes: Sequence[CastVote]) -> None:
        if votes or approval.votes:
            await note_gone(self.storage.audit, approval, self.clock(), votes=votes)

    async def check_seen(self, approval: Approval, user_id: str, surface: Surface) -> None:
        """Refuse a person who has not opened what a surface hides.

        Raises:
            NotSeenError: They have not, or they opened an earlier version.
        """
        async with self.noting(approval, Actor(user_id=user_id, team_id="")):
            self._check_seen(approval, user_id, surface)

    def _check_seen(self, approval: Approval, user_id: str, surface: Surface) -> None:
        error = self.unseen(approval, user_id, surface)
        if error is not None:
            raise error

    def unseen(self, approval: Approval, user_id: str, surface: Surface) -> NotSeenError | None:
        """Return the hidden parts that a person has not opened, as an error, or None."""
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
        """Reveal values that are masked by a guess; recorded before the person sees them."""
        now = self.clock()
        names = guesses(approval) or ("arguments",)
        await note_opened(self.storage.audit, approval, now, by=user_id, fields=names)
        await show()
        await self._mark_seen(approval, user_id, Opened.CLEAR)

    async def note_details(self, approval: Approval, user_id: str) -> None:
        """Record that a person was shown all details of a pending approval."""
        if approval.status is not Status.PENDING or has_opened(approval, user_id, Opened.DETAILS):
            return
        await note_opened(self.storage.audit, approval, self.clock(), by=user_id)
        await self._mark_seen(approval, user_id, Opened.DETAILS)

    async def note_page(self, approval: Approval, user_id: str, number: int, *, of: int) -> None:
        """Store that a person was shown a page of the full text.

        Only the page after the last one counts, so the last page implies that all were shown. With
        it, the details are recorded as opened.
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

    async def _mark(
        self, approval: Approval, seen_of: Callable[[Approval], tuple[SeenPart, ...]]
    ) -> None:
        """Store the opened parts, if the call is still pending and unchanged."""
        digest = approval.digest

        def see(stored: Approval) -> Approval | None:
            return with_seen(stored, seen_of(stored), digest=digest)

        await update_or_none(self.storage.approvals, approval.approval_id, see)

    async def _why_lost(self, approval: Approval) -> UserFacingError:
        """Return why a write lost the race, from the current record."""
        try:
            self._check_pending(await self.storage.approvals.get(approval.approval_id))
        except ApprovalClosedError as error:
            return error
        return OutdatedCardError(approval.approval_id)

    @property
    def withdrawals(self) -> Withdrawals:
        """The withdrawals of requesters."""
        return Withdrawals(self.storage, self.clock)

    async def follow_up(self, approval: Approval) -> None:
        """Process a vote or a decision: audit, thread, card.

        Waking the thread needs no lease, so a crashed card update does not delay the agent.
        """
        await self.tell([approval])
        await self.attendance.attend_decided(approval)

    async def tell(self, approvals: Sequence[Approval]) -> None:
        """Process votes and decisions together, except for cards; wake each thread once."""
        for approval in approvals:
            if approval.status is Status.PENDING or can_take_back(approval):
                await self.attendance.note_votes(approval)
        waiting = [approval for approval in approvals if approval.status is not Status.PENDING]
        to_tell = [
            approval for approval in waiting if approval.open and execution_of(approval) is None
        ]
        await self.attendance.tell_threads(to_tell)

    async def refresh(self, approval_id: str) -> None:
        """Update a card that was clicked although it is outdated.

        Just after a decision, do nothing: the worker is updating the card.

        Raises:
            RecordNotFoundError: The approval does not exist.
            StoreUnavailableError: The card is updated with the next such click.
        """
        approval = await self.storage.approvals.get(approval_id)
        now, decision = self.clock(), approval.decision
        if decision is None or now - decision.at_ms > milliseconds(JUST_DECIDED):
            await self.attendance.redraw(approval_id)

    async def is_card_refused(self, approval_id: str) -> bool:
        """Whether Slack refused the app when it showed a request last, by the card's own record.

        What Slack answered to other calls of this process says nothing about this card.
        """
        store = self.storage.approvals
        try:
            approval = await store.get(approval_id)
            if approval.is_batched:
                approval = await store.get(approval.batch.owner_id)
        except RecordNotFoundError:
            return False
        return approval.card.error in REFUSALS

    def _check_pending(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING or self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)
