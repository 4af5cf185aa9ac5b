"""Prints the script of a database as this release makes it, with a record of each kind that counts.

`python -m tests.unit.storage.released > tests/data/database-v4.sql`, before the tables are changed.
"""

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path

from storage.sqlite import SqliteStorage
from storage.sqlite.schema.tables import DATABASE_VERSION
from tests.contract.builders import a_post, a_thread, an_approval, an_entry


async def script(directory: Path) -> str:
    storage = SqliteStorage(directory)
    await storage.open()
    await storage.threads.ensure(a_thread(due_ms=5))
    await storage.approvals.add(an_approval(card_ts="1.2"))
    await storage.posts.add(a_post())
    await storage.audit.append(an_entry())
    await storage.close()
    with sqlite3.connect(directory / "countersign.db") as database:
        lines = list(database.iterdump())
    database.close()
    version = f"PRAGMA user_version = {DATABASE_VERSION};"  # is in no dump
    return "\n".join([*lines[:-1], version, lines[-1], ""])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        sys.stdout.write(asyncio.run(script(Path(made))))
