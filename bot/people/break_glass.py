"""Break-glass: who may run a call without its approvers, and the reasons that they give."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from bot.errors import DirectoryError
from bot.people.lookup import PeopleLookup
from bot.policy.eligibility import EDITORS, Eligibility, PeopleSnapshot
from bot.policy.progress import ballot_of, groups_of
from bot.policy.refusals import RefusalCode
from bot.policy.tally import Ballot
from bot.ports.people import Actor
from bot.records.approval import Approval, Kind
from bot.records.terms import BreakGlass, Terms
from bot.words import say

LEAST_REASON = 10
"""Minimum number of visible characters in each reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """The two reasons of a break-glass decision.

    Attributes:
        what: What is wrong.
        why_now: Why the call cannot wait.
        is_sure: Whether the checkbox was ticked.
    """

    what: str
    why_now: str
    is_sure: bool

    @property
    def faults(self) -> dict[str, str]:
        """Return the errors of the form by input; empty if it is valid."""
        errors = {
            name: say("error.short", n=LEAST_REASON)
            for name, text in (("what", self.what), ("why_now", self.why_now))
            if len(_normalized(text)) < LEAST_REASON
        }
        if not errors and _normalized(self.what) == _normalized(self.why_now):
            errors["why_now"] = say("error.same_reason")
        if not self.is_sure:
            errors["sure"] = say("error.tick")
        return errors


def glass_of(approval: Approval) -> BreakGlass | None:
    """Return who may break glass under the frozen terms, or None."""
    if approval.kind is not Kind.APPROVAL:
        return None
    terms = approval.terms
    return None if terms.always_ask else terms.break_glass


async def why_not_break(
    lookup: PeopleLookup, approval: Approval, actor: Actor
) -> RefusalCode | None:
    """Return why a person may not break glass, or None. Requesters may, too.

    Exclusion of a group by the rule applies here, too, because it concerns its people and not their
    part in this call.

    Raises:
        DirectoryError: A look-up failed.
    """
    glass, terms = glass_of(approval), approval.terms
    groups = glass.groups if glass is not None else ()
    barred = Eligibility(terms, PeopleSnapshot(people={}, members={})).excluded
    snapshot = await lookup.snapshot_of(approval, terms, people=[actor], groups={*groups, *barred})
    problem = snapshot.people.get(actor.user_id)
    if problem is not None:
        return RefusalCode(problem.value)
    is_among = snapshot.is_among(groups, actor.user_id)
    if actor.user_id not in snapshot.people or is_among is None:
        raise DirectoryError("an emergency", again=snapshot.again)
    if not is_among:
        return RefusalCode.NOT_APPROVER
    is_barred = snapshot.is_among(barred, actor.user_id)
    if is_barred is None:
        raise DirectoryError("an emergency", again=snapshot.again)
    return RefusalCode.EXCLUDED if is_barred else _bar(terms, snapshot, actor.user_id)


async def has_lost_glass(lookup: PeopleLookup, approval: Approval, user_id: str) -> bool:
    """Whether the person who broke glass has since lost that right.

    Raises:
        DirectoryError: A look-up failed.
    """
    return await why_not_break(lookup, approval, Actor(user_id=user_id, team_id="")) is not None


async def left_out(lookup: PeopleLookup, approval: Approval, by: str) -> frozenset[str]:
    """Return the other people who could have decided, as far as known."""
    ballot = ballot_of(approval)
    names = groups_of(ballot)
    snapshot = await lookup.snapshot_of(approval, ballot.terms, people=(), groups=names)
    rights = Eligibility(ballot.terms, snapshot)
    people = {
        user_id
        for name in _deciding(ballot, rights)
        for user_id in snapshot.members.get(name, frozenset())
    }
    return frozenset(user_id for user_id in people - {by} if not rights.bars(user_id))


async def was_told(lookup: PeopleLookup, approval: Approval, user_id: str) -> bool:
    """Whether a person was alerted that the call runs without them.

    Raises:
        DirectoryError: A look-up failed.
    """
    decision, glass = approval.decision, glass_of(approval)
    if decision is None or not decision.emergency or glass is None or user_id == decision.by:
        return False
    if user_id in await lookup.directory.channel_members(glass.alert):
        return True
    return user_id in await left_out(lookup, approval, decision.by)


def _deciding(ballot: Ballot, rights: Eligibility) -> set[str]:
    return {
        name
        for stage in ballot.stages
        for requirement in stage.approve
        for name in rights.groups(requirement, ballot.steps)
    }


def _bar(terms: Terms, snapshot: PeopleSnapshot, user_id: str) -> RefusalCode | None:
    """Return the refusal of a person who edited the call or voted in another gate."""
    if EDITORS in terms.exclude and user_id in snapshot.editors:
        return RefusalCode.OWN_EDIT
    return RefusalCode.USED_UP if user_id in snapshot.counted else None


def _normalized(text: str) -> str:
    """Normalize a text: case, invisible characters and spaces."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    shown = (
        char if not char.isspace() and not unicodedata.category(char).startswith("C") else " "
        for char in plain
    )
    return " ".join("".join(shown).split())
