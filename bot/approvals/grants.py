"""Standing grants: given together with an approval, shown in the thread, ended by anybody of it.

How much is allowed is on record with the decision; the grant is made of that, right after it. Where
a process has died in between, whoever attends to the approval makes it. It lets nothing run before
its message, with the button that ends it, is in the thread.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol
from weakref import WeakValueDictionary

from cachetools import LRUCache

from agents.core.address import Address
from bot.audit.acts import Act
from bot.audit.entries import entry_of, note_decision, note_refusal
from bot.clock import milliseconds
from bot.errors import DeliveryError, DirectoryError, UnknownApprovalError, UserFacingError
from bot.people.requesters import all_requesters, is_requester
from bot.policy.grants import GrantRequest, fixed_part, is_within, limits_of
from bot.policy.tally import APPROVE, read_votes
from bot.policy.terms import Terms, TermsError
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.ports.threads import Notices
from bot.questions.form import ask_of
from bot.words import say
from storage.base import Storage
from storage.errors import RecordNotFoundError
from storage.records import Approval, AuditEntry, Grant, Kind, Status

logger = logging.getLogger(__name__)

DRAWN_AFTER = timedelta(seconds=15)
"""The time in which the changer of a grant draws its message; afterwards anybody does."""
DRAW_AGAIN = timedelta(minutes=1)
GIVE_UP_AFTER = timedelta(days=1)
"""A message that Slack has not taken for so long after the end shows the buttons for ever."""
COUNTED = timedelta(days=30)
MOST_COVERED = 100
"""So many requests are counted for a form."""
TRY_AGAIN = timedelta(minutes=1)
"""After which a grant is tried again whose giver could not be looked up."""
_TRIES = 5
_REMEMBERED = 1_000
"""The most grants of which this process knows that they are on record; others are looked for."""


class RightsNow(Protocol):
    """The rights of people as they are now: `bot.approvals.votes.Votes`."""

    async def check(self, approval: Approval, actor: Actor) -> None:
        """Refuse who could not decide it."""

    async def gone_since(self, approval: Approval) -> bool:
        """Whether somebody who was counted for an approved call may not decide it any more."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Gives, shows and ends standing grants."""

    storage: Storage
    notices: Notices
    clock: Clock
    votes: Callable[[], RightsNow]
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    _given: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(_REMEMBERED))

    async def give(self, approval: Approval, allowance: GrantRequest) -> Grant | str:
        """Allow later calls like an approved one, too; whoever approved it does.

        Returns:
            The grant; or why there is none, as a clause: the approval counts all the same.
        """
        why = why_none(approval, allowance)
        return why or await self._add(approval, a_grant(approval, allowance))

    async def complete(self, approval: Approval) -> int | None:
        """Give the grant that goes with an approval, where who was to give it has died before.

        Where whoever allowed it may not any more, or the database went back to a copy since, the
        grant is over from its beginning, and its message says so.

        Returns:
            When to try again: who they are could not be looked up. None where nothing is left to
            do.
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
        """Since when a grant that is made late cannot be used; None where it can.

        Raises:
            DirectoryError: Whether who gave it still may could not be looked up.
        """
        if now_ms >= grant.until_ms:
            return None  # over by its time: nobody has to be looked up for that
        if approval.restored_era:
            return now_ms  # as those that the copy had
        return grant.created_ms if await self.votes().gone_since(approval) else None

    async def _add(self, approval: Approval, grant: Grant) -> Grant:
        """Put a grant on record, unless it is, and into the audit."""
        decision, audit = approval.decision, self.storage.audit
        if await self.storage.grants.add(grant) and decision is not None:
            await note_decision(audit, approval, decision)  # in their order
            await audit.append(granted_entry(grant, approval))
        self._given[grant.grant_id] = True
        return await self.storage.grants.get(grant.grant_id)

    async def covered(self, approval: Approval) -> int:
        """Count the requests of the last 30 days that a grant with this call would have covered.

        It is the narrowest grant, of equal arguments, in the same thread; at most `MOST_COVERED`.
        """
        found = await self.storage.lists.calls_of(
            approval.thread_id,
            tool=approval.tool,
            since_ms=self.clock() - milliseconds(COUNTED),
            limit=MOST_COVERED + 1,
        )
        return sum(is_alike(one, approval) for one in found[:MOST_COVERED])

    async def revoke(self, approval_id: str, actor: Actor) -> Grant:
        """End a grant: whoever gave it, whoever may decide such calls, and whoever asked for them.

        Returns:
            The grant as ended; it may have been over before.

        Raises:
            UnknownApprovalError: There is no such grant.
            RefusalError: This person may not.
            DirectoryError: Whether they may could not be looked up.
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
        """Read what a grant was given with.

        Raises:
            UnknownApprovalError: There is no such grant.
        """
        try:
            approval = await self.storage.approvals.get(approval_id)
            await self.storage.grants.get(grant_id_of(approval))
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error
        return approval

    async def _check(self, approval: Approval, grant: Grant, actor: Actor) -> None:
        """Refuse who may not end it; to stop it, who gave it and who asked need no look-up."""
        if actor.user_id == grant.granter_id or is_requester(approval, actor.user_id):
            return
        waiting = replace(
            approval, status=Status.PENDING, decision=None, expires_ms=self.clock() + 1
        )
        try:
            await self.votes().check(waiting, actor)
        except UserFacingError as error:
            at_ms, by = self.clock(), actor.user_id
            await note_refusal(self.storage.audit, approval, at_ms, by=by, error=error)
            raise

    async def show(self, grant_id: str) -> Grant:
        """Bring the message of a grant to what the record says; post it where there is none.

        Returns:
            The grant, with its message.

        Raises:
            DeliveryError: Slack did not take it now.
            RecordNotFoundError: There is no such grant.
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
                if grant.due_ms == due_ms:  # else somebody used it, or ended it, meanwhile
                    break
        return grant

    async def _make_up(self, grant: Grant, approval: Approval) -> None:
        """Put on record what somebody may have died before: that it was given, and ended."""
        if not grant.card_ts:
            await self.storage.audit.append(granted_entry(grant, approval))
        if grant.ended_by:
            await self.storage.audit.append(_ended_entry(grant, approval))

    async def attend(self, grant: Grant) -> None:
        """Draw a message that is due: it shows a use, or the end, that nobody has drawn yet."""
        now = self.clock()
        if now >= grant.until_ms + milliseconds(GIVE_UP_AFTER):
            await self.storage.grants.mark_card(grant, due_ms=None)
        elif await self.storage.grants.take(grant, until_ms=now + milliseconds(DRAW_AGAIN)):
            await self.show_later(grant.grant_id)

    def drawn_ms(self, now_ms: int) -> int:
        """When a change is drawn by others, if who made it has died before."""
        return now_ms + milliseconds(DRAWN_AFTER)

    async def show_later(self, grant_id: str) -> None:
        """Do what `show` does; a message that cannot be drawn now is due again."""
        try:
            await self.show(grant_id)
        except (DeliveryError, RecordNotFoundError) as error:
            logger.warning(
                "could not update the card of a standing permission: %s",
                error,
                extra={"action": "grant_not_shown"},
            )


def grant_id_of(approval: Approval) -> str:
    """The id of the grant that was given with an approval, if there is one."""
    return f"{approval.thread_id}:grant:{approval.approval_id}"


def is_alike(one: Approval, approval: Approval) -> bool:
    """Whether a grant with an approval would have covered another call; see `Grant`."""
    if one.approval_id == approval.approval_id or not one.terms_json:
        return False
    try:
        same = Terms.from_text(one.terms_json).digest == Terms.from_text(approval.terms_json).digest
        texts = [fixed_part(each.arguments_json, ()) for each in (one, approval)]
    except (TermsError, TypeError, ValueError):
        return False
    asked, by = all_requesters(one), all_requesters(approval)
    is_place = agents_at(one.address) == agents_at(approval.address)
    return same and is_place and texts[0] == texts[1] and set(asked) <= set(by)


def has_approved(approval: Approval, user_id: str) -> bool:
    """Whether it was somebody's vote that decided it: not an edit, and no emergency."""
    decision = approval.decision
    return (
        approval.status is Status.APPROVED
        and decision is not None
        and decision.by == user_id
        and any(
            vote.by == user_id and vote.choice == APPROVE
            for vote in read_votes(approval.votes_json)
        )
    )


