"""What is special about the embedded database."""

import asyncio
import os
import re
import sqlite3
from pathlib import Path

import pytest

from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError
from bot.stores import KINDS
from storage.errors import (
    Fault,
    RecordFormatError,
    StoreBrokenError,
    StoreBusyError,
    StoreUnavailableError,
)
from storage.sqlite import database
from storage.sqlite.collection import tables
from storage.sqlite.file.lock import LOCK_NAME, DirectoryLock
from storage.sqlite.tables import DATABASE_VERSION, MIGRATIONS, ddl
from tests.contract.builders import (
    APPROVAL_ID,
    DIGEST,
    THREAD_ID,
    a_decision,
    a_post,
    a_thread,
    an_approval,
)
from tests.support.decided import decide
from tests.support.stores import SqliteStores


def edit(directory: Path, statement: str) -> None:
    connection = sqlite3.connect(directory / "countersign.db")
    with connection:
        connection.execute(statement)
    connection.close()


async def made(directory: Path) -> None:
    storage = SqliteStores(directory)
    await storage.open()
    await storage.threads.ensure(a_thread(due_ms=1))
    await storage.approvals.insert(an_approval())
    await storage.checkpoints.save("c", "x", status=CheckpointStatus.RUNNING, expected_version=0)
    await storage.checkpoints.append("c", "j", base=1, index=0)
    await storage.log.append("l", 1, "x")
    await storage.close()


def test_a_holder_that_is_no_number_is_not_repeated(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.acquire()
    (tmp_path / LOCK_NAME).write_text("<!channel>")

    with pytest.raises(StoreBusyError) as caught:
        second.acquire()
    assert caught.value.holder == ""

    first.release()
    first.release()
    second.acquire()
    second.release()


@pytest.mark.parametrize("name", ["", LOCK_NAME, "countersign.db"])
async def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "data"
    if name:
        (directory / name).mkdir(parents=True)  # a folder where a file should be
    else:
        directory.write_text("a file where a folder should be")
    storage = SqliteStores(directory)

    words = f"directory {directory} cannot be written"
    with pytest.raises(StoreBrokenError, match=words) as caught:
        await storage.open()
    assert caught.value.fault is Fault.READ_ONLY
    await storage.close()


def test_a_lock_that_cannot_be_written_is_not_held(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("storage.sqlite.file.lock.os.write", full)
        with pytest.raises(OSError, match="No space"):
            first.acquire()

    second.acquire()
    second.release()


async def test_a_failed_open_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "countersign.db").write_bytes(b"this is no database" * 100)
    storage = SqliteStores(tmp_path)

    with pytest.raises(StoreBrokenError, match="not a database") as caught:
        await storage.open()
    assert caught.value.fault is Fault.FOREIGN

    lock = DirectoryLock(tmp_path)
    lock.acquire()
    lock.release()


async def test_an_old_sqlite_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(database, "MIN_SQLITE", (99, 0, 0))

    with pytest.raises(StoreUnavailableError, match=r"3\.35 or newer"):
        await SqliteStores(tmp_path).open()


async def test_every_write_is_flushed_to_the_disk(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path)
    await storage.open()

    assert await storage._database.fetch("PRAGMA synchronous") == [{"synchronous": 2}]
    assert await storage._database.fetch("PRAGMA journal_mode") == [{"journal_mode": "wal"}]
    await storage.close()


@pytest.mark.parametrize("version", [0, DATABASE_VERSION])
async def test_a_file_of_another_program_is_refused_and_not_changed(
    tmp_path: Path, version: int
) -> None:
    edit(tmp_path, "CREATE TABLE notes (body TEXT)")
    edit(tmp_path, f"PRAGMA user_version = {version}")
    before = (tmp_path / "countersign.db").read_bytes()
    storage = SqliteStores(tmp_path)
    for opening in (storage.open, storage.open_beside, storage.open_to_read):
        with pytest.raises(StoreBrokenError, match="not a database of Countersign") as caught:
            await opening()
        assert caught.value.fault is Fault.FOREIGN
    assert (tmp_path / "countersign.db").read_bytes() == before


async def test_records_of_a_newer_release_are_left_alone(tmp_path: Path) -> None:
    await made(tmp_path)
    for table in ("threads", "approvals", "journal", "log"):
        edit(tmp_path, f"UPDATE {table} SET v = 2")  # noqa: S608 - our own names
    storage = SqliteStores(tmp_path)
    await storage.open()

    assert await storage.threads.due(now_ms=9, limit=9) == []
    assert await storage.threads.claim(THREAD_ID, owner="a", now_ms=9, until_ms=99) is None
    with pytest.raises(RecordFormatError):
        await storage.threads.get(THREAD_ID)
    with pytest.raises(RecordFormatError):
        await decide(storage.approvals, APPROVAL_ID, a_decision(), digest=DIGEST)
    with pytest.raises(RecordFormatError, match="journal entry"):
        await storage.checkpoints.load("c")
    with pytest.raises(RecordFormatError, match="log entry"):
        await storage.log.load("l", before_turn=9)
    await storage.close()


async def test_i5_who_slept_through_a_save_or_the_end_cannot_append() -> None:
    storage = SqliteStores(None)
    await storage.open()
    checkpoints = storage.checkpoints
    await checkpoints.save("c", "x", status=CheckpointStatus.RUNNING, expected_version=0)
    await checkpoints.save("c", "y", status=CheckpointStatus.RUNNING, expected_version=1)

    with pytest.raises(CheckpointConflictError):
        await checkpoints.append("c", "call started", base=1, index=0)
    await checkpoints.close("c", expected_version=2)
    with pytest.raises(CheckpointConflictError):
        await checkpoints.append("c", "call started", base=2, index=0)
    assert await storage._database.fetch("SELECT * FROM journal") == []
    await storage.close()


@pytest.mark.parametrize("script", [ddl(tables(KINDS)), *MIGRATIONS.values()])
def test_nothing_is_made_twice(script: str) -> None:
    made = re.findall(
        r"CREATE (?:UNIQUE )?(?:TABLE|INDEX|TRIGGER) (?:IF NOT EXISTS )?(\w+)", script
    )
    assert sorted(set(made)) == sorted(made)


async def test_leases_of_a_dead_process_end_with_the_next_start(tmp_path: Path) -> None:
    first = SqliteStores(tmp_path)
    await first.open()
    await first.threads.ensure(a_thread(due_ms=1))
    await first.threads.ensure(a_thread(thread_id="T1:C1:2", due_ms=50_000))  # nobody's
    await first.approvals.insert(an_approval(due_ms=1))
    thread = await first.threads.claim(THREAD_ID, owner="dead", now_ms=10, until_ms=99_999)
    assert thread is not None
    assert await first.approvals.claim(APPROVAL_ID, owner="dead", now_ms=10, until_ms=99_999)
    await first.close()
    second = SqliteStores(tmp_path)
    await second.open()
    freed = await second.threads.get(THREAD_ID)
    assert (freed.leased_by, freed.leased_until_ms) == ("", 0)
    assert [t.thread_id for t in await second.threads.due(now_ms=11, limit=5)] == [THREAD_ID]
    assert [a.approval_id for a in await second.approvals.due(now_ms=11, limit=5)] == [APPROVAL_ID]
    assert not await second.threads.extend(THREAD_ID, fence=thread.fence, until_ms=99_999)
    taken = await second.threads.claim(THREAD_ID, owner="alive", now_ms=11, until_ms=99_999)
    assert taken is not None
    assert taken.fence == thread.fence + 1
    await second.close()


async def test_a_database_of_an_earlier_release_is_migrated_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(tmp_path)
    step = (
        "BEGIN IMMEDIATE; ALTER TABLE posts ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; "
        f"PRAGMA user_version = {DATABASE_VERSION + 1}; COMMIT;"
    )
    monkeypatch.setattr(database, "MIGRATIONS", {DATABASE_VERSION: step})
    monkeypatch.setattr(database, "DATABASE_VERSION", DATABASE_VERSION + 1)
    for _ in range(2):  # the second time there is nothing to do
        storage = SqliteStores(tmp_path)
        await storage.open()
        assert (await storage.threads.get(THREAD_ID)).due_ms == 1
        columns = await storage._database.fetch("PRAGMA table_info(posts)")
        assert "mood" in [column["name"] for column in columns]
        rows = await storage._database.fetch("PRAGMA user_version")
        assert rows == [{"user_version": DATABASE_VERSION + 1}]
        await storage.close()


def test_each_released_version_has_a_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(1, DATABASE_VERSION))


