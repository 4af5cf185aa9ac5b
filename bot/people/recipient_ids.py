"""The audience that a rule names: people, user groups and channels (5.4).

Pure: who of them is still waited for is looked up elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.errors import decider_words
from bot.policy.rotation import on_duty
from bot.policy.terms import Requirement, Rotation, Terms
from bot.words import say

HERE = "here"
"""In an audience: the members of the channel where it was asked."""
MOST_PEOPLE = 10
"""People who are mentioned in one message; user groups have one handle for all."""


def asked_groups(terms: Terms, stage: int, steps: int = 0) -> tuple[str, ...]:
    """Name the groups that are asked in a stage after so many escalation steps."""
    named = [group for one in terms.stages[stage].approve for group in one.groups]
    return tuple(dict.fromkeys((*named, *added_groups(terms, stage, range(steps)))))


def added_groups(terms: Terms, stage: int, steps: range) -> tuple[str, ...]:
    """Name the groups that some escalation steps add to what a stage needs."""
    names = {one.name for one in terms.stages[stage].approve}
    found = [terms.escalate[number] for number in steps if number < len(terms.escalate)]
    added = [group for step in found if names & {*step.requirements} for group in step.add]
    return tuple(dict.fromkeys(added))


def audience_of(terms: Terms, groups: Iterable[str], at_ms: int) -> dict[str, tuple[str, ...]]:
    """List whom groups stand for: ids of people, user groups and channels, and `here`.

    Args:
        terms: The frozen terms.
        groups: Names of groups.
        at_ms: Whoever is on duty then counts.

    Returns:
        By id, the groups by which it is named; in the order in which they are named.

    Raises:
        TermsError: The zone of a rotation is not known here.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in groups:
        group = terms.groups.get(name)
        if group is None:
            continue
        duty = on_duty(group.rotation, at_ms) if group.rotation is not None else None
        here = (HERE,) if group.here else ()
        for one in (*group.users, *group.usergroups, *([duty] if duty else []), *here):
            found[one] = (*found.get(one, ()), name)
        for one in group.channels:
            found[one] = (*found.get(one, ()), name)
    return found


def group_words(terms: Terms, name: str) -> str:
    """Write who a group is, in mrkdwn: its title, or the people, user groups and channels in it.

    The name that it has in the policy file is nobody's to read.
    """
    group = terms.groups.get(name)
    if group is None:
        return say("line.somebody")
    if group.title:
        return group.title
    people = group.rotation.people if group.rotation is not None else ()
    here = ("channel",) if group.here else ()
    ids = dict.fromkeys((*group.users, *group.usergroups, *people, *group.channels, *here))
    return decider_words([*ids]) or say("line.somebody")


def requirement_words(terms: Terms, requirement: Requirement) -> str:
    """Write who can fill a requirement, in mrkdwn."""
    found = [*dict.fromkeys(group_words(terms, one) for one in requirement.groups)]
    if len(found) < 2:
        return "".join(found)
    return say("line.or", a=", ".join(found[:-1]), b=found[-1])


def rotations_of(terms: Terms, groups: Iterable[str]) -> tuple[Rotation, ...]:
    """The duties among some groups."""
    found = (terms.groups[name].rotation for name in groups if name in terms.groups)
    return tuple(one for one in found if one is not None)


def is_person(name: str) -> bool:
    """Whether an id of an audience is a person's."""
    return name[:1] in {"U", "W"}


def is_usergroup(name: str) -> bool:
    """Whether it is a user group's."""
    return name[:1] == "S"


def is_channel(name: str) -> bool:
    """Whether it is a channel's, or stands for one: nobody is mentioned by it."""
    return name == HERE or name[:1] in {"C", "G"}
