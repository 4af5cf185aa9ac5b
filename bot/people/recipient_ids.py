"""Recipients that a rule names: people, user groups and channels. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from bot.errors import decider_words
from bot.policy.rotation import on_duty
from bot.ports.people import CHANNEL
from bot.records.terms import Requirement, Rotation, Terms
from bot.words import say

MOST_PEOPLE = 10
"""Maximum number of people to mention in a message. User groups have one handle."""


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


def audience_of(terms: Terms, groups: Iterable[str], at_ms: int) -> dict[str, tuple[str, ...]]:
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


def rotations_of(terms: Terms, groups: Iterable[str]) -> tuple[Rotation, ...]:
    """Return the rotations in groups."""
    rotations = (terms.groups[name].rotation for name in groups if name in terms.groups)
    return tuple(rotation for rotation in rotations if rotation is not None)


def is_person(name: str) -> bool:
    """Whether a recipient id is a person."""
    return name[:1] in {"U", "W"}


def is_usergroup(name: str) -> bool:
    """Whether a recipient id is a user group."""
    return name[:1] == "S"


def is_channel(name: str) -> bool:
    """Whether a recipient id is a channel, or `channel`; it mentions no person."""
    return name == CHANNEL or name[:1] in {"C", "G"}
