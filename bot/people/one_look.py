"""One look at people: what was looked up once is not looked up again within it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bot.errors import DirectoryError
from bot.ports import Directory, Person

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OneLook:
    """A directory that remembers its answers. It serves one moment: a request, or a step.

    A click needs answers of its own: see `Census`.

    Args:
        directory: Where people are looked up.
    """

    directory: Directory
    _answers: dict[tuple[str, str], asyncio.Future[Any]] = field(default_factory=dict)

    async def person(self, user_id: str) -> Person:
        """See `Directory.person`."""
        return await self._once("person", user_id, self.directory.person)

    async def writer(self, user_id: str) -> Person:
        """See `Directory.writer`."""
        return await self.directory.writer(user_id)

    async def channel_members(self, channel_id: str) -> frozenset[str]:
        """See `Directory.channel_members`."""
        return await self._once("channel", channel_id, self.directory.channel_members)

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
