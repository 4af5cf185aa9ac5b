"""Stores programs and their keys, as `countersign keys create` does."""

from __future__ import annotations

import secrets
import time
from typing import Any

from bot.records.programs import (
    ProgramKeyRecord,
    ProgramRecord,
    ProgramScope,
    key_digest,
    key_id,
    new_key,
    program_id,
)
from bot.records.webhooks import new_secret
from bot.stores import Stores

_LIFE_MS = 9 * 10**9


async def add_program(
    storage: Stores, name: str, *, now_ms: int | None = None, **fields: Any
) -> str:
    """Store a program that may write and read with each tool, and return a key of it.

    Args:
        storage: The database, open.
        name: Name of the program. One that exists gets another key.
        now_ms: The time now; None for that of the machine.
        fields: Fields of `ProgramRecord`; `team_id`, `owner_id` and `channels` have no default.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    defaults: dict[str, Any] = {
        "salt": secrets.token_hex(32),
        "scopes": (ProgramScope.WRITE, ProgramScope.READ),
        "tools": ("*",),
        "callback_secrets": (new_secret(),),
    }
    program = ProgramRecord(
        **{**defaults, **fields}, id=program_id(name), name=name, created_ms=now_ms
    )
    await storage.programs.add(program)
    key = new_key()
    record = ProgramKeyRecord(
        id=key_id(key) or "",
        program_id=program.id,
        digest=key_digest(key),
        created_ms=now_ms,
        expires_ms=now_ms + _LIFE_MS,
    )
    await storage.programs.add_key(record)
    return key
