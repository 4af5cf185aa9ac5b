"""Read a file of cases: worlds, policies, and the events of each case."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from bot.commands.simulation.models import (
    KINDS,
    CaseError,
    Data,
    FileEntry,
    Known,
    WorldEntry,
    check,
)

ZONE = ZoneInfo("Europe/Berlin")
"""The zone of the times in cases."""
START = "2026-11-23T10:00"
"""The time at which a case begins, unless it says another."""
_OFFSET = re.compile(r"\+(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The made-up world of a case.

    Attributes:
        people: Flags by Slack user id: `guest`, `external`, `bot`, `deactivated`.
        usergroups: Members by id.
        channels: Members by id, or a `size`.
        bot_in: Ids of the channels where the bot is.
        agents: Names.
        tools: By name: `schema`, `tags`, `risk`, `gate`.
    """

    people: Mapping[str, Data]
    usergroups: Mapping[str, list[str]]
    channels: Mapping[str, Any]
    bot_in: tuple[str, ...]
    agents: tuple[str, ...]
    tools: Mapping[str, Data]

    def changed(self, parts: Mapping[str, Any]) -> World:
        """The same world with parts of it replaced, entry by entry."""
        data: Data = {
            "people": {**self.people, **parts.get("people", {})},
            "usergroups": {**self.usergroups, **parts.get("usergroups", {})},
            "channels": {**self.channels, **parts.get("channels", {})},
            "bot_in": parts.get("bot_in", self.bot_in),
            "agents": parts.get("agents", self.agents),
            "tools": {**self.tools, **parts.get("tools", {})},
        }
        return _world(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        id: Unique in its file.
        kind: `check`, `explain`, `flow`, `settings`, `cli`, `audit` or `append`.
        data: All that is written there.
        world: In which it plays.
        file: The file that it is in.
    """

    id: str
    kind: str
    data: Mapping[str, Any] = field(repr=False)
    world: World = field(repr=False)
    file: CaseFile = field(repr=False)

    @property
    def policy(self) -> Data:
        """The policy that it is about.

        Raises:
            CaseError: It names one that is not in the file.
        """
        return self.policy_named(self.data["policy"])

    def policy_named(self, given: object) -> Data:
        """A policy by its name, or as it is written in place of a name.

        Raises:
            CaseError: There is none of that name.
        """
        if isinstance(given, dict):
            return given
        if given not in self.file.policies:
            raise CaseError(f"case {self.id}: there is no policy {given!r} in the file of cases")
        return self.file.policies[str(given)]

    @property
    def is_strict(self) -> bool:
        """Whether everything that happens has to be named; else only what is named is compared."""
        own = self.data.get("strict")
        return self.file.is_strict if own is None else bool(own)

    @property
    def start_ms(self) -> int:
        """The time at which it begins: milliseconds since the epoch."""
        local = datetime.fromisoformat(str(self.data.get("at", START)))
        return round(local.replace(tzinfo=ZONE).timestamp() * 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A file of cases.

    Attributes:
        world: In which all of them play that change nothing about it.
        policies: By name.
        entries: The cases as they are written.
        is_strict: Whether a case has to name everything that happens.
    """

    world: World
    policies: Mapping[str, Data]
    entries: list[Any]
    is_strict: bool = False

    def cases(self, policy: Data | None = None) -> list[Case]:
        """All cases.

        Args:
            policy: Taken by flows and explanations that name none.

        Raises:
            CaseError: Some do not have the form of a case. All faults, a line each.
        """
        found: list[Case] = []
        faults: list[str] = []
        for one in self.entries:
            try:
                found.append(_case(one, self, policy))
            except CaseError as error:
                faults.append(str(error))
        if faults:
            raise CaseError("\n".join(faults))
        return found

    def case(self, name: str) -> Case:
        """A case by its id.

        Raises:
            CaseError: There is none of that id, or it has not the form of a case.
        """
        for one in self.entries:
            if isinstance(one, dict) and one.get("id") == name:
                return _case(one, self, None)
        raise CaseError(f"there is no case {name!r} in the file of cases")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that did not happen as a case expects it.

    Attributes:
        case: Its id.
        step: The number of the event, from 1; 0 where there are no events.
        key: What is compared, such as `told`.
        expected: As the case has it.
        found: As it was.
    """

    case: str
    step: int
    key: str
    expected: object
    found: object

    def __str__(self) -> str:
        place = f", event {self.step}" if self.step else ""
        return (
            f"{self.case}{place}, {self.key}: expected {as_text(self.expected)}, "
            f"was {as_text(self.found)}"
        )


def read_case_file(path: Path) -> CaseFile:
    """Read a file of cases.

    Args:
        path: A YAML file with `world`, `policies` and `cases`.

    Raises:
        CaseError: It cannot be read, or has not the form of one.
    """
    try:
        data = yaml.load(path.read_text("utf-8"), Loader=_Plain)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CaseError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("cases"), list):
        raise CaseError(f"{path}: expected a mapping with a list `cases`")
    check(FileEntry, data, str(path))
    return CaseFile(
        world=_world(data.get("world") or {}),
        policies=data.get("policies") or {},
        entries=data["cases"],
        is_strict=bool(data.get("strict")),
    )


def read_cases(path: Path) -> list[Case]:
    """Read the cases of a file; see `read_case_file`."""
    return read_case_file(path).cases()


def as_text(value: object) -> str:
    """A value of a case as it is compared, and told to people."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def offset(text: object) -> timedelta:
    """Read a time since the start of a case, such as `+1h30m`.

    Raises:
        CaseError: It is none.
    """
    found = _OFFSET.fullmatch(str(text))
    if found is None:
        raise CaseError(f"{text!r} isn't a time since the start; write it as +1h30m")
    days, hours, minutes, seconds = (int(one) for one in found.groups(default="0"))
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C, where PyYAML was built with it."""


class _Plain(_Loader):  # type: ignore[misc]
    """Reads times as texts: they have no zone before somebody says which."""


_Plain.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _case(data: Any, file: CaseFile, policy: Data | None) -> Case:
    if not isinstance(data, dict) or not {"id", "kind"} <= data.keys():
        raise CaseError("a case needs an `id` and a `kind`")
    place = f"case {data['id']}"
    if policy is not None and data["kind"] in {"flow", "explain"}:
        data = {"policy": policy, **data}
    parts = data.get("world") or {}
    check(WorldEntry, parts, f"{place}, world")
    world = file.world.changed(parts)
    if (model := KINDS.get(str(data["kind"]))) is not None:
        check(model, data, place, Known(world=world, policies=frozenset(file.policies)))
    return Case(id=str(data["id"]), kind=str(data["kind"]), data=data, world=world, file=file)


def _world(data: Mapping[str, Any]) -> World:
    return World(
        people={name: dict(flags) for name, flags in (data.get("people") or {}).items()},
        usergroups={name: list(one) for name, one in (data.get("usergroups") or {}).items()},
        channels=dict(data.get("channels") or {}),
        bot_in=tuple(data.get("bot_in") or ()),
        agents=tuple(data.get("agents") or ("agent",)),
        tools=dict(data.get("tools") or {}),
    )
