"""Records of people, as a test needs them."""

from __future__ import annotations

from typing import Any

from bot.records.people import PersonRecord
from tests.unit.bot.office import ADA, Office


async def person(office: Office, user_id: str = ADA) -> PersonRecord:
    """Read a person's record."""
    return (await office.storage.people.of("T1", [user_id]))[user_id]


async def keep(office: Office, user_id: str = ADA, **changes: Any) -> None:
    """Change a person's record."""
    people = office.storage.people
    assert await people.change("T1", user_id, lambda before: before.changed(**changes))
