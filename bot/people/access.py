"""Check who may decide, at every click and modal submission. Fails closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bot.approvals.model import Approval, Kind
from bot.errors import DirectoryError, NotApproverError
from bot.people.requesters import is_requester
from bot.ports.people import CHANNEL, EXCLUDED, Actor, Directory, Person
from bot.words import languages, say


@dataclass(frozen=True, slots=True)
class Access:
    """Checks whether a person may decide, answer, or ask."""

    directory: Directory

    async def check_decider(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not decide this approval.

        Raises:
            NotApproverError: With the reason, in words that the person may read.
            DirectoryError: The look-up failed, so the person may not decide now.
        """
        # Run both checks at once, because a click waits; the first one's reason goes first.
        is_home, is_entitled = await asyncio.gather(
            self.check_person(actor, team_id=approval.team_id),
            self._check_entitled(approval, actor.user_id),
            return_exceptions=True,
        )
        for result in (is_home, is_entitled):
            if isinstance(result, BaseException):
                raise result

    async def _check_entitled(self, approval: Approval, user_id: str) -> None:
        """Refuse a person whom the record does not entitle to decide."""
        if approval.kind is Kind.QUESTION:
            await self._check_answerer(approval, user_id)
            return
        if is_requester(approval, user_id) and not approval.self_approval:
            raise NotApproverError(say("refuse.own_here"))
        if not await self._is_among(decider_names(approval), approval, user_id):
            raise NotApproverError(await self._why_not(approval, user_id))

    async def check_person(self, actor: Actor, *, team_id: str) -> Person:
        """Refuse apps, guests, deactivated people, and people of other workspaces.

        Raises:
            NotApproverError: With the reason, in words that the person may read.
            DirectoryError: The look-up failed.
        """
        return _checked(await self.directory.person(actor.user_id), actor, team_id)

    async def locale(self, user_id: str) -> str:
        """Return a person's locale; empty if irrelevant or unknown."""
        if len(languages()) > 1:
            with suppress(DirectoryError):
                return (await self.directory.person(user_id)).locale
        return ""

    async def _check_answerer(self, approval: Approval, user_id: str) -> None:
        if user_id == approval.requester_id:
            return
        if user_id not in await self.directory.channel_members(approval.channel_id):
            raise NotApproverError(say("refuse.not_member_here"))

    async def _why_not(self, approval: Approval, user_id: str) -> str:
        if approval.escalate_ms is not None and await self._is_among(
            approval.backups, approval, user_id
        ):
            return say("refuse.backup_later")
        return say("refuse.not_among")

    async def _is_among(self, names: Sequence[str], approval: Approval, user_id: str) -> bool:
        for name in names:
            if name == user_id:
                return True
            if name == CHANNEL:
                # Later members do not count: a requester could add them in order to approve.
                members = approval.members
                if members is not None and user_id not in members.get(approval.channel_id, ()):
                    continue
                found = await self.directory.channel_members(approval.channel_id)
            elif name.startswith("S"):
                found = await self.directory.group_members(name)
            else:
                continue
            if user_id in found:
                return True
        return False


def approver_names(approval: Approval) -> tuple[str, ...]:
    """Return the frozen approvers: user ids, user group ids, or `channel`."""
    return tuple(name for name in approval.approvers if not name.startswith(EXCLUDED))


def decider_names(approval: Approval) -> tuple[str, ...]:
    """Return all who may decide now: approvers and, after the escalation, backups."""
    asked = approver_names(approval)
    if approval.escalated_ms is None:
        return asked
    return tuple(dict.fromkeys((*asked, *approval.backups)))


def _checked(person: Person, actor: Actor, team_id: str) -> Person:
    if person.is_deleted:
        raise NotApproverError(say("refuse.deactivated"))
    if person.is_bot:
        raise NotApproverError(say("refuse.app_here"))
    if person.is_external or not person.is_home(actor, team_id):
        raise NotApproverError(say("refuse.external_here"))
    if person.is_guest:
        raise NotApproverError(say("refuse.guest_here"))
    return person
