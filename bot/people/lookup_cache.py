"""One look at people, and at rights that they handed on: nothing is looked up twice within it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bot.errors import DirectoryError
from bot.people.delegated import PowersNow
from bot.ports.people import Directory, Person
from storage.records import DelegationRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LookupOnce:
    """A directory that remembers its answers. It serves one moment: a request, or a step.

    A click needs answers of its own: see `PeopleLookup`.

    Args:
        directory: Where people are looked up.
    """

    directory: Directory
    _answers: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)

    async def person(self, user_id: str) -> Person:
        """See `Directory.person`."""
        return await self._once("person", user_id, self.directory.person)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """See `Directory.channel_members`."""
        return await self._once("channel", channel_id, self.directory.channel_members)

    async def is_public(self, channel_id: str) -> bool:
        """See `Directory.is_public`."""
        return await self._once("public", channel_id, self.directory.is_public)

    async def is_in(self, channel_id: str) -> bool:
        """See `Directory.is_in`."""
        return await self._once("room", channel_id, self.directory.is_in)

    async def group_members(self, group_id: str) -> frozenset[str]:
        """See `Directory.group_members`."""
        return await self._once("group", group_id, self.directory.group_members)

    async def _once(self, kind: str, name: str, look: Callable[[str], Awaitable[T]]) -> T:
        known = self._answers.get((kind, name))
        if known is None:
            known = self._answers[kind, name] = asyncio.ensure_future(_tried(look, name))
        answer: T | DirectoryError = await asyncio.shield(known)
        if isinstance(answer, DirectoryError):
            raise answer
        return answer


async def _tried(look: Callable[[str], Awaitable[T]], name: str) -> T | DirectoryError:
    try:
        return await look(name)
    except DirectoryError as error:
        return error


@dataclass(frozen=True, slots=True)
class DelegationCache:
    """Handed rights that are read once. It serves one moment, as `LookupOnce` does.

    Args:
        powers: Where they are read.
    """

    powers: PowersNow
    _read: dict[str, asyncio.Future[Sequence[DelegationRecord]]] = field(default_factory=dict)

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """See `DelegationStore.current`; of the moment of the first look."""
        known = self._read.get(team_id)
        if known is None:
            look = self.powers.current(team_id, now_ms=now_ms)
            known = self._read[team_id] = asyncio.ensure_future(look)
        return await asyncio.shield(known)
