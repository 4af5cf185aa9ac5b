"""The port to what is kept of people: when not to message them, and what they were sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from storage.records import PersonRecord


class PeopleStore(Protocol):
    """Single people, by workspace. Who has no record has the wishes that a new record has."""

    async def of(self, team_id: str, user_ids: Collection[str]) -> Mapping[str, PersonRecord]:
        """Read those of some people that there are, by Slack user id.

        One that cannot be read is left out: its person is told as anybody is.
        """
        ...

    async def wishing(self, team_id: str) -> Sequence[PersonRecord]:
        """Those of a workspace who have quiet hours, or want cards by direct message.

        One that cannot be read is left out: its person is told as anybody is.
        """
        ...

    async def put(self, changed: PersonRecord) -> bool:
        """Write one whole, as it is to be: with one conditional write.

        It is made when the stored revision is that of `changed`, or none is stored and that is 0;
        the stored one is one higher.

        Returns:
            False, and nothing written, when somebody was quicker: read it and judge again.
        """
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[PersonRecord]:
        """Those with `due_ms <= now_ms`, earliest first; without those that cannot be read."""
        ...

    async def erase(self, *, before_ms: int, limit: int) -> int:
        """Delete some who have no wishes of their own and nothing due, and were told nothing since.

        Returns:
            How many.
        """
        ...
