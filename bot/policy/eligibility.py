"""Eligibility: who may fill a requirement, by a snapshot of people.

The snapshot is taken for one click; this module looks nothing up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from bot.ports.people import Person
from bot.records.approval import Right
from bot.records.terms import Requirement, Terms

REQUESTERS = "requesters"
"""In `exclude` and `editors`: the requesters of the call."""
EDITORS = "editors"
"""In `exclude`: people who have edited the call."""
"""Flags of a person who cannot vote. A counted voter had none of them."""


class Problem(StrEnum):
    """The reason why a person never counts, in any group."""

    DEACTIVATED = "deactivated"
    BOT = "bot"
    EXTERNAL = "external"
    GUEST = "guest"


class Exclusion(StrEnum):
    """The reason why a person cannot approve this call, not even by delegation."""

    OWN_REQUEST = "own_request"
    OWN_EDIT = "own_edit"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """A right that its owner has delegated to another person until a time.

    Attributes:
        owner: Slack user id of the owner.
        delegate: Slack user id of the delegate.
        until_ms: End of the delegation.
        group: The only group whose right is delegated; empty for all.
        approval_id: The only approval that the delegation applies to; empty for all.
    """

    owner: str
    delegate: str
    until_ms: int
    group: str = ""
    approval_id: str = ""

    def is_for(self, approval_id: str) -> bool:
        """Whether the delegation applies to an approval."""
        return self.approval_id in {"", approval_id}

    def holds(self, at_ms: int) -> bool:
        """Whether the delegation is in effect at a time."""
        return at_ms < self.until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSnapshot:
    """People and groups as looked up for one click. Missing entries are unknown.

    Attributes:
        people: By Slack user id, why the person never counts; None if the person counts.
        members: Members by name of a group: people in both its frozen and its present definition.
            For channels, members at both times; for a rotation, the person on duty.
        requesters: People who requested the call.
        editors: People who have edited the call.
        counted: Voters of an outer gate and the owners of their rights.
        delegations: Delegations in effect.
        persons: By Slack user id, the person as looked up: evidence, not used for decisions.
        read_ms: Time of the look-up. Answers of the directory are at most ten minutes old.
        again: Delay until Slack permits a failed look-up; None if unknown.
    """

    people: Mapping[str, Problem | None]
    members: Mapping[str, frozenset[str]]
    requesters: frozenset[str] = frozenset()
    editors: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    delegations: tuple[Delegation, ...] = ()
    persons: Mapping[str, Person] = field(default_factory=dict, compare=False)
    read_ms: int = 0
    again: timedelta | None = field(default=None, compare=False)

    def knows(self, *, people: Iterable[str] = (), groups: Iterable[str] = ()) -> bool:
        """Whether all of these people and groups were looked up."""
        return all(user_id in self.people for user_id in people) and all(
            group in self.members for group in groups
        )

    def is_able(self, user_id: str) -> bool | None:
        """Whether a person can vote at all; None if unknown."""
        return self.people[user_id] is None if user_id in self.people else None

    def is_among(self, groups: Iterable[str], user_id: str) -> bool | None:
        """Whether a person is in one of the groups; None if unknown."""
        result: bool | None = False
        for name in groups:
            if name not in self.members:
                result = None
            elif user_id in self.members[name]:
                return True
        return result


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rights of people under some terms, as far as the look-up tells.

    Answers are yes, no, or None after a failed look-up.
    """

    terms: Terms
    snapshot: PeopleSnapshot
    _groups: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict, compare=False)

    def groups(self, requirement: Requirement, steps: int) -> tuple[str, ...]:
        """Return the groups of a requirement after a number of escalation steps."""
        key = (requirement.name, steps)
        if key not in self._groups:
            done = self.terms.escalate[:steps]
            added = [
                name for step in done if requirement.name in step.requirements for name in step.add
            ]
            self._groups[key] = tuple(dict.fromkeys((*requirement.groups, *added)))
        return self._groups[key]

    def of(self, user_id: str) -> tuple[Right, ...]:
        """Return the rights that a person may use, their own first."""
        handed = [
            Right(owner=delegation.owner, group=delegation.group)
            for delegation in self.snapshot.delegations
            if self.terms.delegation
            and delegation.delegate == user_id
            and delegation.owner != user_id
        ]
        return (Right(owner=user_id), *handed)

    def fits(self, right: Right, requirement: Requirement, steps: int) -> bool | None:
        """Whether a right's owner is in a group of the requirement."""
        groups = self.groups(requirement, steps)
        if right.group:
            groups = tuple(name for name in groups if name == right.group)
        return self.snapshot.is_among(groups, right.owner)

    def holds(self, right: Right, user_id: str) -> bool | None:
        """Whether a person has a right now, and both owner and voter can vote."""
        if right.owner == user_id:
            return self.snapshot.is_able(user_id)
        if right not in self.of(user_id):
            return False
        return every(self.snapshot.is_able(person) for person in (user_id, right.owner))

    def exclusion(self, user_id: str) -> Exclusion | None:
        """Return why a person cannot approve, as far as known."""
        snapshot, exclude = self.snapshot, self.terms.exclude
        if REQUESTERS in exclude and user_id in snapshot.requesters:
            return Exclusion.OWN_REQUEST
        if EDITORS in exclude and user_id in snapshot.editors:
            return Exclusion.OWN_EDIT
        return Exclusion.EXCLUDED if snapshot.is_among(self.excluded, user_id) else None

    def bars(self, user_id: str) -> bool:
        """Whether a person is excluded, or a voter of an outer gate."""
        # An unknown membership of an excluded group does not bar: `Ballot.is_sure` requires that
        # look-up.
        return user_id in self.snapshot.counted or self.exclusion(user_id) is not None

    @property
    def excluded(self) -> tuple[str, ...]:
        """Names of the excluded groups."""
        return tuple(name for name in self.terms.exclude if name not in {REQUESTERS, EDITORS})


def every(answers: Iterable[bool | None]) -> bool | None:
    """Return the three-valued *and* (Kleene): False takes precedence over unknown."""
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        result = None if answer is None else result
    return result


def either(answers: Iterable[bool | None]) -> bool | None:
    """Return the three-valued *or* (Kleene): True takes precedence over unknown."""
    result: bool | None = False
    for answer in answers:
        if answer:
            return True
        result = None if answer is None else result
    return result
