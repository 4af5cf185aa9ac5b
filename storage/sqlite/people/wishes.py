"""Single people, in SQLite: their wishes about messages, and what they were sent."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from storage.codec import PEOPLE
from storage.records import PersonRecord
from storage.sqlite.database import Database, insert_sql

_INSERT = insert_sql("people", PEOPLE)

_OF = """
SELECT * FROM people WHERE person_id IN (SELECT :team || ':' || value FROM json_each(:users))
"""

_WISHING = """
SELECT * FROM people WHERE team_id = :team AND (quiet_from <> '' OR has_copies = 1)
ORDER BY person_id
"""

_CHANGES = ", ".join(f"{name} = :{name}" for name in PEOPLE.names if name != PEOPLE.key)

_UPDATE = f"""
UPDATE people SET {_CHANGES} WHERE person_id = :person_id AND revision = :was RETURNING 1
"""  # noqa: S608 - names are our own

_DUE = "SELECT * FROM people WHERE due_ms <= :now ORDER BY due_ms LIMIT :limit"

_ERASE = """
DELETE FROM people WHERE person_id IN (
    SELECT person_id FROM people
    WHERE digest_ms < :before AND reminded_ms < :before AND due_ms IS NULL
        AND quiet_from = '' AND has_digest = 1 AND has_copies = 0
    LIMIT :limit)
RETURNING 1
"""


class SqlitePeopleStore:
    """See `storage.ports.people.PeopleStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, team_id: str, user_ids: Collection[str]) -> Mapping[str, PersonRecord]:
        values = {"team": team_id, "users": json.dumps(sorted(user_ids))}
        found = PEOPLE.legible(await self._database.read(_OF, values))
        return {one.user_id: one for one in found}

    async def wishing(self, team_id: str) -> Sequence[PersonRecord]:
        return PEOPLE.legible(await self._database.read(_WISHING, {"team": team_id}))

    async def put(self, changed: PersonRecord) -> bool:
        values = PEOPLE.encode(replace(changed, revision=changed.revision + 1))
        if changed.revision == 0:
            return await self._database.change(_INSERT, values)
        return await self._database.change(_UPDATE, {**values, "was": changed.revision})

    async def due(self, *, now_ms: int, limit: int) -> Sequence[PersonRecord]:
        return PEOPLE.legible(await self._database.read(_DUE, {"now": now_ms, "limit": limit}))

    async def erase(self, *, before_ms: int, limit: int) -> int:
        values = {"before": before_ms, "limit": limit}
        return len(await self._database.fetch(_ERASE, values))
