"""The embedded database: one file, one process; or in memory, for tests."""

from __future__ import annotations

from storage.sqlite.backup import back_up
from storage.sqlite.file.lock import has_database
from storage.sqlite.storage import SqliteStorage

__all__ = ["SqliteStorage", "back_up", "has_database"]
