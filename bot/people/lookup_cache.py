"""Cache directory and delegation look-ups for one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bot.errors import DirectoryError
from bot.people.delegated import PowersNow
from bot.people.model import DelegationRecord
from bot.ports.people import Directory, Person

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LookupOnce:
    """Directory that caches answers for one request or step.

    Clicks need fresh answers; see `PeopleLookup`.
    """

    directory: Directory
    _answers: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)

    async def person(self, user_id: str) -> Person:
        """Look up a person; see `Directory.person`."""
        return await self._once("person", user_id, self.directory.person)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """Look up members; see `Directory.channel_members`."""
        return await self._once("channel", channel_id, self.directory.channel_members)

    async def is_public(self, channel_id: str) -> bool:
        """Look up a channel; see `Directory.is_public`."""
        return await self._once("public", channel_id, self.directory.is_public)

    async def is_in(self, channel_id: str) -> bool:
        """Look up the bot's membership; see `Directory.is_in`."""
        return await self._once("room", channel_id, self.directory.is_in)

    async def group_members(self, group_id: str) -> frozenset[str]:
        """Look up members; see `Directory.group_members`."""
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
    """Caches delegations for one request, like `LookupOnce`."""

    powers: PowersNow
    _read: dict[str, asyncio.Future[Sequence[DelegationRecord]]] = field(default_factory=dict)

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """Return delegations as of the first call; see `DelegationStore.current`."""
        known = self._read.get(team_id)
        if known is None:
            look = self.powers.current(team_id, now_ms=now_ms)
            known = self._read[team_id] = asyncio.ensure_future(look)
        return await asyncio.shield(known)
