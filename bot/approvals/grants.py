"""Standing grants: created with an approval, listed in the thread, revocable.

The decision stores what is granted, and the grant is created from it. After a crash, the approval's
worker creates the grant. A grant is used only after its message, with the revoke button, is in the
thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol
from weakref import WeakValueDictionary

from cachetools import LRUCache

from agents.core.address import Address
from agents.core.digest import canonical_json
from bot.audit.acts import Act
from bot.audit.entries import entry_of, note_decision, note_refusal
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, UnknownApprovalError, UserFacingError
from bot.policy.grants import fixed_part, limits_of
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.ports.threads import Notices
from bot.questions.form import ask_of
from bot.records.approval import APPROVE, Approval, GrantRequest, Kind, Status
from bot.records.approval_queries import calls_of
from bot.records.people import Grant
from bot.records.terms import GrantTerms
from bot.stores import Stores
from bot.words import say
from storage.audit import AuditEntry
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

DRAWN_AFTER = timedelta(seconds=15)
"""Time that the process that changed a grant has to update its message. Then any process may."""
DRAW_AGAIN = timedelta(minutes=1)
GIVE_UP_AFTER = timedelta(days=1)
"""Age after which updating the message of an ended grant is abandoned."""
COUNTED = timedelta(days=30)
MOST_COVERED = 100
"""Maximum number of requests to count for a form."""
TRY_AGAIN = timedelta(minutes=1)
"""Retry interval if the grantor could not be looked up."""
_TRIES = 5
_REMEMBERED = 1_000
"""Number of stored grants that this process remembers."""


class RightsNow(Protocol):
    """Checks the current rights of people; see `bot.approvals.votes.Votes`."""

    async def check(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who could not decide the approval."""

    async def gone_since(self, approval: Approval) -> bool:
        """Whether a counted voter of an approved call has since lost the right."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Creates, displays and ends standing grants."""

    storage: Stores
    notices: Notices
    clock: Clock
    votes: Callable[[], RightsNow]
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _given: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    async def give(self, approval: Approval, allowance: GrantRequest) -> Grant | str:
        """Create the standing grant that an approver requested with an approval.

        Returns:
            The grant, or a clause that says why there is none; the approval counts anyway.
        """
        why = why_none(approval, allowance)
        return why or await self._add(approval, a_grant(approval, allowance))

    async def complete(self, approval: Approval) -> int | None:
        """Create the grant of an approval if its process crashed before.

        If the grantor has lost the right, or the database was restored since, the grant is created
        as ended, and its message says so.

        Returns:
            When to retry because a look-up failed, or None.
        """
        allowance = allowance_of(approval)
        name = grant_id_of(approval)
        if allowance is None or name in self._given or why_none(approval, allowance):
            return None
        try:
            await self.storage.grants.get(name)
        except RecordNotFoundError:
            now, grant = self.clock(), a_grant(approval, allowance)
            try:
                ended_ms = await self._lapsed_ms(approval, grant, now)
            except DirectoryError:
                return min(now + milliseconds(TRY_AGAIN), grant.until_ms)
            await self._add(approval, grant.changed(ended_ms=ended_ms))
        self._given[name] = True
        return None

    async def _lapsed_ms(self, approval: Approval, grant: Grant, now_ms: int) -> int | None:
        """Return since when a late grant is unusable, or None.

        Raises:
            DirectoryError: The grantor could not be looked up.
        """
        if now_ms >= grant.until_ms:
            return None  # expired: no look-up needed
        if approval.restored.epoch:
            return now_ms  # like the restored grants
        return grant.created_ms if await self.votes().gone_since(approval) else None

    async def _add(self, approval: Approval, grant: Grant) -> Grant:
        """Store a grant and its audit entry, if not stored yet."""
        decision, audit = approval.decision, self.storage.audit
        if await self.storage.grants.add(grant) and decision is not None:
            await note_decision(audit, approval, decision)  # keep the order of the entries
            await audit.append(granted_entry(grant, approval))
        self._given[grant.grant_id] = True
        return await self.storage.grants.get(grant.grant_id)

    async def covered(self, approval: Approval) -> int:
        """Count requests of the last 30 days that a grant of this call would cover.

        Counts for the narrowest grant: equal arguments in the same thread, or of the same program,
        up to `MOST_COVERED`.
        """
        calls = await calls_of(
            self.storage.approvals,
            approval.thread_id,
            program=approval.caller_program,
            tool=approval.tool,
            since_ms=self.clock() - milliseconds(COUNTED),
            limit=MOST_COVERED + 1,
        )
        return sum(is_alike(call, approval) for call in calls[:MOST_COVERED])

    async def revoke(self, approval_id: str, actor: Actor) -> Grant:
        """Revoke a grant. The grantor, possible approvers and requesters may revoke it.

        Returns:
            The ended grant; it may have ended before.

        Raises:
            UnknownApprovalError: The grant does not exist.
            RefusalError: The person may not revoke it.
            DirectoryError: The person could not be looked up.
        """
        approval = await self.given_with(approval_id)
        grant = await self.storage.grants.get(grant_id_of(approval))
        await self._check(approval, grant, actor)
        now = self.clock()
        ended = await self.storage.grants.end(
            grant.grant_id, by=actor.user_id, now_ms=now, due_ms=self.drawn_ms(now)
        )
        if ended is None:
            return await self.storage.grants.get(grant.grant_id)
        await self.storage.audit.append(_ended_entry(ended, approval))
        return ended

    async def given_with(self, approval_id: str) -> Approval:
        """Return the approval that a grant was created with.

        Raises:
            UnknownApprovalError: The grant does not exist.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
            await self.storage.grants.get(grant_id_of(approval))
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        return approval

    async def _check(self, approval: Approval, grant: Grant, actor: Actor) -> None:
        """Raise unless the person may revoke the grant; grantor and requesters always may."""
        if actor.user_id == grant.granter_id or actor.user_id in approval.all_requesters:
            return
        waiting = approval.changed(
            status=Status.PENDING, decision=None, expires_ms=self.clock() + 1
        )
        try:
            await self.votes().check(waiting, actor)
        except UserFacingError as error:
            at_ms, by = self.clock(), actor.user_id
            await note_refusal(self.storage.audit, approval, at_ms, by=by, error=error)
            raise

    async def show(self, grant_id: str) -> Grant:
        """Update the message of a grant, or post it.

        Returns:
            The grant with its message.

        Raises:
            DeliveryError: Slack refused the message for now.
            RecordNotFoundError: The grant does not exist.
        """
        lock = self._locks.setdefault(grant_id, asyncio.Lock())
        async with lock:
            grant = await self.storage.grants.get(grant_id)
            approval = await self.storage.approvals.get(grant.approval_id)
            await self._make_up(grant, approval)
            for _ in range(_TRIES):
                now = self.clock()
                card_ts = await self.notices.show_grant(grant, approval, now_ms=now)
                shown = grant.changed(card_ts=card_ts)
                due_ms = None if grant.is_over(now) else grant.until_ms
                await self.storage.grants.mark_card(shown, due_ms=due_ms)
                grant = await self.storage.grants.get(grant_id)
                if grant.due_ms == due_ms:  # otherwise the grant changed meanwhile
                    break
        return grant

    async def _make_up(self, grant: Grant, approval: Approval) -> None:
        """Record the creation and the end of a grant, which a crash may have prevented."""
        if not grant.card_ts:
            await self.storage.audit.append(granted_entry(grant, approval))
        if grant.ended_by:
            await self.storage.audit.append(_ended_entry(grant, approval))

    async def attend(self, grant: Grant) -> None:
        """Update the message of a grant if it is due."""
        now = self.clock()
        if now >= grant.until_ms + milliseconds(GIVE_UP_AFTER):
            await self.storage.grants.mark_card(grant, due_ms=None)
        elif await self.storage.grants.claim_update(grant, until_ms=now + milliseconds(DRAW_AGAIN)):
            await self.show_later(grant.grant_id)

    def drawn_ms(self, now_ms: int) -> int:
        """Return when another process may update the message after a change."""
        return now_ms + milliseconds(DRAWN_AFTER)

    async def show_later(self, grant_id: str) -> None:
        """Like `show`, but make a message due again if it cannot be updated now."""
        try:
            await self.show(grant_id)
        except (DeliveryError, RecordNotFoundError) as error:
            logger.warning(
                "could not update the card of a standing permission: %s",
                error,
                extra={"action": "grant_not_shown"},
            )


def grant_id_of(approval: Approval) -> str:
    """Return the id of an approval's grant; empty without one."""
    return f"{approval.thread_id}:grant:{approval.approval_id}"


