"""Check whether enough approvers exist, before asking and while pending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from bot.approvals.model import Approval, Decision, Kind, Status
from bot.clock import system_clock
from bot.errors import DirectoryError, NobodyError, NotApproverError, decider_words
from bot.people.access import Access, approver_names, decider_names
from bot.people.current_policy import CurrentPolicy, NoPolicy
from bot.people.lookup import PeopleLookup, channels_of, frozen_members, is_direct
from bot.people.recipient_ids import requirement_words
from bot.people.requesters import editors_of, requesters_of
from bot.people.terms_of import ballot_of, groups_of, terms_of
from bot.policy.missing_approvers import Feasibility, MissingApprovers, prospect
from bot.policy.terms import Terms, TermsError
from bot.ports.people import CHANNEL, MOST_MEMBERS, Actor, Directory
from bot.ports.process import Clock
from bot.words import say

_MOST_LOOKED_UP = 25
"""Limit of people per check. Above it, some are assumed able to decide."""


@dataclass(frozen=True, slots=True)
class FeasibilityCheck:
    """Checks whether the quorum can be reached.

    Args:
        directory: Looks people up.
        channels: Ids of the only channels where requests without terms are allowed; empty for all.
        policy: The policy in force.
        clock: The time now, for rotations.
    """

    directory: Directory
    channels: tuple[str, ...] = ()
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    clock: Clock = system_clock

    async def prepare(self, approval: Approval, *, unknown: Sequence[str] = ()) -> Approval:
        """Complete a new approval: freeze channel members; detect missing approvers.

        Returns:
            The approval to store: pending or undecidable, with the reason.

        Raises:
            DirectoryError: The channel's members decide, and could not be looked up.
        """
        if approval.kind is Kind.QUESTION:
            return approval
        if approval.terms_json:
            return await self._prepare_by_terms(approval, unknown)
        if approval.kind is Kind.APPROVAL and not self._is_place(approval):
            return _undecidable(approval, NobodyError.elsewhere(self.channels))
        approval = await self._with_members(approval)
        missing = await self.missing(approval, unknown=unknown)
        if missing is None:
            return approval
        later = await self.missing(approval, names=approval.backups)
        if approval.escalate_ms is not None and later is None:
            return approval.changed(stuck=str(missing))
        return _undecidable(approval, missing)

    async def missing(
        self,
        approval: Approval,
        *,
        names: Sequence[str] | None = None,
        unknown: Sequence[str] = (),
    ) -> NobodyError | None:
        """Return why an approval cannot be decided now; None if it can, or if unknown.

        Args:
            approval: The approval with its frozen members.
            names: Approvers to check; None for the current ones.
            unknown: Names in the policy that match no id.
        """
        if approval.terms_json:
            try:
                return await self._shortage(approval, await self._prospect(approval))
            except TermsError as error:
                return NobodyError([("", str(error))])
        looked = decider_names(approval) if names is None else names
        return await self._missing_of(looked, approval, unknown)

    async def _missing_of(
        self, looked: Sequence[str], approval: Approval, unknown: Sequence[str]
    ) -> NobodyError | None:
        """Return why none of these people or groups can decide."""
        obstacles = [(name, say("nobody.no_id")) for name in unknown]
        asked = () if approval.self_approval else requesters_of(approval)
        excluded = {*asked, *_spent(approval)}
        try:
            for name in looked:
                people = await self._people(name, approval)
                if not people:
                    obstacles.append((name, _why_empty(name, approval)))
                able = [one for one in people if one not in excluded]
                if people and not able:
                    obstacles.append((name, _why_excluded(name, approval)))
                if len(able) > _MOST_LOOKED_UP:
                    return None
                for user_id in able:
                    why = await self._why_not(user_id, approval)
                    if not why:
                        return None
                    obstacles.append((user_id, why))
        except DirectoryError:
            return None
        return NobodyError(obstacles, is_direct=is_direct(approval))

    async def _prepare_by_terms(self, approval: Approval, unknown: Sequence[str]) -> Approval:
        """Freeze members of channels that decide; check whether the quorum can be reached."""
        if unknown:
            obstacles = [(name, say("nobody.no_id")) for name in unknown]
            return _undecidable(approval, NobodyError(obstacles))
        try:
            approval = await self._with_channels(approval)
            found = await self._prospect(approval)
        except TermsError as error:
            return _undecidable(approval, NobodyError([("", str(error))]))
        missing = await self._shortage(approval, found)
        if missing is not None and found.is_never:
            return _undecidable(approval, missing)
        return approval.changed(stuck=str(missing) if missing is not None else "")

    async def _shortage(self, approval: Approval, found: Feasibility) -> NobodyError | None:
        """Return what is missing; channels that are too large are named first."""
        if found.shortage is None:
            return None
        groups = terms_of(approval).groups.values()
        obstacles = []
        for name in dict.fromkeys(one for group in groups for one in channels_of(group, approval)):
            with suppress(DirectoryError):
                count = len(await self.directory.channel_members(name))
                if count > MOST_MEMBERS:
                    words = say("nobody.too_large", count=f"{count:,}", most=MOST_MEMBERS)
                    obstacles.append(("", f"<#{name}> {words}"))
        terms = terms_of(approval)
        if is_direct(approval) and any(one.here for one in groups):
            return NobodyError([("", say("nobody.only_here"))], is_direct=True)
        return NobodyError([*obstacles, ("", _shortage_words(terms, found.shortage))])

    async def _prospect(self, approval: Approval) -> Feasibility:
        """Whether distinct people can fill all slots, now or after a step (4.6).

        Raises:
            TermsError: The terms or the votes are invalid.
        """
        ballot = ballot_of(approval)
        census = PeopleLookup(self.directory, self.policy, self.clock)
        groups = groups_of(ballot, steps=len(ballot.terms.escalate))
        voters = {one for vote in ballot.votes for one in vote.persons}
        standing = await census.take(approval, ballot.terms, people=(), groups=groups)
        able = {one for members in standing.members.values() for one in members}
        if len(able | voters) <= _MOST_LOOKED_UP:  # above that, one person is assumed able
            people = [Actor(user_id=one, team_id="") for one in able | voters]
            found = await census.take(approval, ballot.terms, people=people, groups=())
            standing = replace(standing, people=found.people)
        return prospect(ballot, standing)

    async def _with_channels(self, approval: Approval) -> Approval:
        """Freeze the members of all channels that decide (1.5); none of large channels.

        Raises:
            DirectoryError: A channel could not be looked up.
        """
        known = frozen_members(approval) or {}
        groups = terms_of(approval).groups.values()
        places = {one for group in groups for one in channels_of(group, approval)}
        for name in sorted(places - known.keys()):
            found = await self.directory.channel_members(name)
            known[name] = found if len(found) <= MOST_MEMBERS else frozenset()
        members = {name: tuple(sorted(people)) for name, people in known.items()}
        return approval.changed(members=members) if known else approval

    def _is_place(self, approval: Approval) -> bool:
        return not self.channels or approval.channel_id in self.channels

    async def _with_members(self, approval: Approval) -> Approval:
        if approval.members is not None:
            return approval  # a doubt or an edited call keeps its original members
        if CHANNEL not in {*approver_names(approval), *approval.backups}:
            return approval
        members: Iterable[str] = ()
        if approval.channel_id in self.channels and not is_direct(approval):
            members = await self.directory.channel_members(approval.channel_id)
            members = sorted(members) if len(members) <= MOST_MEMBERS else ()
        return approval.changed(members={approval.channel_id: tuple(members)})

    async def _people(self, name: str, approval: Approval) -> list[str]:
        """Return the people that a name denotes and who can see the card."""
        if name == CHANNEL:
            people: Sequence[str] = (approval.members or {}).get(approval.channel_id, ())
        elif name.startswith("S"):
            people = sorted(await self.directory.group_members(name))
        else:
            people = [name]
        if is_direct(approval):  # a direct message has no other members
            people = [one for one in people if one in requesters_of(approval)]
        return [*islice(people, MOST_MEMBERS)]

    async def _why_not(self, user_id: str, approval: Approval) -> str:
        try:
            actor = Actor(user_id=user_id, team_id="")
            await Access(self.directory).check_person(actor, team_id=approval.team_id)
        except NotApproverError as error:
            return say("nobody.cannot", why=error.reason.rstrip("."))
        return ""


def _spent(approval: Approval) -> set[str]:
    """Return people who have voted in another gate of this call or edited it."""
    edited = editors_of(approval) if approval.editors_excluded else ()
    return {*approval.counted, *edited}


def _why_excluded(name: str, approval: Approval) -> str:
    if name == CHANNEL or name.startswith("S"):
        return say("nobody.only_requesters")
    return say("nobody.had_say" if name in _spent(approval) else "nobody.requested")


def _why_empty(name: str, approval: Approval) -> str:
    if is_direct(approval):
        return say("nobody.direct")
    if name == CHANNEL:
        return say("nobody.too_many", n=MOST_MEMBERS)
    return say("nobody.empty" if name.startswith("S") else "nobody.unknown")


def _shortage_words(terms: Terms, shortage: MissingApprovers) -> str:
    """Describe what is required and how many approvers are left."""
    known = {one.name: one for stage in terms.stages for one in stage.approve}
    needs = [
        say("line.so_many", n=count, group=requirement_words(terms, known[name]))
        for name, count in shortage.needs
    ]
    words = needs[0] if len(needs) == 1 else say("line.and", a=", ".join(needs[:-1]), b=needs[-1])
    who = decider_words(shortage.left)
    return say("nobody.left", needs=words, who=who) if who else say("nobody.needs", needs=words)


def _undecidable(approval: Approval, why: NobodyError) -> Approval:
    decision = Decision(
        status=Status.UNDECIDABLE,
        by="",
        at_ms=approval.created_ms,
        reason=str(why),
        digest=approval.digest,
    )
    return approval.changed(
        status=Status.UNDECIDABLE,
        decision=decision,
        remind_ms=None,
        escalate_ms=None,
    )
