"""Read a file of cases: its world, its policies, and its cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.policy.parser.problems import PolicyError, nearest
from bot.policy.parser.source import read_source
from bot.rehearsal.case_schema import (
    KINDS,
    CaseError,
    Data,
    FileEntry,
    Known,
    WorldEntry,
    check,
)
from bot.rehearsal.world import World, read_world

ZONE = ZoneInfo("Europe/Berlin")
"""The time zone of the times in cases."""
START = "2026-11-23T10:00"
"""Default start of a case."""
_OFFSET = re.compile(r"\+(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        id: Name of the case, unique in its file.
        kind: `check`, `explain`, `flow`, `settings`, `cli`, `audit` or `append`.
        data: The case as in the file.
        world: The world of the case.
        file: The file of the case.
    """

    id: str
    kind: str
    data: Mapping[str, Any] = field(repr=False)
    world: World = field(repr=False)
    file: CaseFile = field(repr=False)

    @property
    def policy(self) -> Data:
        """Return the policy of the case.

        Raises:
            CaseError: The case names a policy that the file does not have.
        """
        return self.policy_named(self.data["policy"])

    def policy_named(self, given: object) -> Data:
        """Return a policy by its name; a value that is not a name is the policy itself.

        Raises:
            CaseError: No policy has this name.
        """
        if isinstance(given, dict):
            return given
        if given not in self.file.policies:
            raise CaseError(f"case {self.id}: there is no policy {given!r} in the file of cases")
        return self.file.policies[str(given)]

    @property
    def is_strict(self) -> bool:
        """Whether the case must name everything that happens; otherwise only named keys count."""
        own = self.data.get("strict")
        return self.file.is_strict if own is None else bool(own)

    @property
    def start_ms(self) -> int:
        """Start of the case, in milliseconds since the epoch."""
        local = datetime.fromisoformat(str(self.data.get("at", START)))
        return round(local.replace(tzinfo=ZONE).timestamp() * 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A file of cases.

    Attributes:
        world: The world of all cases; a case can replace entries of it.
        policies: Policies by name.
        entries: The cases as in the file.
        is_strict: Whether cases must name everything that happens.
    """

    world: World
    policies: Mapping[str, Data]
    entries: list[Any]
    is_strict: bool = False

    def cases(self, policy: Data | None = None) -> list[Case]:
        """Return all cases.

        Args:
            policy: The policy of flows and explanations that name none.

        Raises:
            CaseError: Some cases are malformed. The text lists all faults, one per line.
        """
        cases: list[Case] = []
        faults: list[str] = []
        for entry in self.entries:
            try:
                cases.append(_case(entry, self, policy))
            except CaseError as error:
                faults.append(str(error))
        faults += [
            f"case {name}: there are {count} cases of this id; give each its own"
            for name, count in Counter(case.id for case in cases).items()
            if count > 1
        ]
        if faults:
            raise CaseError("\n".join(faults))
        return cases

    def case(self, name: str) -> Case:
        """Return a case by its id.

        Raises:
            CaseError: No case has this id, or the case is malformed.
        """
        for entry in self.entries:
            if isinstance(entry, dict) and entry.get("id") == name:
                return _case(entry, self, None)
        raise CaseError(f"there is no case {name!r} in the file of cases")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between an expected and an actual value.

    Attributes:
        case: Id of the case.
        step: Number of the event, from 1; 0 if the case has no events.
        key: Name of the compared value, such as `told`.
        expected: The value in the case.
        actual: The actual value.
    """

    case: str
    step: int
    key: str
    expected: object
    actual: object

    def __str__(self) -> str:
        place = f", event {self.step}" if self.step else ""
        return (
            f"{self.case}{place}, {self.key}: expected {as_text(self.expected)}, "
            f"was {as_text(self.actual)}"
        )


def read_case_file(path: Path) -> CaseFile:
    """Parse a file of cases.

    Args:
        path: A YAML file with `world`, `policies` and `cases`.

    Raises:
        CaseError: The file cannot be read, or is malformed.
    """
    try:
        root, problems = read_source(path.read_bytes())
    except OSError as error:
        raise CaseError(f"can't read {path}: {error.strerror}") from error
    except PolicyError as error:
        raise CaseError(error.text(str(path))) from error
    if problems:
        raise CaseError(PolicyError(problems).text(str(path)))
    data = root.plain()
    if not isinstance(data, dict) or not isinstance(data.get("cases"), list):
        raise CaseError(f"{path}: expected a mapping with a list `cases`")
    check(FileEntry, data, str(path))
    return CaseFile(
        world=read_world(data.get("world") or {}),
        policies=data.get("policies") or {},
        entries=data["cases"],
        is_strict=bool(data.get("strict")),
    )


def as_text(value: object) -> str:
    """Format a value of a case for comparison and for people."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def offset(text: object) -> timedelta:
    """Parse a time since the start of a case, such as `+1h30m`.

    Raises:
        CaseError: The text is malformed.
    """
    match = _OFFSET.fullmatch(str(text))
    if match is None:
        raise CaseError(f"{text!r} isn't a time since the start; write it as +1h30m")
    days, hours, minutes, seconds = (int(number) for number in match.groups(default="0"))
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def _case(data: Any, file: CaseFile, policy: Data | None) -> Case:
    if not isinstance(data, dict) or not {"id", "kind"} <= data.keys():
        raise CaseError("a case needs an `id` and a `kind`")
    place = f"case {data['id']}"
    if policy is not None and data["kind"] in {"flow", "explain"}:
        data = {"policy": policy, **data}
    if (model := KINDS.get(str(data["kind"]))) is None:
        near = nearest(str(data["kind"]), KINDS, f"use {', '.join(KINDS)}")
        raise CaseError(f"{place}, kind: there is no kind {data['kind']!r}; {near}")
    parts = data.get("world") or {}
    check(WorldEntry, parts, f"{place}, world")
    world = file.world.changed(parts)
    check(model, data, place, Known(world=world, policies=frozenset(file.policies)))
    _check_times(data, place)
    return Case(id=str(data["id"]), kind=str(data["kind"]), data=data, world=world, file=file)


def _check_times(data: Data, place: str) -> None:
    """Refuse events that are earlier than the event before."""
    times = [str(event["at"]) for event in data.get("timeline", ())]
    for number, (before, at) in enumerate(pairwise(times), 1):
        if offset(at) < offset(before):
            raise CaseError(
                f"{place}, timeline[{number}].at: {at} is before {before}, and time cannot go "
                "back; put the events in order"
            )
