"""Narrowing: a program names those who are asked, among the people whom the policy names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from bot.ports.people import MOST_MEMBERS, Directory, is_person
from bot.records.terms import Group, Terms


def voting_groups(terms: Terms) -> frozenset[str]:
    """Return the names of the groups that may vote, now or after an escalation step.

    Excluded groups are not among them: fewer people in them would mean fewer excluded people.
    """
    asked = {name for stage in terms.stages for needed in stage.approve for name in needed.groups}
    return frozenset(asked.union(*(step.add for step in terms.escalate))) - {*terms.exclude}


def people_named_by(terms: Terms) -> frozenset[str]:
    """Return the ids of the people and user groups that the voting groups name."""
    groups = [terms.groups[name] for name in voting_groups(terms)]
    return frozenset(name for group in groups for name in (*group.users, *group.usergroups))


async def narrowed(
    terms: Terms, names: Collection[str], directory: Directory, *, channel_id: str
) -> Terms:
    """Return terms under which only the named people of each group may vote.

    A vote counts only for members of the group by the policy in force, too; see `PeopleLookup`.

    Args:
        terms: The terms of the policy.
        names: Ids of people and of user groups.
        directory: Looks members up.
        channel_id: The channel of the request.

    Raises:
        DirectoryError: A group could not be looked up.
    """
    groups = dict(terms.groups)
    for name in voting_groups(terms):
        groups[name] = await _part(groups[name], names, directory, channel_id)
    steps = tuple(
        step
        for step in terms.escalate
        if any(groups[name] != Group() for name in step.add)  # a step without people asks nobody
    )
    return terms.model_copy(update={"groups": groups, "escalate": steps})


async def _part(
    group: Group, names: Collection[str], directory: Directory, channel_id: str
) -> Group:
    people = [name for name in names if is_person(name)]
    roster = group.rotation.people if group.rotation is not None else ()
    members = frozenset((*group.users, *roster))
    if not members.issuperset(people):
        channels = (*group.channels, *([channel_id] if group.here else []))
        usergroups, rooms = await asyncio.gather(
            asyncio.gather(*map(directory.group_members, group.usergroups)),
            asyncio.gather(*map(directory.channel_members, channels)),
        )
        members = members.union(*usergroups, *(room for room in rooms if _decides(room)))
    return Group(
        users=tuple(name for name in people if name in members),
        usergroups=tuple(name for name in names if name in group.usergroups),
    )


def _decides(room: Collection[str]) -> bool:
    return len(room) <= MOST_MEMBERS


async def answerers(
    names: Sequence[str], directory: Directory, *, channel_id: str
) -> tuple[str, ...]:
    """Return the named people in a channel; nobody if one of the names has nobody there.

    Args:
        names: Ids of people and of user groups.
        directory: Looks members up.
        channel_id: The channel of the question.

    Raises:
        DirectoryError: A user group or the channel could not be looked up.
    """
    here = await directory.channel_members(channel_id)
    people: dict[str, None] = {}
    for name in names:
        named = {name} if is_person(name) else await directory.group_members(name)
        if not named & here:
            return ()
        people.update(dict.fromkeys(sorted(named & here)))
    return tuple(people)
