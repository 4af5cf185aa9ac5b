"""Quorum: are enough approvers left? Checked before asking and while pending."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from bot.clock import system_clock
from bot.errors import DirectoryError, NobodyError, decider_words
from bot.people.approvers import named_by, requirement_words
from bot.people.lookup import MOST_LOOKED_UP, PeopleLookup, channels_of, frozen_members, is_direct
from bot.policy.missing_approvers import Feasibility, MissingApprovers, feasibility_of
from bot.policy.progress import ballot_of, groups_of
from bot.ports.people import MOST_MEMBERS, Actor, Directory
from bot.ports.policy import CurrentPolicy, NoPolicy
from bot.ports.process import Clock
from bot.records.approval import Approval, Decision, Kind, Status
from bot.records.terms import Terms, TermsError
from bot.words import say


@dataclass(frozen=True, slots=True)
class QuorumCheck:
    """Checks whether the quorum can be reached.

    Args:
        directory: Looks people up.
        policy: The policy in force.
        clock: The time now, for rotations.
    """

    directory: Directory
    policy: CurrentPolicy = field(default_factory=NoPolicy)
    clock: Clock = system_clock

    async def prepare(self, approval: Approval, *, unknown: Sequence[str] = ()) -> Approval:
        """Complete a new approval: freeze channel members; detect missing approvers.

        Returns:
            The approval to store: pending or undecidable, with the reason.

        Raises:
            DirectoryError: The channel's members decide, and could not be looked up.
        """
        if approval.kind is Kind.QUESTION or approval.status is not Status.PENDING:
            return approval
        return await self._prepare(approval, unknown)

    async def missing(self, approval: Approval) -> NobodyError | None:
        """Return why an approval cannot be decided now; None if it can, or if unknown."""
        try:
            return await self._shortage(approval, await self._feasibility(approval))
        except TermsError as error:
            return NobodyError([("", str(error))])

    async def _prepare(self, approval: Approval, unknown: Sequence[str]) -> Approval:
        """Freeze members of channels that decide; check whether the quorum can be reached."""
        if unknown:
            obstacles = [(name, say("nobody.no_id")) for name in unknown]
            return undecidable(approval, NobodyError(obstacles))
        try:
            approval = await self._with_channels(approval)
            feasibility = await self._feasibility(approval)
        except TermsError as error:
            return undecidable(approval, NobodyError([("", str(error))]))
        missing = await self._shortage(approval, feasibility)
        if missing is not None and feasibility.is_never:
            return undecidable(approval, missing)
        return approval.changed(stuck=str(missing) if missing is not None else "")

    async def _shortage(self, approval: Approval, feasibility: Feasibility) -> NobodyError | None:
        """Return what is missing; channels that are too large are named first."""
        if feasibility.shortage is None:
            return None
        groups = approval.terms.groups.values()
        obstacles = []
        for name in dict.fromkeys(
            channel for group in groups for channel in channels_of(group, approval)
        ):
            with suppress(DirectoryError):
                count = len(await self.directory.channel_members(name))
                if count > MOST_MEMBERS:
                    words = say("nobody.too_large", count=f"{count:,}", most=MOST_MEMBERS)
                    obstacles.append(("", f"<#{name}> {words}"))
        terms = approval.terms
        if not any(named_by(terms, requirement) for requirement in terms.requirements.values()):
            return NobodyError([])
        if is_direct(approval) and any(group.here for group in groups):
            return NobodyError([("", say("nobody.only_here"))], is_direct=True)
        return NobodyError([*obstacles, ("", _shortage_words(terms, feasibility.shortage))])

    async def _feasibility(self, approval: Approval) -> Feasibility:
        """Whether distinct people can fill all slots, now or after a step.

        Raises:
            TermsError: The terms or the votes are invalid.
        """
        ballot = ballot_of(approval)
        lookup = PeopleLookup(self.directory, self.policy, self.clock)
        groups = groups_of(ballot, steps=len(ballot.terms.escalate))
        voters = {user_id for vote in ballot.votes for user_id in vote.persons}
        snapshot = await lookup.snapshot_of(approval, ballot.terms, people=(), groups=groups)
        able = {user_id for members in snapshot.members.values() for user_id in members}
        if len(able | voters) <= MOST_LOOKED_UP:  # above that, one person is assumed able
            people = [Actor(user_id=user_id, team_id="") for user_id in able | voters]
            people_snapshot = await lookup.snapshot_of(
                approval, ballot.terms, people=people, groups=()
            )
            snapshot = replace(snapshot, people=people_snapshot.people)
        return feasibility_of(ballot, snapshot)

    async def _with_channels(self, approval: Approval) -> Approval:
        """Freeze the members of all channels that decide; none of large channels.

        Raises:
            DirectoryError: A channel could not be looked up.
        """
        known = frozen_members(approval) or {}
        # The definitions in force count, too: a narrowed group names fewer sources than they do.
        names, present = approval.terms.groups, self.policy.groups() or {}
        groups = [*names.values(), *(present[name] for name in names if name in present)]
        places = {channel for group in groups for channel in channels_of(group, approval)}
        for name in sorted(places - known.keys()):
            user_ids = await self.directory.channel_members(name)
            known[name] = user_ids if len(user_ids) <= MOST_MEMBERS else frozenset()
        members = {name: tuple(sorted(people)) for name, people in known.items()}
        return approval.changed(members=members) if known else approval


def _shortage_words(terms: Terms, shortage: MissingApprovers) -> str:
    """Describe what is required and how many approvers are left."""
    known = {
        requirement.name: requirement for stage in terms.stages for requirement in stage.approve
    }
    needs = [
        say("line.so_many", n=count, group=requirement_words(terms, known[name]))
        for name, count in shortage.needs
    ]
    words = needs[0] if len(needs) == 1 else say("line.and", a=", ".join(needs[:-1]), b=needs[-1])
    who = decider_words(shortage.left)
    return say("nobody.left", needs=words, who=who) if who else say("nobody.needs", needs=words)


def undecidable(approval: Approval, why: NobodyError) -> Approval:
    """Return a new approval as one that nobody can decide."""
    decision = Decision(
        status=Status.UNDECIDABLE,
        by="",
        at_ms=approval.created_ms,
        reason=str(why),
        digest=approval.digest,
    )
    return approval.changed(status=Status.UNDECIDABLE, decision=decision)
