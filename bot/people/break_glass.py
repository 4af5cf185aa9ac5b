"""Break-glass: who may let a call run without those who should decide, as people are now (6.4)."""

from __future__ import annotations

from bot.errors import DirectoryError
from bot.people.lookup import PeopleLookup
from bot.people.terms_of import ballot_of, groups_of, terms_of
from bot.policy.eligibility import EDITORS, Eligibility, PeopleSnapshot
from bot.policy.refusals import RefusalCode
from bot.policy.tally import Ballot
from bot.policy.terms import BreakGlass, Terms
from bot.ports.people import Actor
from storage.records import Approval, Kind


def glass_of(approval: Approval) -> BreakGlass | None:
    """The people who may do so, by the frozen terms; None for nobody.

    Raises:
        TermsError: They cannot be read.
    """
    if approval.kind is not Kind.APPROVAL or not approval.terms_json:
        return None
    terms = terms_of(approval)
    return None if terms.always_ask else terms.break_glass


async def why_not_break(
    census: PeopleLookup, approval: Approval, actor: Actor
) -> RefusalCode | None:
    """Why somebody may not; None when they may. Whoever asked for the call may, too.

    A group that the rule leaves out stays out: it is named for who its people are, and not for
    their part in this call.

    Raises:
        DirectoryError: It could not be looked up.
    """
    glass, terms = glass_of(approval), terms_of(approval)
    groups = glass.groups if glass is not None else ()
    barred = Eligibility(terms, PeopleSnapshot(people={}, members={})).excluded
    standing = await census.take(approval, terms, people=[actor], groups={*groups, *barred})
    problem = standing.people.get(actor.user_id)
    if problem is not None:
        return RefusalCode(problem.value)
    is_among = standing.is_among(groups, actor.user_id)
    if actor.user_id not in standing.people or is_among is None:
        raise DirectoryError("an emergency", again=standing.again)
    if not is_among:
        return RefusalCode.NOT_APPROVER
    is_barred = standing.is_among(barred, actor.user_id)
    if is_barred is None:
        raise DirectoryError("an emergency", again=standing.again)
    return RefusalCode.EXCLUDED if is_barred else _bar(terms, standing, actor.user_id)


async def has_lost_glass(census: PeopleLookup, approval: Approval, user_id: str) -> bool:
    """Whether somebody who let a call run so may not do that any more.

    Raises:
        DirectoryError: It could not be looked up.
    """
    return await why_not_break(census, approval, Actor(user_id=user_id, team_id="")) is not None


async def left_out(census: PeopleLookup, approval: Approval, by: str) -> frozenset[str]:
    """Everybody else who could have decided, as far as that can be looked up."""
    ballot = ballot_of(approval)
    names = groups_of(ballot)
    standing = await census.take(approval, ballot.terms, people=(), groups=names)
    rights = Eligibility(ballot.terms, standing)
    people = {
        one for name in _deciding(ballot, rights) for one in standing.members.get(name, frozenset())
    }
    return frozenset(one for one in people - {by} if not rights.bars(one))


async def was_told(census: PeopleLookup, approval: Approval, user_id: str) -> bool:
    """Whether somebody is among those who were told that a call runs without them.

    Raises:
        DirectoryError: It could not be looked up.
    """
    decision, glass = approval.decision, glass_of(approval)
    if decision is None or not decision.emergency_json or glass is None or user_id == decision.by:
        return False
    if user_id in await census.directory.channel_members(glass.alert):
        return True
    return user_id in await left_out(census, approval, decision.by)


def _deciding(ballot: Ballot, rights: Eligibility) -> set[str]:
    return {
        name
        for stage in ballot.stages
        for one in stage.approve
        for name in rights.groups(one, ballot.steps)
    }


def _bar(terms: Terms, standing: PeopleSnapshot, user_id: str) -> RefusalCode | None:
    """Why the run would take nothing from them: their part in this call is another one."""
    if EDITORS in terms.exclude and user_id in standing.editors:
        return RefusalCode.OWN_EDIT
    return RefusalCode.USED_UP if user_id in standing.counted else None
