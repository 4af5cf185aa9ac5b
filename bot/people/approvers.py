"""Approvers: who may decide an approval, at first and after each escalation step.

The terms name groups. Escalation steps add groups later. Whether a person's vote counts is decided
at the click, see `bot.policy.refusals`.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.errors import decider_words
from bot.policy.eligibility import EDITORS, REQUESTERS, PeopleSnapshot
from bot.policy.escalation import EscalationState, next_begin
from bot.policy.missing_approvers import possible_voters
from bot.policy.progress import ballot_of
from bot.policy.rotation import on_duty
from bot.policy.tally import Ballot
from bot.ports.people import CHANNEL, is_person
from bot.records.approval import Approval, Status
from bot.records.terms import Escalation, Group, Requirement, Rotation, Terms, TermsError
from bot.words import say


def approvers_of(approval: Approval) -> tuple[str, ...]:
    """Return who is asked first: ids of people and user groups, and `channel`."""
    terms = approval.terms
    names = [name for requirement in terms.stages[0].approve for name in requirement.groups]
    return _names(terms.groups[name] for name in names)


def backups_of(approval: Approval) -> tuple[str, ...]:
    """Return who may also decide from the first escalation step on, as `approvers_of` does."""
    terms = approval.terms
    return added_by(terms, terms.escalate[0]) if terms.escalate else ()


def next_step_ms(approval: Approval) -> int | None:
    """Return when the next escalation step begins; None if no step can begin any more."""
    if approval.status is not Status.PENDING:
        return None
    claim = approval.claim
    state = EscalationState(
        since_ms=approval.schedule_ms,
        deadline_ms=approval.expires_ms,
        steps=approval.escalation.steps,
        claimed_ms=claim.since_ms,
        claim_until_ms=claim.until_ms,
        is_deserted=approval.escalation.deserted,
    )
    try:
        return next_begin(approval.terms, state)
    except TermsError:
        return None


def named_by(terms: Terms, requirement: Requirement) -> tuple[str, ...]:
    """Return who fills a requirement: ids, and `channel`."""
    return _names(terms.groups[name] for name in requirement.groups)


def added_by(terms: Terms, step: Escalation) -> tuple[str, ...]:
    """Return who may also decide from an escalation step on: ids, and `channel`."""
    return _names(terms.groups[name] for name in step.add)


def _names(groups: Iterable[Group]) -> tuple[str, ...]:
    """Return ids of people and user groups, and `channel`."""
    ids: dict[str, None] = {}
    for group in groups:
        rotation = group.rotation.people if group.rotation is not None else ()
        ids.update(dict.fromkeys((*group.users, *group.usergroups, *rotation)))
        if group.here or group.channels:
            ids[CHANNEL] = None
    return tuple(ids)


def asked_groups(terms: Terms, stage: int, steps: int = 0) -> tuple[str, ...]:
    """Return the groups asked in a stage after a number of escalation steps."""
    named = [group for requirement in terms.stages[stage].approve for group in requirement.groups]
    return tuple(dict.fromkeys((*named, *added_groups(terms, stage, range(steps)))))


def added_groups(terms: Terms, stage: int, steps: range) -> tuple[str, ...]:
    """Return the groups that escalation steps add to a stage."""
    names = {requirement.name for requirement in terms.stages[stage].approve}
    begun_steps = [terms.escalate[number] for number in steps if number < len(terms.escalate)]
    added = [group for step in begun_steps if names & {*step.requirements} for group in step.add]
    return tuple(dict.fromkeys(added))


def resolve_groups(terms: Terms, groups: Iterable[str], at_ms: int) -> dict[str, tuple[str, ...]]:
    """Resolve groups to ids of people, user groups and channels, and `channel`.

    Returns:
        The naming groups by id, in the order of the rule.

    Raises:
        TermsError: The time zone of a rotation is unknown here.
    """
    groups_by_id: dict[str, tuple[str, ...]] = {}
    for name in groups:
        group = terms.groups.get(name)
        if group is None:
            continue
        duty = on_duty(group.rotation, at_ms) if group.rotation is not None else None
        here = (CHANNEL,) if group.here else ()
        for recipient in (*group.users, *group.usergroups, *([duty] if duty else []), *here):
            groups_by_id[recipient] = (*groups_by_id.get(recipient, ()), name)
        for recipient in group.channels:
            groups_by_id[recipient] = (*groups_by_id.get(recipient, ()), name)
    return groups_by_id


def rotations_of(terms: Terms, groups: Iterable[str]) -> tuple[Rotation, ...]:
    """Return the rotations in groups."""
    rotations = (terms.groups[name].rotation for name in groups if name in terms.groups)
    return tuple(rotation for rotation in rotations if rotation is not None)


def group_words(terms: Terms, name: str) -> str:
    """Format a group as mrkdwn: its title, or its people, user groups and channels.

    The group's name in the policy file is never shown.
    """
    group = terms.groups.get(name)
    if group is None:
        return say("line.somebody")
    if group.title:
        return group.title
    people = group.rotation.people if group.rotation is not None else ()
    here = (CHANNEL,) if group.here else ()
    ids = dict.fromkeys((*group.users, *group.usergroups, *people, *group.channels, *here))
    return decider_words([*ids]) or say("line.somebody")


def requirement_words(terms: Terms, requirement: Requirement) -> str:
    """Format who can fill a requirement, as mrkdwn."""
    words = [*dict.fromkeys(group_words(terms, name) for name in requirement.groups)]
    if len(words) < 2:
        return "".join(words)
    return say("line.or", a=", ".join(words[:-1]), b=words[-1])


def deciders_of(
    approval: Approval, at_ms: int, snapshot: PeopleSnapshot | None = None
) -> tuple[str, ...]:
    """Return who can decide now: ids of people, user groups and channels.

    A user group is named instead of its members. Excluded people are not named. The result is shown
    to one person only, so it notifies no other people.

    Args:
        approval: A pending approval.
        at_ms: Time for rotations.
        snapshot: Group memberships as looked up: people who left are not named. None names everyone
            on record.
    """
    ballot = ballot_of(approval)
    groups = _groups(ballot, approval.escalation.steps)
    try:
        audience = resolve_groups(ballot.terms, groups, at_ms)
        if snapshot is not None and not ballot.is_doubt:
            free = possible_voters(ballot, snapshot)
            audience = {
                name: by for name, by in audience.items() if _is_left(name, by, free, snapshot)
            }
        names = tuple(audience)
    except TermsError:  # a time zone is unknown on this machine
        return ()
    return _named(approval, names, _left_out(approval, ballot.terms.exclude))


def _is_left(
    name: str, groups: Iterable[str], free: frozenset[str], snapshot: PeopleSnapshot
) -> bool:
    """Whether a person, or a member of a group or channel, can still fill a slot."""
    known = [snapshot.members[group] for group in groups if group in snapshot.members]
    if len(known) < len([*groups]):
        return True  # the look-up failed
    return name in free if is_person(name) else any(members & free for members in known)


def _groups(ballot: Ballot, steps: int) -> tuple[str, ...]:
    """Return the groups that are asked; for a doubt, those of all stages."""
    terms = ballot.terms
    stages = range(len(terms.stages)) if ballot.is_doubt else [ballot.stage]
    names = (name for stage in stages for name in asked_groups(terms, stage, steps))
    return tuple(dict.fromkeys(names))


def _left_out(approval: Approval, exclude: tuple[str, ...]) -> frozenset[str]:
    requesters = frozenset(approval.all_requesters) if REQUESTERS in exclude else frozenset()
    return requesters | (frozenset(approval.edits.editors) if EDITORS in exclude else frozenset())


def _named(approval: Approval, names: tuple[str, ...], out: frozenset[str]) -> tuple[str, ...]:
    present = (name for name in names if not (is_person(name) and name in out))
    return tuple(
        dict.fromkeys(approval.channel_id if name == CHANNEL else name for name in present)
    )
