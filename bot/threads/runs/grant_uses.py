"""Use standing grants in a run, once per call, before requesting approval."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents import AgentError
from agents.core.digest import canonical_json
from agents.policy.base import PolicyCall
from bot.approvals.grants import Grants, agents_at, granted_entry, has_approved
from bot.errors import DeliveryError, DirectoryError
from bot.policy.grants import fixed_part, limits_of
from bot.ports.process import Clock, Spawn
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval
from bot.records.messages import Post
from bot.records.people import Grant
from bot.records.terms import GrantTerms, Terms
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call that needs approval."""

    call: PolicyCall
    terms: Terms
    thread_id: str
    requesters: Sequence[str]
    key: str


@dataclass(frozen=True, slots=True)
class GrantCheck:
    """Uses standing grants."""

    grants: Grants
    spawn: Spawn

    async def use(self, new: NewCall) -> Grant | None:
        """Use a grant for a call, with one conditional write as the last step.

        Returns:
            The grant with that use; None if the call needs approval.
        """
        limits = limits_of(new.terms)
        if limits is None:
            return None
        store, now = self.grants.storage.grants, self.grants.clock()
        for grant in await store.current(new.thread_id, now_ms=now):
            if not _covers(grant, new, limits) or not await self._counts(grant, new):
                continue
            now = self.grants.clock()
            due_ms = self.grants.drawn_ms(now)
            used = await store.use(grant, call=new.key, now_ms=now, due_ms=due_ms)
            if used is not None:
                self.spawn(self.grants.show_later(used.grant_id))
                return used
        return None

    async def _counts(self, grant: Grant, new: NewCall) -> bool:
        """Whether the grantor still has the right, and the grant's message is visible.

        A delegating person counts like the grantor: neither may have requested the call.
        """
        storage = self.grants.storage
        try:
            approval = await storage.approvals.get(grant.approval_id)
            if not has_approved(approval, grant.granter_id) or _is_own(approval, new):
                return False
            if await self.grants.votes().gone_since(approval):
                return False
            if not grant.card_ts:
                await self.grants.show(grant.grant_id)
        except (DirectoryError, DeliveryError, RecordNotFoundError) as error:
            logger.warning(
                "standing permission not applied, asking instead: %s",
                type(error).__name__,
                extra={"action": "grant_not_used", "thread_id": grant.thread_id},
            )
            return False
        # The process that created it may have crashed before this entry.
        await storage.audit.append(granted_entry(grant, approval))
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class UseLines:
    """Posts the use of a standing grant in the thread, with the call's arguments."""

    storage: Stores
    outbox: Outbox
    clock: Clock
    words: Callable[[Grant, Approval, int], str]
    check_call: Callable[[Approval, dict[str, Any]], Awaitable[CheckedCall]]

    async def tell(self, grant_id: str, call: PolicyCall, key: str) -> None:
        """Store and post a line; if Slack fails, it is posted at the end of the turn."""
        grant = await self.storage.grants.get(grant_id)
        approval = await self.storage.approvals.get(grant.approval_id)
        uses = grant.uses
        number = uses.index(key) + 1 if key in uses else len(uses)
        run = await self._as_record(approval, call)
        post = Post(
            post_id=f"{grant_id}:{key}",
            thread_id=grant.thread_id,
            text=self.words(grant, run, number),
            created_ms=self.clock(),
        )
        thread = await self.storage.threads.get(grant.thread_id)
        try:
            await self.outbox.say(thread, post)
        except DeliveryError as error:
            logger.warning(
                "a use of a standing permission is shown later: %s",
                error,
                extra={"action": "grant_use_not_shown", "thread_id": grant.thread_id},
            )

    async def _as_record(self, approval: Approval, call: PolicyCall) -> Approval:
        """Return the grant's approval with the text and arguments of another call."""
        arguments = dict(call.arguments)
        title, preview = "", ""
        with suppress(AgentError, DirectoryError):
            checked = await self.check_call(approval, arguments)
            title, preview = checked.title, checked.preview
        return approval.changed(
            title=title or say("card.other_arguments", tool=call.tool),
            preview=preview,
            arguments=arguments,
            decision=None,
        )


def _is_own(approval: Approval, new: NewCall) -> bool:
    """Whether a person whose right approved the grant requested the call."""
    people = frozenset(user_id for vote in approval.votes for user_id in vote.persons)
    return not people.isdisjoint(new.requesters)


def _covers(grant: Grant, new: NewCall, limits: GrantTerms) -> bool:
    """Whether a grant covers a call; see `Grant`."""
    call = new.call
    requesters, given_by = set(new.requesters), set(grant.requesters)
    has_uses = not grant.is_used_up or new.key in grant.uses
    is_same = (grant.agent, grant.tool, grant.ruling) == (
        agents_at(call.address),
        call.tool,
        new.terms.digest,
    )
    if not (has_uses and is_same and requesters and requesters <= given_by):
        return False
    if not {*grant.vary} <= {*limits.vary}:
        return False
    return canonical_json(fixed_part(call.arguments, grant.vary)) == canonical_json(grant.arguments)