def is_alike(other: Approval, approval: Approval) -> bool:
    """Whether a grant with an approval would have covered another call; see `Grant`."""
    if other.approval_id == approval.approval_id:
        return False
    is_same_call = canonical_json(other.arguments) == canonical_json(approval.arguments)
    asked, by = other.all_requesters, approval.all_requesters
    is_place = agents_at(other.address) == agents_at(approval.address)
    is_place = is_place and other.channel_id == approval.channel_id
    same = other.terms.digest == approval.terms.digest
    return same and is_place and is_same_call and set(asked) <= set(by)


def has_approved(approval: Approval, user_id: str) -> bool:
    """Whether the person's vote decided it, not an edit or break-glass."""
    decision = approval.decision
    return (
        approval.status is Status.APPROVED
        and decision is not None
        and decision.by == user_id
        and any(vote.by == user_id and vote.choice == APPROVE for vote in approval.votes)
    )


def allowance_of(approval: Approval) -> GrantRequest | None:
    """Return the grant requested with the decision, or None."""
    decision = approval.decision
    return decision.allowance if decision is not None else None


def is_within(allowance: GrantRequest, limits: GrantTerms) -> bool:
    """Whether the limits permit the requested grant."""
    is_time = 0 < allowance.for_s <= limits.max_time_s
    if not set(allowance.vary or ()) <= set(limits.vary):
        return False
    return is_time and 0 < allowance.uses <= limits.max_uses


