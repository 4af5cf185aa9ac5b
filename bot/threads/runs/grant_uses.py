"""Find standing grants before requesting approval, and use them at the start, once per call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agents import AgentError
from agents.core.address import Address
from agents.core.digest import canonical_json
from agents.core.scope import StartingCall
from agents.policy.base import PolicyCall
from bot.approvals.grants import Grants, agents_at, granted_entry, has_approved
from bot.audit.acts import Act
from bot.audit.entries import call_key, note
from bot.errors import DeliveryError, DirectoryError
from bot.policy.grants import fixed_part, limits_of
from bot.ports.process import Clock, Spawn
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval
from bot.records.messages import Post
from bot.records.people import Grant
from bot.records.terms import GrantTerms, Terms
from bot.redaction.masks import Names
from bot.stores import Stores
from bot.threads.outbox import Outbox
from bot.words import say
from storage.errors import RecordNotFoundError
from storage.thread_ids import channel_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call that needs approval; `program` is the id of the program that makes it, if one does."""

    call: PolicyCall
    terms: Terms
    thread_id: str
    requesters: Sequence[str]
    key: str
    program: str = ""


@dataclass(frozen=True, slots=True)
class GrantCheck:
    """Finds standing grants."""

    grants: Grants

    async def find_grant(self, new: NewCall) -> Grant | None:
        """Return a grant that lets a call start, or None if the call needs approval.

        Nothing is used yet: see `GrantUses`.
        """
        limits = limits_of(new.terms)
        if limits is None:
            return None
        store, now = self.grants.storage.grants, self.grants.clock()
        if new.program:
            grants = await store.of_program(new.program, now_ms=now)
        else:
            grants = await store.current(new.thread_id, now_ms=now)
        for grant in grants:
            if _covers(grant, new, limits) and await self._counts(grant, new):
                return grant
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

    async def tell(self, grant: Grant, approval: Approval, call: StartingCall, key: str) -> None:
        """Store and post a line; if Slack fails, it is posted at the end of the turn.

        Args:
            grant: The grant, with the use.
            approval: The approval that it was given with.
            call: The call that uses it.
            key: Id of the use.
        """
        uses = grant.uses
        number = uses.index(key) + 1 if key in uses else len(uses)
        run = await self._as_record(approval, call)
        post = Post(
            post_id=f"{grant.grant_id}:{key}",
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

    async def _as_record(self, approval: Approval, call: StartingCall) -> Approval:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUses:
    """Uses standing grants, when their calls start.

    Attributes:
        grants: The grants.
        lines: Posts the uses.
        file_hash: Returns the hash of the policy file in force.
        spawn: Starts a task.
    """

    grants: Grants
    lines: UseLines
    file_hash: Callable[[], str]
    spawn: Spawn

    async def use(self, call: StartingCall) -> bool:
        """Use the grant of a call, record that and post it; a call uses its grant once.

        Returns:
            Whether the call may start; False if the grant is over, or was used up meanwhile.

        Raises:
            StorageError: The use could not be stored or recorded.
        """
        storage, now = self.grants.storage, self.grants.clock()
        key = call_key(call.checkpoint_id, call.address, call.arguments)
        try:
            grant = await storage.grants.get(call.grant)
            due_ms = self.grants.drawn_ms(now)
            approval = await storage.approvals.get(grant.approval_id)
            used = await storage.grants.use(grant, call=key, now_ms=now, due_ms=due_ms)
        except RecordNotFoundError:
            return False
        if used is None:
            return False
        self.spawn(self.grants.show_later(used.grant_id))
        await note(
            storage.audit,
            Act.GRANT_USED,
            key=key,
            at_ms=now,
            about=used.thread_id,
            checkpoint=call.checkpoint_id,
            address=call.address,
            tool=call.tool,
            call=Address.parse(call.address).segments[-1].sub_id,
            masks=Names(secret=call.secret, shown=call.shown),
            arguments=dict(call.arguments),
            rule=approval.rule,
            grant=used.grant_id,
            policy=self.file_hash(),
        )
        await self.lines.tell(used, approval, call, key)
        return True


def _is_own(approval: Approval, new: NewCall) -> bool:
    """Whether a person whose right approved the grant requested the call."""
    people = frozenset(user_id for vote in approval.votes for user_id in vote.persons)
    return not people.isdisjoint(new.requesters)


def _covers(grant: Grant, new: NewCall, limits: GrantTerms) -> bool:
    """Whether a grant covers a call; see `Grant`."""
    call = new.call
    requesters, given_by = set(new.requesters), set(grant.requesters)
    has_uses = not grant.is_used_up or new.key in grant.uses
    is_same = (grant.program, channel_of(grant.thread_id), grant.agent) == (
        new.program,
        channel_of(new.thread_id),
        agents_at(call.address),
    )
    is_same = is_same and (grant.tool, grant.ruling) == (call.tool, new.terms.digest)
    if not (has_uses and is_same and requesters and requesters <= given_by):
        return False
    if not {*grant.vary} <= {*limits.vary}:
        return False
    return canonical_json(fixed_part(call.arguments, grant.vary)) == canonical_json(grant.arguments)
