"""Name the possible approvers to people who cannot decide."""

from __future__ import annotations

from collections.abc import Iterable

from bot.people.recipient_ids import asked_groups, audience_of, is_person
from bot.people.terms_of import ballot_of, requesters_of
from bot.policy.eligibility import EDITORS, REQUESTERS, PeopleSnapshot
from bot.policy.missing_approvers import waits_for
from bot.policy.tally import Ballot
from bot.ports.people import CHANNEL
from bot.records.approval import Approval
from bot.records.terms import TermsError


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
        audience = audience_of(ballot.terms, groups, at_ms)
        if snapshot is not None and not ballot.is_doubt:
            free = waits_for(ballot, snapshot)
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
    requesters = frozenset(requesters_of(approval)) if REQUESTERS in exclude else frozenset()
    return requesters | (frozenset(approval.edits.editors) if EDITORS in exclude else frozenset())


def _named(approval: Approval, names: tuple[str, ...], out: frozenset[str]) -> tuple[str, ...]:
    kept = (name for name in names if not (is_person(name) and name in out))
    return tuple(dict.fromkeys(approval.channel_id if name == CHANNEL else name for name in kept))