def why_never(approval: Approval, allowance: GrantRequest) -> str:
    """Return why a call can never have this grant; empty if it can."""
    is_call = approval.kind is Kind.APPROVAL and bool(approval.tool)
    if not is_call:
        return say("reason.grant_never")
    limits = limits_of(approval.terms)
    if limits is None:
        return say("reason.grant_rule")
    return "" if is_within(allowance, limits) else say("reason.grant_beyond")


def why_none(approval: Approval, allowance: GrantRequest) -> str:
    """Return why an approval has no grant, as a clause; empty if it has."""
    decision = approval.decision
    if approval.status is not Status.APPROVED or decision is None:
        return say("reason.grant_waits")
    why = why_never(approval, allowance)
    if not why and not has_approved(approval, decision.by):
        return say("reason.grant_rule")
    return why


def a_grant(approval: Approval, allowance: GrantRequest) -> Grant:
    """Build the grant of an approval; the result is the same in every process."""
    decision, terms = approval.decision, approval.terms
    limits = limits_of(terms)
    if decision is None or limits is None:
        raise ValueError("there is no grant with this")
    vary = limits.vary if allowance.vary is None else allowance.vary
    arguments = approval.arguments if decision.arguments is None else decision.arguments
    return Grant(
        grant_id=grant_id_of(approval),
        team_id=approval.team_id,
        thread_id=approval.thread_id,
        program=approval.caller_program,
        agent=agents_at(approval.address),
        tool=approval.tool,
        arguments=fixed_part(arguments, vary),
        vary=tuple(vary),
        ruling=terms.digest,
        requesters=tuple(sorted(approval.all_requesters)),
        granter_id=decision.by,
        approval_id=approval.approval_id,
        created_ms=decision.at_ms,
        until_ms=decision.at_ms + allowance.for_s * 1_000,
        max_uses=allowance.uses,
        due_ms=decision.at_ms + milliseconds(DRAWN_AFTER),
    )


def granted_entry(grant: Grant, approval: Approval) -> AuditEntry:
    """Build the audit entry of a grant's creation; the same in every process."""
    if grant.is_void:
        return entry_of(
            Act.REFUSED,
            key=grant.grant_id,
            at_ms=grant.created_ms,
            about=approval,
            by=grant.granter_id,
            grant=grant.grant_id,
            why=say("reason.grant_lost"),
        )
    return entry_of(
        Act.GRANTED,
        key=grant.grant_id,
        at_ms=grant.created_ms,
        about=approval,
        by=grant.granter_id,
        grant=grant.grant_id,
        agent=grant.agent,
        tool=grant.tool,
        masks=ask_of(approval).masks,
        arguments=grant.arguments,
        vary=list(grant.vary),
        ruling=grant.ruling,
        until_ms=grant.until_ms,
        max_uses=grant.max_uses,
    )


def _ended_entry(grant: Grant, approval: Approval) -> AuditEntry:
    """Build the audit entry of a grant's revocation; the same in every process."""
    return entry_of(
        Act.GRANT_ENDED,
        key=grant.grant_id,
        at_ms=grant.ended_ms or 0,
        about=approval,
        by=grant.ended_by,
        grant=grant.grant_id,
        used=len(grant.uses),
    )


def agents_at(address: str) -> str:
    """Return all agents of an address, outermost first. Siblings have unique names."""
    return "/".join(name.replace("/", "//") for name in Address.parse(address).agents)
