"""Run a listener's work in the person's language, as long as Slack waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from bot.errors import NotRecordedError
from bot.people.lookup import locale_of
from bot.ports.people import Directory
from bot.words import speaking

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Responder:
    """Runs the work of listeners.

    Attributes:
        directory: Looks up people's locales.
        patience: Longest time to handle a click.
    """

    directory: Directory
    patience: timedelta

    async def run(self, user_id: str, work: Awaitable[T]) -> T:
        """Run work that responds to a person; see `in_time` and `speak_to`."""
        return await self.in_time(self.speak_to(user_id, work))

    async def in_time(self, work: Awaitable[T]) -> T:
        """Wait for the database, at most as long as Slack waits for us.

        Raises:
            NotRecordedError: A timeout; the write may have taken place.
        """
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                return await work
        except TimeoutError as error:
            raise NotRecordedError from error

    async def speak_to(self, user_id: str, work: Awaitable[T]) -> T:
        """Run work that responds to a person, in their language; English if unknown."""
        with speaking(await locale_of(self.directory, user_id)):
            return await work
