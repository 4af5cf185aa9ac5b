"""The tables of a new database, and the migrations of older ones."""

from __future__ import annotations

from collections.abc import Iterable

DATABASE_VERSION = 1
"""Stored as SQLite's `user_version`; incremented by each release that changes the tables."""

_TABLES = """

CREATE TABLE IF NOT EXISTS audit (
    entry_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    action TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    detail TEXT NOT NULL,
    erased INTEGER NOT NULL,
    team_id TEXT NOT NULL,
    for_id TEXT NOT NULL,
    content TEXT,
    salt TEXT,
    seq INTEGER,
    alg TEXT,
    prev TEXT,
    hash TEXT
);
CREATE INDEX IF NOT EXISTS audit_thread ON audit (thread_id, at_ms, entry_id);


CREATE TABLE IF NOT EXISTS log (
    id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    data TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS checkpoints (
    checkpoint_id TEXT NOT NULL PRIMARY KEY,
    v INTEGER NOT NULL,
    data TEXT NOT NULL,
    claim TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    changes TEXT NOT NULL DEFAULT ''
);

CREATE TABLE IF NOT EXISTS journal (
    checkpoint_id TEXT NOT NULL,
    base INTEGER NOT NULL,
    position INTEGER NOT NULL,
    v INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (checkpoint_id, base, position)
);

CREATE TABLE IF NOT EXISTS health (
    name TEXT NOT NULL PRIMARY KEY,
    writes INTEGER NOT NULL
);

CREATE TRIGGER IF NOT EXISTS checkpoints_closed AFTER UPDATE OF status ON checkpoints
WHEN NEW.status = 'closed'
BEGIN
    DELETE FROM journal WHERE checkpoint_id = NEW.checkpoint_id;
END;

CREATE TRIGGER IF NOT EXISTS checkpoints_deleted AFTER DELETE ON checkpoints
BEGIN
    DELETE FROM journal WHERE checkpoint_id = OLD.checkpoint_id;
END;

CREATE UNIQUE INDEX IF NOT EXISTS audit_chain ON audit (team_id, seq);
CREATE INDEX IF NOT EXISTS audit_open ON audit (at_ms, entry_id) WHERE seq IS NULL;
CREATE INDEX IF NOT EXISTS audit_checkpoints ON audit (team_id, seq) WHERE action = 'checkpoint';
CREATE TRIGGER IF NOT EXISTS audit_sealed BEFORE UPDATE ON audit
WHEN OLD.seq IS NOT NULL AND NOT (
    NEW.entry_id IS OLD.entry_id AND NEW.v IS OLD.v AND NEW.at_ms IS OLD.at_ms
    AND NEW.action IS OLD.action AND NEW.thread_id IS OLD.thread_id
    AND NEW.approval_id IS OLD.approval_id AND NEW.actor_id IS OLD.actor_id
    AND NEW.detail IS OLD.detail AND NEW.team_id IS OLD.team_id AND NEW.for_id IS OLD.for_id
    AND NEW.seq IS OLD.seq AND NEW.alg IS OLD.alg AND NEW.prev IS OLD.prev AND NEW.hash IS OLD.hash
    AND (NEW.content IS OLD.content AND NEW.salt IS OLD.salt AND NEW.erased IS OLD.erased
        OR NEW.content = '' AND NEW.salt = '' AND NEW.erased = 1))
BEGIN
    SELECT RAISE(ABORT, 'a sealed entry of the audit never changes');
END;
CREATE TRIGGER IF NOT EXISTS audit_kept BEFORE DELETE ON audit
WHEN OLD.seq IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM audit WHERE team_id = OLD.team_id AND action = 'checkpoint' AND seq > OLD.seq
    AND CASE WHEN json_valid(detail) THEN json_extract(detail, '$.upto_seq') END >= OLD.seq)
BEGIN
    SELECT RAISE(ABORT, 'an entry of the audit goes only behind a checkpoint');
END;
"""
"""Tables that are not collections.

Triggers protect the audit chain: each sequence number is assigned once, and a sealed entry never
changes.
"""

_OURS = frozenset({"audit", "checkpoints", "health", "journal", "log"})

NOT_OURS = "it is not a database of Countersign"
"""The fault of an empty file, or of another program's database, in place of ours."""

FIND_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"


def has_our_tables(names: Iterable[str]) -> bool:
    """Return whether the tables of a file are those of a database of Countersign."""
    return _OURS.issubset(names)


def ddl(tables: str) -> str:
    """Return the script that creates a new database.

    Args:
        tables: The statements that create the tables of the documents.
    """
    version = f"PRAGMA user_version = {DATABASE_VERSION};"
    return f"BEGIN IMMEDIATE;\n{_TABLES}\n{tables}\n{version}\nCOMMIT;"


MIGRATIONS: dict[int, str] = {}
"""The migration script by the database version that it starts from; none so far.

A script is `BEGIN IMMEDIATE`, the changes, `PRAGMA user_version = 2`, `COMMIT`. It never changes
after its release, so it contains its own statements and uses none of the above.
"""
