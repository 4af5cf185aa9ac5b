"""Migrations from each released version of the tables to the next; none so far.

A step is a script: `BEGIN IMMEDIATE`, the changes, `PRAGMA user_version = 2`, `COMMIT`. It never
changes after its release, so it writes out what it needs and uses no text of `tables`.
"""

from __future__ import annotations

MIGRATIONS: dict[int, str] = {}
"""By the version that a database has."""
