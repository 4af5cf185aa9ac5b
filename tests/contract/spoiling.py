"""Damages stored records, as a faulty disk, a faulty tool, or another release would."""

import json
from collections.abc import Mapping
from typing import Any

from storage.base import Storage
from storage.mongo import MongoStorage
from storage.sqlite import SqliteStorage

KEYS: Mapping[str, str] = {
    "threads": "thread_id",
    "messages": "message_id",
    "approvals": "approval_id",
    "posts": "post_id",
    "whispers": "whisper_id",
    "audit": "entry_id",
    "checkpoints": "checkpoint_id",
    "log": "log_id",
}

DOCUMENTS: Mapping[str, str] = {"people": "person_id", "grants": "grant_id"}
"""Collections of documents, with the field that is their key."""

COLUMNS = frozenset({"v", "due_ms", "leased_by", "leased_until_ms", "fence"})
"""Fields that the engines keep beside the body."""

_GUARDS = {"audit": ("audit_sealed", "audit_kept")}


async def spoil(storage: Storage, table: str, key: str, **fields: Any) -> None:
    """Overwrite fields of a stored record, past all checks."""
    if isinstance(storage, MongoStorage):
        found = storage._client.collection(table)
        where = {"_id": f"{key}/1" if table == "log" else key}
        if table in DOCUMENTS:
            fields = {
                f"_work.{name}" if name in COLUMNS - {"v"} else name: value
                for name, value in fields.items()
            }
        assert (await found.update_one(where, {"$set": fields})).matched_count == 1
        return
    assert isinstance(storage, SqliteStorage)
    for trigger in _GUARDS.get(table, ()):
        await storage._database.fetch(f"DROP TRIGGER IF EXISTS {trigger}")
    changes = [f"{name} = {_sql(value)}" for name, value in fields.items()]
    if table in DOCUMENTS:
        changes = [
            f"{name} = {_sql(value)}"
            if name in COLUMNS
            else f"body = json_set(body, '$.{name}', json('{json.dumps(value)}'))"
            for name, value in fields.items()
        ]
    rows = await storage._database.fetch(
        f"UPDATE {table} SET {', '.join(changes)} "  # noqa: S608
        f"WHERE {KEYS.get(table, 'id')} = :key RETURNING 1",
        {"key": key},
    )
    assert len(rows) == 1


async def raw(storage: Storage, table: str, key: str) -> dict[str, Any]:
    """A stored record as it is."""
    if isinstance(storage, MongoStorage):
        found = await storage._client.collection(table).find_one({"_id": key})
        return dict(found or {})
    assert isinstance(storage, SqliteStorage)
    rows = await storage._database.fetch(
        f"SELECT * FROM {table} WHERE {KEYS.get(table, 'id')} = :key",  # noqa: S608
        {"key": key},
    )
    return dict(rows[0]) if rows else {}


def _sql(value: Any) -> str:
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS TEXT)"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else json.dumps(value)
