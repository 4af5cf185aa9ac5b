"""The ports to rights that people hand on: delegations, absences, standing grants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from storage.records import DelegationRecord, Grant


class DelegationStore(Protocol):
    """Delegations and absences, by workspace."""

    async def add(self, delegation: DelegationRecord) -> bool:
        """Insert it unless its id exists; whether it was new."""
        ...

    async def current(self, team_id: str, *, now_ms: int) -> Sequence[DelegationRecord]:
        """All of a workspace that nobody has ended, and that end after `now_ms`, by creation time.

        One that cannot be read is left out: it gives nobody a right.
        """
        ...

    async def end(self, delegation_id: str, *, now_ms: int) -> bool:
        """End it early; False when that was done before, or there is none."""
        ...

    async def end_all(self, *, now_ms: int) -> int:
        """End all that nobody has ended, absences too; return how many."""
        ...

    async def erase(self, *, before_ms: int, limit: int) -> int:
        """Delete some that were over before `before_ms`; return how many."""
        ...


class GrantStore(Protocol):
    """Standing grants, by thread."""

    async def add(self, grant: Grant) -> bool:
        """Insert it unless its id exists; whether it was new."""
        ...

    async def get(self, grant_id: str) -> Grant:
        """Read a grant.

        Raises:
            RecordNotFoundError: No grant has this id.
            RecordFormatError: It cannot be read.
        """
        ...

    async def current(self, thread_id: str, *, now_ms: int) -> Sequence[Grant]:
        """Return the grants of a thread that nobody has ended and that end after `now_ms`.

        By creation time, used up or not. One that cannot be read is left out: it lets nothing run.
        """
        ...

    async def use(
        self, grant: Grant, *, call: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """Use it for a call: one conditional write.

        It is made when the stored grant has just the uses that the given one has, fewer than it may
        have, was not ended, and ends after `now_ms`.

        Args:
            grant: As read.
            call: Names the call; one that the grant was used for before needs no other use.
            now_ms: The time now.
            due_ms: When its message is drawn, unless somebody does so before.

        Returns:
            The grant as stored; None when it cannot be used, or has changed since it was read.
        """
        ...

    async def end(
        self, grant_id: str, *, by: str, now_ms: int, due_ms: int | None = None
    ) -> Grant | None:
        """End it: nothing more starts by it. None when it was ended before, or there is none.

        `due_ms` as in `use`.
        """
        ...

    async def end_all(self, *, now_ms: int) -> int:
        """End all: the database went back to a copy, and their uses are not known any more.

        Their messages are due at once.
        """
        ...

    async def mark_card(self, drawn: Grant, *, due_ms: int | None) -> None:
        """Remember the message that shows it, and when it is drawn again.

        Args:
            drawn: As the message `card_ts` shows it. When it was used or ended since, its `due_ms`
                stays as it is.
            due_ms: None when nothing of it will change any more.
        """
        ...

    async def due(self, *, now_ms: int, limit: int) -> Sequence[Grant]:
        """Grants with `due_ms <= now_ms`, earliest first; without those that cannot be read."""
        ...

    async def take(self, grant: Grant, *, until_ms: int) -> bool:
        """Move `due_ms`, which serves as a lease: one conditional write.

        Returns:
            False, and nothing written, when it is not that of the given grant any more.
        """
        ...