def allowance_of(approval: Approval) -> GrantRequest | None:
    """How much was allowed with the decision of an approval; None for no more than the call."""
    decision = approval.decision
    return GrantRequest.from_text(decision.allowance_json) if decision is not None else None


def why_never(approval: Approval, allowance: GrantRequest) -> str:
    """Why a call cannot be allowed like this, however it is decided; empty where it can."""
    is_call = approval.kind is Kind.APPROVAL and bool(approval.tool)
    if not approval.terms_json or not is_call:
        return say("reason.grant_never")
    limits = limits_of(Terms.from_text(approval.terms_json))
    if limits is None:
        return say("reason.grant_rule")
    return "" if is_within(allowance, limits) else say("reason.grant_beyond")


def why_none(approval: Approval, allowance: GrantRequest) -> str:
    """Why there is no grant with an approval as it is; a clause, empty where there is one."""
    decision = approval.decision
    if approval.status is not Status.APPROVED or decision is None:
        return say("reason.grant_waits")
    why = why_never(approval, allowance)
    if not why and not has_approved(approval, decision.by):
        return say("reason.grant_rule")
    return why


def a_grant(approval: Approval, allowance: GrantRequest) -> Grant:
    """The grant that goes with an approval; the same whoever makes it."""
    decision, terms = approval.decision, Terms.from_text(approval.terms_json)
    limits = limits_of(terms)
    if decision is None or limits is None:
        raise ValueError("there is no grant with this")
    vary = limits.vary if allowance.vary is None else allowance.vary
    return Grant(
        grant_id=grant_id_of(approval),
        team_id=approval.team_id,
        thread_id=approval.thread_id,
        agent=agents_at(approval.address),
        tool=approval.tool,
        arguments_json=fixed_part(decision.arguments_json or approval.arguments_json, vary),
        vary=tuple(vary),
        ruling=terms.digest,
        requesters=tuple(sorted(all_requesters(approval))),
        granter_id=decision.by,
        approval_id=approval.approval_id,
        created_ms=decision.at_ms,
        until_ms=decision.at_ms + allowance.for_s * 1_000,
        max_uses=allowance.uses,
        due_ms=decision.at_ms + milliseconds(DRAWN_AFTER),
    )


def granted_entry(grant: Grant, approval: Approval) -> AuditEntry:
    """The entry that says that a grant was given, or was not; the same whoever writes it."""
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
        arguments=json.loads(grant.arguments_json),
        vary=list(grant.vary),
        ruling=grant.ruling,
        until_ms=grant.until_ms,
        max_uses=grant.max_uses,
    )


def _ended_entry(grant: Grant, approval: Approval) -> AuditEntry:
    """The entry that says that a grant was revoked; the same whoever writes it."""
    return entry_of(
        Act.GRANT_ENDED,
        key=grant.grant_id,
        at_ms=grant.ended_ms or 0,
        about=approval,
        by=grant.ended_by,
        grant=grant.grant_id,
        used=len(grant.uses),
    )


def agent_at(address: str) -> str:
    """The agent that calls from an address: the innermost around the call."""
    return next(reversed(_agents(address)), "")


def agents_at(address: str) -> str:
    """All agents around a call, the outermost first: a name alone is unique among siblings only."""
    return "/".join(name.replace("/", "//") for name in _agents(address))


def _agents(address: str) -> list[str]:
    return [one.id for one in Address.parse(address).segments if one.type == "agent"]