async def test_i4_who_reads_and_then_writes_is_not_refused_for_another_process(
    tmp_path: Path,
) -> None:
    """As `countersign prune` does beside the bot."""
    bot, command = SqliteStores(tmp_path), SqliteStores(tmp_path)
    await bot.open()
    await command.open_beside()
    await bot.threads.ensure(a_thread())

    async def from_outside() -> None:
        for number in range(150):
            await command.log.append("l", number, "x" * 100)

    async def of_the_bot() -> None:
        for number in range(150):
            reading = bot.threads.get(THREAD_ID)
            await asyncio.gather(reading, bot.threads.wake(THREAD_ID, now_ms=number))

    await asyncio.gather(from_outside(), of_the_bot())

    assert (await bot.threads.get(THREAD_ID)).wakes == 150
    await command.close()
    await bot.close()


async def test_what_is_forgotten_is_overwritten_on_the_disk(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.posts.add(a_post(f"{THREAD_ID}#1:m", text="4711-marmalade"))
    await storage.retention.erase(THREAD_ID, limit=9)
    await storage.close()

    assert b"4711-marmalade" not in (tmp_path / "countersign.db").read_bytes()


async def test_a_file_of_another_release_is_not_changed_beside_it(tmp_path: Path) -> None:
    await made(tmp_path)
    edit(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(RecordFormatError, match="database file"):
        await SqliteStores(tmp_path).open_beside()


def test_what_a_longer_text_left_in_the_lock_is_gone(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("1234567890\n12:34\nmore of an earlier holder\n")
    lock = DirectoryLock(tmp_path)

    lock.acquire()

    assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n-\n12:34\n"
    lock.release()


def test_who_finds_it_locked_leaves_the_holder_in_it(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.acquire()
    (tmp_path / "countersign.db").touch()
    first.name_file()
    before = (tmp_path / LOCK_NAME).read_text()

    with pytest.raises(StoreBusyError, match=f"process {os.getpid()}"):
        second.acquire()

    assert (tmp_path / LOCK_NAME).read_text() == before
    first.release()


def test_a_lock_that_cannot_be_read_has_an_unknown_holder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")  # as on Windows

    first, second = DirectoryLock(tmp_path), DirectoryLock(tmp_path)
    first.acquire()

    with monkeypatch.context() as patch:
        patch.setattr("storage.sqlite.file.lock.os.read", refused)
        with pytest.raises(StoreBusyError) as caught:
            second.acquire()
    assert caught.value.holder == ""
    first.release()
