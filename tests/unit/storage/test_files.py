"""The files of the embedded database: whose they are, and whether they are still the same."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.core.checkpoint import CheckpointStatus
from storage.errors import Fault, RecordFormatError, StoreBrokenError, StoreBusyError
from tests.contract.builders import THREAD_ID, a_thread, an_entry
from tests.support.stores import SqliteStores

NAMES = ["countersign.db", "countersign.lock", "countersign.db-wal", "countersign.db-shm"]


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStores]:
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.threads.ensure(a_thread(due_ms=1))
    yield storage
    await storage.close()


def modes(directory: Path) -> dict[str, int]:
    return {name: stat.S_IMODE((directory / name).stat().st_mode) for name in NAMES}


async def test_the_directory_and_all_files_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "data"
    storage = SqliteStores(directory)
    await storage.open()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert modes(directory) == dict.fromkeys(NAMES, 0o600)
    await storage.close()


async def test_files_that_were_open_to_others_are_taken_from_them(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    storage = SqliteStores(directory)
    await storage.open()
    for name in NAMES:
        (directory / name).chmod(0o666)
    await storage.close()
    for name in NAMES:
        (directory / name).touch()
        (directory / name).chmod(0o666)
    directory.chmod(0o777)

    await storage.open()

    assert modes(directory) == dict.fromkeys(NAMES, 0o600)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755
    await storage.close()


@pytest.mark.parametrize("name", NAMES)
async def test_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / name).symlink_to(target)

    with pytest.raises(StoreBrokenError, match=f"{name} is a symbolic link") as caught:
        await SqliteStores(directory).open()

    assert caught.value.fault is Fault.FOREIGN
    assert target.read_text() == "mine"
    (directory / name).unlink()
    again = SqliteStores(directory)
    await again.open()  # the lock was given back
    await again.close()


@pytest.mark.parametrize("name", ["countersign.db", "countersign.db-wal"])
async def test_a_deleted_file_is_noticed_before_anything_is_lost(
    storage: SqliteStores, tmp_path: Path, name: str
) -> None:
    await storage.ping()
    (tmp_path / name).unlink()

    for attempt in (storage.ping(), storage.threads.wake(THREAD_ID, now_ms=1)):
        with pytest.raises(StoreBrokenError, match=f"{name} was deleted") as caught:
            await attempt
        assert caught.value.fault is Fault.REPLACED


async def test_a_replaced_file_is_noticed_by_the_bot_and_from_outside(
    storage: SqliteStores, tmp_path: Path
) -> None:
    with pytest.raises(StoreBusyError) as caught:
        await SqliteStores(tmp_path).open()
    assert not caught.value.is_replaced
    path = tmp_path / "countersign.db"
    (tmp_path / "copy").write_bytes(path.read_bytes())
    (tmp_path / "copy").rename(path)

    with pytest.raises(StoreBrokenError, match="was replaced"):
        await storage.ping()
    with pytest.raises(StoreBusyError) as caught:
        await SqliteStores(tmp_path).open()
    assert caught.value.is_replaced


async def closed(directory: Path) -> Path:
    storage = SqliteStores(directory)
    await storage.open()
    await storage.threads.ensure(a_thread())
    for number in range(400):
        await storage.audit.append(an_entry(str(number), at_ms=number))
    await storage.close()
    return directory / "countersign.db"


async def test_a_damaged_file_is_told_from_one_that_is_away(tmp_path: Path) -> None:
    path = await closed(tmp_path)
    content = bytearray(path.read_bytes())
    content[4096 : len(content) : 97] = b"\xff" * len(content[4096 : len(content) : 97])
    path.write_bytes(content)
    storage = SqliteStores(tmp_path)

    with pytest.raises(StoreBrokenError) as caught:
        await opened_and_examined(storage)

    assert caught.value.fault is Fault.DAMAGED
    await storage.close()


async def opened_and_examined(storage: SqliteStores) -> None:
    await storage.open()
    await storage.examine()


async def test_a_sound_file_has_no_remark(storage: SqliteStores) -> None:
    assert await storage.examine() == []


async def test_a_full_database_takes_no_write_and_says_so(storage: SqliteStores) -> None:
    pages = (await storage._database.fetch("PRAGMA page_count"))[0]["page_count"]
    await storage._database.fetch(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreBrokenError, match="full") as caught:
        await storage.log.append("l", 1, "x" * 500_000)

    assert caught.value.fault is Fault.FULL
    await storage._database.fetch("PRAGMA max_page_count = 1000000")
    await storage.ping()  # it goes on by itself


async def test_readiness_is_a_write(storage: SqliteStores) -> None:
    await storage.ping()
    await storage._database.fetch("PRAGMA query_only = ON")

    with pytest.raises(StoreBrokenError) as caught:
        await storage.ping()

    assert caught.value.fault is Fault.READ_ONLY
    await storage._database.fetch("PRAGMA query_only = OFF")
    (row,) = await storage._database.fetch("SELECT writes FROM health")
    assert row == {"writes": 1}


async def test_a_copy_on_a_disk_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await closed(tmp_path)
    refuse_writing(monkeypatch)
    storage = SqliteStores(tmp_path)

    await storage.open_to_read()

    assert (await storage.threads.get(THREAD_ID)) == a_thread()
    await storage.close()
    assert not path.with_name(f"{path.name}-wal").exists()


async def test_a_log_beside_the_copy_is_not_left_out(
    storage: SqliteStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.threads.wake(THREAD_ID, now_ms=77)  # stands in the log alone
    refuse_writing(monkeypatch)
    reader = SqliteStores(tmp_path)

    await reader.open_to_read()

    assert (await reader.threads.get(THREAD_ID)).due_ms == 77
    await reader.close()


def refuse_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open files as a disk that is mounted for reading does: root may write all others."""
    connect = sqlite3.connect

    def refusing(target: str, **options: object) -> sqlite3.Connection:
        if "mode=rw" in target:
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return connect(target, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(sqlite3, "connect", refusing)


async def test_a_newer_file_is_not_touched(tmp_path: Path) -> None:
    path = await closed(tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(RecordFormatError, match="unknown schema version 99"):
        await SqliteStores(tmp_path).open()

    assert path.read_bytes() == before


async def test_the_end_of_a_run_and_its_journal_are_one_transaction(
    storage: SqliteStores,
) -> None:
    await storage.checkpoints.save("c", "x", status=CheckpointStatus.RUNNING, expected_version=0)
    await storage.checkpoints.append("c", "secret", base=1, index=0)
    await storage._database.fetch(
        "CREATE TRIGGER odd BEFORE DELETE ON journal BEGIN SELECT RAISE(ABORT, 'cut off'); END"
    )

    with pytest.raises(Exception, match="cut off"):
        await storage.checkpoints.close("c", expected_version=1)

    stored = await storage.checkpoints.load("c")
    assert stored is not None
    assert stored.status is CheckpointStatus.RUNNING
    await storage._database.fetch("DROP TRIGGER odd")
    await storage.checkpoints.close("c", expected_version=1)
    assert await storage._database.fetch("SELECT entry FROM journal") == []
