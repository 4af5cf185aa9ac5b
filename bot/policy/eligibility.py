"""The standing of people: who they are and what they belong to, as just looked up (2.7).

All of it is taken as it was found at one click; nothing here is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum

from bot.policy.terms import Requirement, Terms
from bot.ports.people import Person

REQUESTERS = "requesters"
"""In `exclude` and `editors`: whoever asked for it."""
EDITORS = "editors"
"""In `exclude`: whoever has edited the call."""
FLAGS = ("is_bot", "is_guest", "is_external", "is_deleted")
"""Each of them keeps somebody from voting: of who was counted, none was set."""


class Problem(StrEnum):
    """The reason why somebody never counts, whatever a list says (3.3)."""

    DEACTIVATED = "deactivated"
    BOT = "bot"
    EXTERNAL = "external"
    GUEST = "guest"


class Exclusion(StrEnum):
    """The reason why somebody cannot approve this call, in no role and through nobody (3.2)."""

    OWN_REQUEST = "own_request"
    OWN_EDIT = "own_edit"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """A right that somebody has handed to somebody else for a while (6.1).

    Attributes:
        owner: Slack user id of whose right it is.
        delegate: Slack user id of who may use it.
        until_ms: When it ends.
        group: The only group whose right it is; empty for all.
        approval_id: The only request that it is for; empty for all.
    """

    owner: str
    delegate: str
    until_ms: int
    group: str = ""
    approval_id: str = ""

    def is_for(self, approval_id: str) -> bool:
        """Whether it is for a request."""
        return self.approval_id in {"", approval_id}

    def holds(self, at_ms: int) -> bool:
        """Whether it counts at a time."""
        return at_ms < self.until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSnapshot:
    """All that was looked up for one click. What is not in it could not be looked up.

    Attributes:
        people: By Slack user id, why the person never counts; None for nothing.
        members: By name of a group of the terms, who is in it: in its frozen *and* in its present
            definition. The channels' members are those of then and of now; of a rotation, whoever
            is on duty.
        requesters: Whoever asked for it.
        editors: Whoever has edited the call.
        counted: Who was counted for a gate outside of this one, and on whose behalf (3.13).
        delegations: Those that hold now.
        persons: By Slack user id, the person as looked up: evidence, nobody judges by it.
        read_ms: When all of it was looked up; the directory's answers are at most ten minutes old.
        again: How long until Slack allows a look-up that failed; None when that is not known.
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
        """Whether all of these were looked up."""
        return all(one in self.people for one in people) and all(
            one in self.members for one in groups
        )

    def is_able(self, user_id: str) -> bool | None:
        """Whether somebody counts as a person; None when that is not known."""
        return self.people[user_id] is None if user_id in self.people else None

    def is_among(self, groups: Iterable[str], user_id: str) -> bool | None:
        """Whether somebody is in one of the groups; None when that is not known."""
        result: bool | None = False
        for name in groups:
            if name not in self.members:
                result = None
            elif user_id in self.members[name]:
                return True
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """The grounds of a vote (7.5): nobody can look them up later. Stored with it: version 1.

    Attributes:
        payload: Id of the payload of Slack that brought it.
        name: The name of its giver, as looked up.
        team: Their home workspace, as looked up.
        read_ms: When they and their groups were looked up.
        shown: Digest of the call as they saw it.
        file: Hash of the policy file in force; empty when there was none.
    """

    payload: str = ""
    name: str = ""
    team: str = ""
    read_ms: int = 0
    shown: str = ""
    file: str = ""

    def to_json(self) -> dict[str, str | int]:
        """Give what is known of them."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> Grounds:
        """Read them.

        Raises:
            TypeError: They are damaged.
        """
        texts = {name: value for name, value in found.items() if isinstance(value, str)}
        read_ms = found.get("read_ms", 0)
        if type(read_ms) is not int or texts.keys() | {"read_ms"} != {*found, "read_ms"}:
            raise TypeError(found)
        return cls(read_ms=read_ms, **texts)

    def person(self, user_id: str) -> dict[str, object]:
        """Say who it was, as looked up."""
        flags = dict.fromkeys(FLAGS, False)
        return {"user": user_id, "name": self.name, "team": self.team, **flags}


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right to fill a slot: one's own, or one that was delegated.

    Attributes:
        owner: Slack user id of whose it is.
        group: The only group by which it counts; empty for all.
    """

    owner: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Eligibility:
    """The rights that people have under some terms, as far as the look-up tells.

    Three answers are possible: yes, no, and None for a look-up that failed.

    Attributes:
        terms: The frozen terms.
        standing: The people of now.
    """

    terms: Terms
    standing: PeopleSnapshot
    _groups: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict, compare=False)

    def groups(self, requirement: Requirement, steps: int) -> tuple[str, ...]:
        """The groups that count for a requirement after so many escalation steps."""
        key = (requirement.name, steps)
        if key not in self._groups:
            done = self.terms.escalate[:steps]
            added = [
                name for step in done if requirement.name in step.requirements for name in step.add
            ]
            self._groups[key] = tuple(dict.fromkeys((*requirement.groups, *added)))
        return self._groups[key]

    def of(self, user_id: str) -> tuple[Right, ...]:
        """The rights that somebody may use: their own first (6.2)."""
        handed = [
            Right(owner=one.owner, group=one.group)
            for one in self.standing.delegations
            if self.terms.delegation and one.delegate == user_id and one.owner != user_id
        ]
        return (Right(owner=user_id), *handed)

    def fits(self, right: Right, requirement: Requirement, steps: int) -> bool | None:
        """Whether a right is one of a requirement: its owner is in one of the groups."""
        groups = self.groups(requirement, steps)
        if right.group:
            groups = tuple(name for name in groups if name == right.group)
        return self.standing.is_among(groups, right.owner)

    def holds(self, right: Right, user_id: str) -> bool | None:
        """Whether somebody has a right by now, and both count as people (3.3)."""
        if right.owner == user_id:
            return self.standing.is_able(user_id)
        if right not in self.of(user_id):
            return False
        return every(self.standing.is_able(one) for one in (user_id, right.owner))

    def exclusion(self, user_id: str) -> Exclusion | None:
        """Why somebody cannot approve; as far as it is known."""
        standing, exclude = self.standing, self.terms.exclude
        if REQUESTERS in exclude and user_id in standing.requesters:
            return Exclusion.OWN_REQUEST
        if EDITORS in exclude and user_id in standing.editors:
            return Exclusion.OWN_EDIT
        return Exclusion.EXCLUDED if standing.is_among(self.excluded, user_id) else None

    def bars(self, user_id: str) -> bool:
        """Whether somebody cannot fill a slot: excluded, or counted outside of this gate."""
        return user_id in self.standing.counted or self.exclusion(user_id) is not None

    @property
    def excluded(self) -> tuple[str, ...]:
        """The names of the groups that are excluded."""
        return tuple(name for name in self.terms.exclude if name not in {REQUESTERS, EDITORS})


def every(answers: Iterable[bool | None]) -> bool | None:
    """Kleene's *and*: no beats unknown."""
    result: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        result = None if answer is None else result
    return result


def either(answers: Iterable[bool | None]) -> bool | None:
    """Kleene's *or*: yes beats unknown."""
    result: bool | None = False
    for answer in answers:
        if answer:
            return True
        result = None if answer is None else result
    return result
