"""Check who may answer and ask, at every click and modal submission. Fails closed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bot.errors import DirectoryError, NotApproverError
from bot.people.approvers import approvers_of
from bot.ports.people import CHANNEL, Actor, Directory, Person
from bot.records.approval import Approval
from bot.words import say

NO_CHANNEL = ("channel_not_found", "not_in_channel")
"""Slack error codes of channels that the bot cannot read."""


@dataclass(frozen=True, slots=True)
class Access:
    """Checks whether a person may answer or ask."""

    directory: Directory

    async def check_answerer(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not answer this question.

        Raises:
            NotApproverError: With the reason, in words that the person may read.
            DirectoryError: The look-up failed, so the person may not answer now.
        """
        # Run both checks at once, because the person waits. If both fail, raise the first error.
        is_home, is_entitled = await asyncio.gather(
            self.check_person(actor, team_id=approval.team_id),
            self._check_entitled(approval, actor.user_id),
            return_exceptions=True,
        )
        for result in (is_home, is_entitled):
            if isinstance(result, BaseException):
                raise result

    async def check_person(self, actor: Actor, *, team_id: str) -> Person:
        """Refuse apps, guests, deactivated people, and people of other workspaces.

        Raises:
            NotApproverError: With the reason, in words that the person may read.
            DirectoryError: The look-up failed.
        """
        return _checked(await self.directory.person(actor.user_id), actor, team_id)

    async def _check_entitled(self, approval: Approval, user_id: str) -> None:
        if not await self.is_entitled(approval, user_id):
            is_open = CHANNEL in approvers_of(approval)
            key = "refuse.not_member_here" if is_open else "refuse.not_asked_here"
            raise NotApproverError(say(key))

    async def is_entitled(self, approval: Approval, user_id: str) -> bool:
        """Whether a question is for a person: members of its channel, and who asked there.

        If a program named people, only they may answer, while they are members.
        A requester who left a public channel can still read it. One who left a private channel
        counts no longer.

        Raises:
            DirectoryError: A look-up failed.
        """
        channel_id, directory = approval.channel_id, self.directory
        names = approvers_of(approval)
        if CHANNEL not in names and user_id not in names:
            return False
        try:
            if user_id in await directory.channel_members(channel_id):
                return True
            return user_id == approval.requester_id and await directory.is_public(channel_id)
        except DirectoryError as error:
            if error.detail.endswith(NO_CHANNEL):
                return False
            raise


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
