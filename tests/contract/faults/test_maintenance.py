"""Deleting and looking after SQLite: in pieces, by indexes, and without a trace of what is gone."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path

import pytest

from agents.core.checkpoint import CheckpointStatus
from bot.commands.cli import main
from bot.maintenance.audit_sealer import prune, verify
from storage.chain import NO_KEY
from storage.errors import StorageError
from storage.trail import PIECE
from tests.contract.builders import (
    THREAD_ID,
    a_grant,
    a_message,
    a_post,
    a_thread,
    a_whisper,
    an_approval,
    an_entry,
)
from tests.contract.faults.driver import Faults, break_sqlite
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores

PHRASE = "4711-marmalade"
NAME = "countersign.db"
OLD_MS, NEW_MS = 1_000, 1 << 50


@pytest.fixture(autouse=True)
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    break_sqlite(monkeypatch, made)
    return made


async def fill(storage: SqliteStores) -> None:
    """A thread at rest, with words in everything that is kept of it."""
    about = {"thread_id": THREAD_ID, "text": PHRASE}
    await storage.threads.ensure(a_thread(active_ms=1_000))
    await storage.inbox.add(a_message(**about))
    await storage.inbox.take([a_message().message_id], turn=1)
    await storage.approvals.insert(an_approval(preview=PHRASE, open=False, due_ms=None))
    await storage.posts.add(a_post(f"{THREAD_ID}#1:m", posted=True, **about))
    await storage.log.append(THREAD_ID, 1, PHRASE)
    await storage.ephemeral_messages.insert(a_whisper(text=PHRASE, due_ms=None))
    await storage.grants.add(a_grant(f"{THREAD_ID}:g:1", arguments={"text": PHRASE}, ended_ms=9))
    await storage.audit.append(an_entry(detail={"digest": "d", "reason": PHRASE}))
    key = f"{THREAD_ID}#1"
    await storage.checkpoints.save(key, PHRASE, status=CheckpointStatus.RUNNING, expected_version=0)
    await storage.checkpoints.append(key, PHRASE, base=1, index=0)
    await storage.checkpoints.close(key, expected_version=1)


def with_phrase(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir() if PHRASE.encode() in file.read_bytes())


@pytest.mark.parametrize(
    "command",
    [("forget", THREAD_ID, "--yes"), ("prune", "--older-than", "90d", "--yes")],
    ids=["forget", "prune"],
)
async def test_forgotten_words_are_in_no_file_while_the_bot_runs(
    tmp_path: Path, faults: Faults, command: tuple[str, ...]
) -> None:
    """Also with a SQLite that overwrites nothing unless it is told to."""
    faults.settings = ("PRAGMA secure_delete = OFF",)
    bot = SqliteStores(tmp_path)
    await bot.open()
    await fill(bot)
    assert with_phrase(tmp_path)

    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
    assert await asyncio.to_thread(main, command, environ=environ, say=lambda _: None) == 0

    assert with_phrase(tmp_path) == []
    await bot.ping()
    await bot.close()
    assert with_phrase(tmp_path) == []


async def test_who_reads_meanwhile_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup, say, keeps the log from being emptied: then the command says so."""
    monkeypatch.setattr("storage.sqlite.database.CLEAR_TRIES", 2)
    bot = SqliteStores(tmp_path)
    await bot.open()
    await fill(bot)
    reader = sqlite3.connect(tmp_path / NAME, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM posts").fetchall()
    said: list[str] = []

    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
    command = ("forget", THREAD_ID, "--yes")
    assert await asyncio.to_thread(main, command, environ=environ, say=said.append) == 0

    assert any("write-ahead log" in line for line in said)
    await bot.ping()
    reader.close()
    await bot.close()


async def aged(storage: SqliteStores, count: int) -> None:
    old = [an_entry(f"old-{number:06}", at_ms=OLD_MS) for number in range(count)]
    await storage.audit.append(*old)
    await storage.audit.append(an_entry("new", at_ms=NEW_MS))


async def pruned(storage: SqliteStores) -> int:
    return await prune(storage, "T1", before_ms=NEW_MS, owner="me", clock=FakeClock(now_ms=NEW_MS))


async def test_a_prune_changes_few_entries_at_a_time(tmp_path: Path, faults: Faults) -> None:
    bot = SqliteStores(tmp_path)
    await bot.open()
    await aged(bot, 3 * PIECE + 7)
    command = SqliteStores(tmp_path)
    await command.open_beside()
    faults.arm(None)

    assert await pruned(command) == 3 * PIECE + 7

    writes = [rows for sql, rows in faults.fetched if sql.lstrip().startswith(("UPDATE", "DELETE"))]
    assert sum(writes) == 3 * PIECE + 7
    assert max(writes) <= PIECE
    (verdict,) = (await verify(bot, NO_KEY)).values()
    assert verdict.ok
    await command.close()
    await bot.close()


@pytest.mark.parametrize("number", range(3))
async def test_a_prune_that_is_cut_off_leaves_a_chain_that_holds(
    tmp_path: Path, faults: Faults, number: int
) -> None:
    bot = SqliteStores(tmp_path)
    await bot.open()
    await aged(bot, 2 * PIECE + 7)
    noted = (await bot.trail.heads())["T1"]
    faults.arm(lambda: sqlite3.OperationalError("disk I/O error"))
    faults.only, faults.skip = "DELETE FROM audit", number

    with pytest.raises(StorageError):
        await pruned(bot)

    faults.arm(None)
    faults.only = ""
    (verdict,) = (await verify(bot, NO_KEY, head=noted, team_id="T1")).values()
    assert verdict.ok
    assert verdict.count > 2
    await pruned(bot)
    (verdict,) = (await verify(bot, NO_KEY, head=noted, team_id="T1")).values()
    assert verdict.ok
    assert verdict.count <= 3  # the newest, and a checkpoint of each try
    await bot.close()


async def test_what_was_cut_out_of_the_middle_is_still_missed(tmp_path: Path) -> None:
    """A checkpoint excuses a beginning that is gone, and nothing behind it."""
    bot = SqliteStores(tmp_path)
    await bot.open()
    await aged(bot, 20)
    await pruned(bot)
    await aged_again(bot)
    await bot._database.fetch("DROP TRIGGER audit_kept")
    rows = await bot._database.fetch("SELECT min(seq) AS first FROM audit")
    await bot._database.fetch(
        "DELETE FROM audit WHERE seq = :seq", {"seq": int(str(rows[0]["first"])) + 2}
    )

    (verdict,) = (await verify(bot, NO_KEY)).values()

    assert not verdict.ok
    await bot.close()


async def aged_again(storage: SqliteStores) -> None:
    for number in range(5):
        await storage.audit.append(an_entry(f"later-{number}", at_ms=NEW_MS + number))


async def test_the_log_does_not_stay_large(tmp_path: Path) -> None:
    """After a large transaction, such as an agent's history, it is cut again."""
    bot = SqliteStores(tmp_path)
    await bot.open()
    log = tmp_path / f"{NAME}-wal"
    for number in range(12):
        await bot.log.append("l", number, "x" * 4_000_000)
    await bot.audit.append(*(an_entry(f"e{n}", detail={"x": "y" * 400_000}) for n in range(50)))
    assert log.stat().st_size > 17 << 20
    await bot.ping()
    await bot.ping()

    assert log.stat().st_size <= 17 << 20
    await bot.close()


STARTED = (
    "UPDATE threads SET quarantined_by = ",
    "UPDATE approvals SET quarantined_by = ",
    "UPDATE ephemeral_messages SET quarantined_by = ",
    "WITH RECURSIVE teams",
)
"""Statements of each start and each hour."""


async def test_start_and_hourly_steps_read_no_table_from_end_to_end(
    tmp_path: Path, faults: Faults
) -> None:
    storage = SqliteStores(tmp_path)
    faults.arm(None)
    await storage.open()
    await storage.reconsider()
    await storage.trail.heads()
    await storage.count_unreadable()
    await storage.threads.running("T1", "U1", now_ms=1, limit=9)
    await storage.end_false_leases(now_ms=1)
    await storage.hasten(now_ms=1, before_ms=1)
    seen = [sql for sql in dict.fromkeys(faults.seen) if "audit" in sql or "quarantine" in sql]
    for wanted in STARTED:
        assert any(sql.lstrip().startswith(wanted) for sql in seen), wanted

    looked = [sql for sql in seen if sql.lstrip().split()[0] in {"SELECT", "UPDATE", "WITH"}]
    for sql in looked:
        values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
        plan = await storage._database.fetch(f"EXPLAIN QUERY PLAN {sql}", values)
        steps = [str(row["detail"]) for row in plan]
        scans = [step for step in steps if step.startswith("SCAN") and "INDEX audit" not in step]
        assert [scan for scan in scans if scan not in {"SCAN teams", "SCAN CONSTANT ROW"}] == [], (
            sql
        )
    await storage.close()
