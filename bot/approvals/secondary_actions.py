"""Actions other than voting: claim, release, snooze, comment, ask an admin.

They decide nothing and stop no timers. Each is one conditional write; after a conflict the action
is judged again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import annotated, with_act
from bot.approvals.comments import AGENT, short, with_exchange
from bot.approvals.service import Approvals
from bot.audit.acts import Act
from bot.audit.entries import note
from bot.audit.report import story
from bot.errors import (
    ApprovalClosedError,
    InvalidInputError,
    NotApproverError,
    OutdatedCardError,
    RefusalError,
    UnknownApprovalError,
)
from bot.people.break_glass import was_told
from bot.policy.refusals import RefusalCode, is_blank
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.records.approval import APPROVE, REJECT, Approval, CardClaim, Comment, Kind, Status
from bot.stores import Stores
from bot.words import say
from storage.documents import update_or_none
from storage.errors import RecordNotFoundError

_TRIES = 20

Change = Callable[[Approval], Awaitable[Approval]]
"""Judges an action on a record and returns the new record; may be called again."""


async def explains_nothing(_: Approval) -> bool:
    """Return that the agent answers no questions."""
    return False


@dataclass(frozen=True, slots=True)
class SecondaryActions:
    """Secondary actions of people on pending approvals.

    Args:
        storage: The database.
        approvals: Finds approvals and records refusals.
        clock: The time now.
        explains: Whether the agent of a call answers questions.
    """

    storage: Stores
    approvals: Approvals
    clock: Clock
    explains: Callable[[Approval], Awaitable[bool]] = explains_nothing

    async def claim(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Claim an approval: for half an hour, and once per person and card.

        The caller then calls `Approvals.follow_up`.

        Returns:
            The approval as stored.

        Raises:
            RefusalError: The person could not decide it, another person has claimed it, or they
                claimed it before.
            UserFacingError: See `Approvals.find`.
        """

        async def change(approval: Approval) -> Approval:
            await self.approvals.votes.check_free(approval, actor)
            now, claim = self.clock(), approval.claim
            refusal = why_not_claim(claim, actor.user_id, now)
            if refusal is not None:
                raise RefusalError(refusal.value, refusal.words)
            taken = claim.taken(actor.user_id, now)
            changed = approval.changed(claim=taken)
            by, until_ms = actor.user_id, taken.until_ms
            return with_act(changed, Act.CLAIMED, by=by, at_ms=now, until_ms=until_ms)

        return await self._change(approval_id, actor, change, shown=shown)

    async def let_go(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Release the person's own claim; see `claim`."""

        async def change(approval: Approval) -> Approval:
            now, claim = self.clock(), approval.claim
            if not claim.holds(now) or claim.by != actor.user_id:
                raise _not_on_it(claim.by if claim.holds(now) else "")
            changed = approval.changed(claim=claim.ended(now))
            return with_act(changed, Act.CLAIM_ENDED, by=actor.user_id, at_ms=now)

        return await self._change(approval_id, actor, change, shown=shown)

    async def see_alert(
        self, approval_id: str, actor: Actor, *, shown: str
    ) -> tuple[Approval, list[str]]:
        """Store that a person has seen a break-glass alert, once each.

        Returns:
            The approval, and all who have seen the alert, in order.

        Raises:
            NotApproverError: The person was not alerted, or there was no break-glass.
            UserFacingError: The approval does not exist, or a look-up failed.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.approvals.noting(approval, actor):
            if not shown or not approval.digest.startswith(shown):
                raise OutdatedCardError(approval_id)
            await self.approvals.access.check_person(actor, team_id=approval.team_id)
            if not await was_told(self.approvals.votes.lookup, approval, actor.user_id):
                raise NotApproverError(say("refuse.override_seen"))
        await note(
            self.storage.audit,
            Act.ALERT_SEEN,
            key=f"{approval_id}:{actor.user_id}",
            at_ms=self.clock(),
            about=approval,
            by=actor.user_id,
        )
        return approval, await self.seen_by(approval)

    async def seen_by(self, approval: Approval) -> list[str]:
        """Return everyone who has seen a break-glass alert, in order."""
        entries = await story(self.storage, approval_id=approval.approval_id)
        return [entry.actor_id for entry in entries if entry.action == Act.ALERT_SEEN]

    async def check_snooze(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval that the person may snooze; see `snooze`."""
        approval = await self._pending_approval(approval_id, actor, shown=shown)
        await self.approvals.check(approval, actor, choice=APPROVE)
        return approval

    async def snooze(self, approval_id: str, actor: Actor, *, shown: str, for_s: int) -> Approval:
        """Pause the mentions of one person for one request.

        They are notified afterwards. The caller then calls `Approvals.follow_up`.

        Args:
            approval_id: The approval.
            actor: The person.
            shown: Digest that they were shown.
            for_s: Duration in seconds.

        Raises:
            RefusalError: The person may not decide it, or it expires before that.
            UserFacingError: See `Approvals.find`.
        """

        async def change(approval: Approval) -> Approval:
            await self.approvals.votes.check(approval, actor, choice=APPROVE)
            now = self.clock()
            until_ms = now + for_s * 1_000
            if until_ms >= approval.expires_ms:
                code = RefusalCode.BEYOND_DEADLINE
                raise RefusalError(code.value, code.words)
            snoozes = {**approval.snoozes, actor.user_id: until_ms}
            changed = approval.changed(snoozes=snoozes)
            by = actor.user_id
            return with_act(changed, Act.SNOOZED, by=by, at_ms=now, until_ms=until_ms)

        return await self._change(approval_id, actor, change, shown=shown)

    async def check_question(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        """Read an approval that the person may ask about; see `ask`."""
        approval = await self._pending_approval(approval_id, actor, shown=shown)
        await self.approvals.check(approval, actor, choice=REJECT)
        return approval

    async def ask(
        self, approval_id: str, actor: Actor, *, shown: str, text: str, to: str = ""
    ) -> Approval:
        """Ask the requesters, another person, or the agent about a request.

        The question is stored first; the approval's worker posts it. The caller then calls
        `Approvals.follow_up`.

        Args:
            approval_id: The approval.
            actor: A possible approver of any stage.
            shown: Digest that they were shown.
            text: The question.
            to: Slack user id of a channel member, or `AGENT`; empty for the requesters.

        Raises:
            InvalidInputError: The question is empty, or the agent answers none.
            DirectoryError: The recipient could not be looked up.
            RefusalError: The person may not decide it.
            UserFacingError: See `Approvals.find`.
        """
        if is_blank(text):
            raise InvalidInputError("a question without words")
        asked = Comment(by=actor.user_id, text=short(text), at_ms=self.clock(), to=to)

        async def change(approval: Approval) -> Approval:
            await self.approvals.votes.check(approval, actor, choice=REJECT)
            if to == AGENT:
                if not await self.explains(approval):
                    raise InvalidInputError("this form")
            elif to:
                await self._check_here(approval, to)
            changed = with_exchange(approval, None, asked)
            by, now = actor.user_id, self.clock()
            return with_act(changed, Act.ASKED_BACK, by=by, at_ms=now, question=asked.text)

        return await self._change(approval_id, actor, change, shown=shown)

    async def check_admin(self, approval_id: str, actor: Actor) -> Approval:
        """Read an undecidable approval for a person who may ask an admin about it.

        Raises:
            UnknownApprovalError: The approval does not exist.
            ApprovalClosedError: It has ended in another way.
            NotApproverError: The person is not a member.
            RefusalError: The approval has approvers by now.
            DirectoryError: A look-up failed.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        async with self.approvals.noting(approval, actor):
            await self.approvals.access.check_person(actor, team_id=approval.team_id)
            if approval.status is not Status.UNDECIDABLE:
                self._check_stuck(approval)
        return approval

    def _check_stuck(self, approval: Approval) -> None:
        if approval.status is not Status.PENDING or self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)
        if not approval.stuck:
            raise RefusalError(RefusalCode.CLOSED.value, say("refuse.decidable"))

    async def ask_admin(
        self, approval_id: str, actor: Actor, *, to: str, text: str
    ) -> Approval | None:
        """Store that an admin is asked, once per asker; the message is sent afterwards.

        Args:
            approval_id: The approval.
            actor: The person.
            to: Slack user id of the admin.
            text: Additional text; may be empty.

        Returns:
            The approval; None if `to` is no admin.

        Raises:
            DirectoryError: The admin could not be looked up.
            UserFacingError: See `check_admin`.
        """
        approval = await self.check_admin(approval_id, actor)
        person = await self.approvals.access.directory.person(to)
        if not person.is_admin or person.is_deleted or person.is_bot:
            return None
        await note(
            self.storage.audit,
            Act.ADMIN_ASKED,
            key=f"{approval_id}:{actor.user_id}:{to}",
            at_ms=self.clock(),
            about=approval,
            by=actor.user_id,
            to=to,
            text=short(text),
        )
        return approval

    async def _check_here(self, approval: Approval, user_id: str) -> None:
        """Refuse recipients who cannot read the thread, and apps.

        Raises:
            RefusalError: With the reason.
        """
        directory, code = self.approvals.access.directory, RefusalCode.NOT_HERE
        if user_id not in await directory.channel_members(approval.channel_id):
            raise RefusalError(code.value, code.words)
        if (await directory.person(user_id)).is_bot:
            raise RefusalError(code.value, say("refuse.ask_app"))

    async def _pending_approval(self, approval_id: str, actor: Actor, *, shown: str) -> Approval:
        approval = await self.approvals.get_pending(approval_id, actor, shown=shown)
        if approval.kind is Kind.QUESTION:
            raise InvalidInputError("this button")
        return approval

    async def _change(
        self, approval_id: str, actor: Actor, change: Change, *, shown: str
    ) -> Approval:
        for _ in range(_TRIES):
            approval = await self._pending_approval(approval_id, actor, shown=shown)
            async with self.approvals.noting(approval, actor):
                changed = await change(approval)
            write = partial(annotated, judged=changed, now_ms=self.clock())
            stored = await update_or_none(
                self.storage.approvals, approval_id, write, writes_due=True
            )
            if stored is not None:
                return stored
        raise OutdatedCardError(approval_id)


def why_not_claim(claim: CardClaim, user_id: str, at_ms: int) -> RefusalCode | None:
    """Return why a person cannot claim a card now, or None."""
    if claim.holds(at_ms) and claim.by != user_id:
        return RefusalCode.CLAIMED_BY_OTHER
    return RefusalCode.CLAIMED_BEFORE if user_id in claim.past else None


def _not_on_it(by: str) -> RefusalError:
    """Return the refusal for releasing another person's claim."""
    if by:
        code = RefusalCode.CLAIMED_BY_OTHER
        return RefusalError(code.value, code.words)
    return RefusalError(RefusalCode.CLAIMED_BEFORE.value, say("refuse.nobody_on_it"))
