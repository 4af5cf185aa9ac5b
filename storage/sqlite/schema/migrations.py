"""Migrations from each released version of the tables to the next; none so far.

A step is a script: `BEGIN IMMEDIATE`, the changes, `PRAGMA user_version = 2`, `COMMIT`. It never
changes after its release, so it contains its own statements and uses none of `tables`.
"""

from __future__ import annotations

MIGRATIONS: dict[int, str] = {}
"""The migration script by the database version that it starts from."""
