"""Damages stored records, as a faulty disk, a faulty tool, or another release would."""

import json
from collections.abc import Mapping
from typing import Any

from bot.stores import KINDS, Stores
from storage.mongo import MongoStorage
from storage.sqlite import SqliteStorage

KEYS: Mapping[str, str] = {
    "audit": "entry_id",
    "checkpoints": "checkpoint_id",
}

DOCUMENTS = frozenset(
    {
        "threads",
        "messages",
        "approvals",
        "posts",
        "ephemeral_messages",
        "people",
        "grants",
        "switches",
    }
)
"""Collections of documents."""

COLUMNS = frozenset(
    {
        "v",
        "due_ms",
        "leased_by",
        "leased_until_ms",
        "fence",
        "quarantined_by",
        "quarantine_reason",
    }
)
"""Fields that the engines keep beside the body."""

_GUARDS = {"audit": ("audit_sealed", "audit_kept")}


async def spoil(storage: Stores, table: str, key: str, **fields: Any) -> None:
    """Overwrite fields of a stored record, past all checks."""
    engine = storage.database
    if isinstance(engine, MongoStorage):
        collection = engine._client.collection(table)
        where = {"_id": key}
        if table in DOCUMENTS:
            fields = {
                f"_work.{name}" if name in COLUMNS - {"v"} else name: value
                for name, value in fields.items()
            }
            fields["revision"] = 1 << 20  # another process wrote it
        assert (await collection.update_one(where, {"$set": fields})).matched_count == 1
        return
    assert isinstance(engine, SqliteStorage)
    for trigger in _GUARDS.get(table, ()):
        await engine._database.fetch(f"DROP TRIGGER IF EXISTS {trigger}")
    changes = [f"{name} = {_sql(value)}" for name, value in fields.items()]
    if table in DOCUMENTS:
        changes = [
            f"{name} = {_sql(value)}" if name in COLUMNS else _set(table, name, value)
            for name, value in fields.items()
        ]
        changes.append(f"revision = {1 << 20}")  # another process wrote it
    rows = await engine._database.fetch(
        f"UPDATE {table} SET {', '.join(changes)} "  # noqa: S608
        f"WHERE {KEYS.get(table, 'id')} = :key RETURNING 1",
        {"key": key},
    )
    assert len(rows) == 1


async def raw(storage: Stores, table: str, key: str) -> dict[str, Any]:
    """A stored record as it is; of a document, the fields of its body beside the engine's."""
    engine = storage.database
    if isinstance(engine, MongoStorage):
        document = await engine._client.collection(table).find_one({"_id": key})
        stored = dict(document or {})
        work = stored.pop("_work", {})
        return {**_defaults(table), **stored, **work} if stored else {}
    assert isinstance(engine, SqliteStorage)
    rows = await engine._database.fetch(
        f"SELECT * FROM {table} WHERE {KEYS.get(table, 'id')} = :key",  # noqa: S608
        {"key": key},
    )
    if not rows or table not in DOCUMENTS:
        return dict(rows[0]) if rows else {}
    body = {**json.loads(str(rows[0]["content"] or "{}")), **json.loads(str(rows[0]["body"]))}
    columns = {name: value for name, value in rows[0].items() if name in COLUMNS}
    return {**_defaults(table), **body, **columns}


def _defaults(table: str) -> dict[str, Any]:
    """What is not in a body that has it."""
    kinds = [model for model in KINDS if model.spec.name == table]
    fields = [pair for kind in kinds for pair in kind.model_fields.items()]
    return {name: field.default for name, field in fields if not field.is_required()}


def _set(table: str, name: str, value: Any) -> str:
    if isinstance(value, bytes):  # no JSON, and no text
        return f"body = {_sql(value)}"
    contents = {kind.spec.name: kind.spec.content for kind in KINDS}
    column = "content" if name in contents[table] else "body"
    return f"{column} = json_set({column}, '$.{name}', json({_sql(json.dumps(value))}))"


def _sql(value: Any) -> str:
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS TEXT)"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else json.dumps(value)
