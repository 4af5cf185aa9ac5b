"""People's messages in SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence

from storage.codec import MESSAGES
from storage.records import Message
from storage.sqlite.database import Database, insert_sql

_INSERT = insert_sql("messages", MESSAGES)

# A message that no turn took has the turn 0: one index serves both reads.
_NEW = """
SELECT * FROM messages WHERE thread_id = :thread_id AND turn = 0 AND status = 'new'
ORDER BY ts LIMIT :limit
"""

_TAKE = """
UPDATE messages SET status = 'taken', turn = :turn
WHERE turn IN (0, :turn) AND message_id IN (SELECT value FROM json_each(:ids))
RETURNING *
"""

_REVISE = """
UPDATE messages SET text = :text WHERE message_id = :id AND status = 'new'
RETURNING *
"""

_SELECT = "SELECT * FROM messages WHERE message_id = :id"

_OF_TURN = """
SELECT * FROM messages WHERE thread_id = :thread_id AND turn = :turn AND status = 'taken'
ORDER BY ts
"""


class SqliteInboxStore:
    """See `storage.ports.messages.InboxStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, message: Message) -> bool:
        return await self._database.change(_INSERT, MESSAGES.encode(message))

    async def new(self, thread_id: str, *, limit: int) -> Sequence[Message]:
        values = {"thread_id": thread_id, "limit": max(limit, 0)}
        return [MESSAGES.decode(row) for row in await self._database.read(_NEW, values)]

    async def take(self, message_ids: Sequence[str], *, turn: int) -> Sequence[Message]:
        values = {"ids": json.dumps(list(message_ids)), "turn": turn}
        taken = [MESSAGES.decode(row) for row in await self._database.fetch(_TAKE, values)]
        return sorted(taken, key=lambda message: message.ts)

    async def revise(self, message_id: str, text: str) -> Message | None:
        values = {"id": message_id, "text": text}
        rows = await self._database.fetch(_REVISE, values)
        rows = rows or await self._database.read(_SELECT, {"id": message_id})
        return MESSAGES.decode(rows[0]) if rows else None

    async def of_turn(self, thread_id: str, turn: int) -> Sequence[Message]:
        values = {"thread_id": thread_id, "turn": turn}
        return [MESSAGES.decode(row) for row in await self._database.read(_OF_TURN, values)]
