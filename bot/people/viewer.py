"""Viewer: which requests one person may see, and which wait for them.

Requests are judged as the person's vote would be, so a list holds only requests that they may
decide. Look-ups may be a minute old; a click looks everything up again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.errors import DirectoryError, NotApproverError
from bot.people.access import NO_CHANNEL, Access
from bot.people.break_glass import glass_of
from bot.people.lookup import PeopleLookup, delegations_of, problem_of
from bot.policy.eligibility import Delegation, Eligibility, Exclusion, PeopleSnapshot, either, every
from bot.policy.progress import ballot_of, groups_of
from bot.policy.refusals import VoteAttempt, judge_vote
from bot.policy.tally import Ballot
from bot.ports.people import Actor, Directory
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock
from bot.records.approval import AGAIN, APPROVE, Approval, Kind
from bot.records.people import DelegationStore
from bot.words import say

_ANY_REASON = "…"
"""Placeholder for a reason that the person may give later."""


@dataclass(frozen=True, slots=True)
class Viewers:
    """Makes a viewer for each person who asks."""

    directory: Directory
    policy: CurrentPolicy
    clock: Clock
    delegations: DelegationStore

    async def viewer_of(self, actor: Actor, team_id: str) -> Viewer:
        """Return what one person may see and decide.

        Raises:
            StorageError: The delegations could not be read.
        """
        now = self.clock()
        handed = delegations_of(await self.delegations.current(team_id, now_ms=now))
        lookup = PeopleLookup(self.directory, self.policy, self.clock)
        return Viewer(self.directory, lookup, actor, handed, now)

    async def can_see(self, approval: Approval, actor: Actor) -> bool:
        """Whether a person may read the whole request now; see `Viewer.can_see`.

        Raises:
            DirectoryError: A look-up failed.
        """
        return await (await self.viewer_of(actor, approval.team_id)).can_see(approval)

    async def is_withheld(self, approval: Approval, actor: Actor) -> bool:
        """Whether a person may not read a request now; True if a look-up fails."""
        try:
            return not await self.can_see(approval, actor)
        except DirectoryError:
            return True

    async def check_can_see(self, approval: Approval, actor: Actor) -> None:
        """Refuse a person who may not read a request now; see `can_see`.

        Raises:
            NotApproverError: They may not.
            DirectoryError: A look-up failed.
        """
        if not await self.can_see(approval, actor):
            raise NotApproverError(say("refuse.withheld"))


@dataclass(slots=True)
class Viewer:
    """Tells what one person may see and decide; caches groups that several approvals share."""

    directory: Directory
    lookup: PeopleLookup
    actor: Actor
    handed: Sequence[Delegation]
    now_ms: int
    _known: dict[tuple[object, ...], PeopleSnapshot] = field(default_factory=dict)
    _readable: dict[str, bool] = field(default_factory=dict)

    async def decidable(self, approvals: Iterable[Approval]) -> list[Approval]:
        """Return the pending approvals that wait for this person, in their order."""
        return [approval for approval in approvals if await self.can_decide(approval)]

    async def can_decide(self, approval: Approval) -> bool:
        """Whether the person could decide or answer now; False if a look-up fails."""
        if approval.kind is Kind.QUESTION:
            return await self._may_answer(approval)
        ballot = ballot_of(approval)
        attempt = VoteAttempt(
            by=self.actor.user_id,
            choice=AGAIN if ballot.is_doubt else APPROVE,
            at_ms=self.now_ms,
            digest=ballot.digest,
            note=_ANY_REASON,
        )
        return (
            judge_vote(ballot, attempt, await self._snapshot_of(approval, ballot)).refusal is None
        )

    async def may_see(self, approval: Approval) -> bool:
        """Whether the person may read the whole request now; False if a look-up fails."""
        try:
            return await self.can_see(approval)
        except DirectoryError:
            return False

    async def can_see(self, approval: Approval) -> bool:
        """Whether the person may read the whole request now, pending or ended.

        They may if they can read a channel that has its card, or if it names them as an approver.
        Being its requester or having decided it is not enough: they may have lost access to a
        private channel.

        Raises:
            DirectoryError: A look-up failed.
        """
        person = await self.directory.person(self.actor.user_id)
        if problem_of(person, self.actor, approval.team_id) is not None:
            return False
        failed: DirectoryError | None = None
        for channel_id in _channels(approval):
            try:
                if await self.can_read(channel_id):
                    return True
            except DirectoryError as error:
                failed = error
        is_asked = await self._is_asked(approval)
        if not is_asked and (failed is not None or is_asked is None):
            raise failed or DirectoryError("a reader")
        return bool(is_asked)

    async def can_read(self, channel_id: str) -> bool:
        """Whether the person can read a channel in Slack.

        Raises:
            DirectoryError: A look-up failed.
        """
        if channel_id not in self._readable:
            try:
                members = await self.directory.channel_members(channel_id)
                is_in = self.actor.user_id in members
                self._readable[channel_id] = is_in or await self.directory.is_public(channel_id)
            except DirectoryError as error:
                if not error.detail.endswith(NO_CHANNEL):
                    raise
                self._readable[channel_id] = False
        return self._readable[channel_id]

    async def _is_asked(self, approval: Approval) -> bool | None:
        """Whether the person's own or delegated right counts for a request.

        Returns:
            None if a look-up failed.
        """
        if approval.kind is Kind.QUESTION:
            return False
        ballot = ballot_of(approval)
        terms, by = ballot.terms, self.actor.user_id
        snapshot = await self.lookup.snapshot_of(
            approval,
            terms,
            people=[self.actor],
            groups=groups_of(ballot, steps=ballot.steps),
            handed=self.handed if terms.delegation else (),
        )
        rights = Eligibility(terms, snapshot)
        if rights.exclusion(by) in {Exclusion.OWN_REQUEST, Exclusion.EXCLUDED}:
            return False
        needed = [requirement for stage in ballot.stages for requirement in stage.approve]
        return either(
            every((rights.holds(right, by), rights.fits(right, requirement, ballot.steps)))
            for right in rights.of(by)
            for requirement in needed
        )

    async def _may_answer(self, approval: Approval) -> bool:
        by = self.actor.user_id
        try:
            person = await self.directory.person(by)
            if problem_of(person, self.actor, approval.team_id) is not None:
                return False
            return await Access(self.directory).is_entitled(approval, by)
        except DirectoryError:
            return False

    async def _snapshot_of(self, approval: Approval, ballot: Ballot) -> PeopleSnapshot:
        """Look up an approval's people; usually the same as the previous one's."""
        groups = groups_of(ballot, is_begun=True)
        voters = {user_id for vote in ballot.votes for user_id in vote.persons} - {
            self.actor.user_id
        }
        members = approval.members
        known = None if members is None else tuple(members.items())
        where = (approval.team_id, approval.channel_id, known)
        about = tuple(
            delegation
            for delegation in self.handed
            if delegation.approval_id == approval.approval_id
        )
        key = (ballot.terms.digest, *where, groups, frozenset(voters), ballot.stage, about)
        snapshot = self._known.get(key)
        if snapshot is None:
            people = [
                self.actor,
                *(Actor(user_id=user_id, team_id="") for user_id in sorted(voters)),
            ]
            snapshot = self._known[key] = await self.lookup.snapshot_of(
                approval,
                ballot.terms,
                people=people,
                groups=groups,
                handed=self.handed if ballot.terms.delegation else (),
            )
        return replace(
            snapshot,
            requesters=frozenset(approval.all_requesters),
            editors=frozenset(approval.edits.editors),
            counted=frozenset(approval.counted),
        )


def _channels(approval: Approval) -> tuple[str, ...]:
    """Return ids of channels that have a card of a request or its break-glass alert."""
    channel_ids = [approval.channel_id, approval.elsewhere]
    if approval.decision is not None and approval.decision.emergency:
        glass = glass_of(approval)
        channel_ids.append(glass.alert if glass is not None else "")
    return tuple(dict.fromkeys(channel_id for channel_id in channel_ids if channel_id))
