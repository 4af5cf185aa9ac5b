"""Copies of the embedded database."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from bot.stores import KINDS
from storage.audit import AuditEntry
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.sqlite import back_up, has_database
from storage.sqlite.restore import restoring
from tests.support.stores import SqliteStores


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def made(directory: Path) -> None:
    storage = SqliteStores(directory)
    await storage.open()
    await storage.close()


async def test_a_copy_while_the_bot_writes(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    for number in range(50):
        await storage.audit.append(AuditEntry(entry_id=str(number), at_ms=number, action="x"))
    size = await back_up(tmp_path / "data", tmp_path / "copy.db")
    await storage.audit.append(AuditEntry(entry_id="later", at_ms=99, action="x", thread_id="t"))
    await storage.close()
    assert size == (tmp_path / "copy.db").stat().st_size
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute("SELECT count(*) FROM audit").fetchone() == (50,)
    copy.close()
    assert _names(tmp_path) == ["copy.db", "data"]


async def test_nothing_is_overwritten(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    target = tmp_path / "precious"
    target.write_text("mine")
    with pytest.raises(StoreUnavailableError, match="precious cannot be made: File exists"):
        await back_up(tmp_path / "data", target)
    await storage.close()
    assert target.read_text() == "mine"
    assert _names(tmp_path) == ["data", "precious"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "there is no database"),
        ("this is not a database, whatever its name says", "not a database"),
        ("of another program", "not a database of Countersign"),
    ],
    ids=["none", "damaged", "of another program"],
)
async def test_what_is_no_database_of_ours_is_not_copied(
    tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "countersign.db"
    if content == "of another program":
        with closing(sqlite3.connect(file)) as database:
            database.execute("CREATE TABLE notes (body TEXT)")
    elif content:
        file.write_text(content)
    with pytest.raises(StoreUnavailableError, match=words):
        await back_up(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    await made(tmp_path / "data")
    with pytest.raises(StoreUnavailableError, match="No such file"):
        await back_up(tmp_path / "data", tmp_path / "missing" / "copy")


@pytest.mark.parametrize(
    ("fault", "words"),
    [(PermissionError, "Permission denied"), (IsADirectoryError, "Is a directory")],
)
async def test_a_source_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[OSError], words: str
) -> None:
    await made(tmp_path / "data")
    source = tmp_path / "data" / "countersign.db"

    def refuse(*_: object) -> None:
        raise fault(0, words)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(StoreUnavailableError, match=f"{source} cannot be read: {words}"):
        await back_up(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(StoreUnavailableError, match=f"{source} cannot be used: {words}"):
        async with restoring(tmp_path / "new", source, ()):
            pytest.fail("it was opened")


async def test_a_directory_is_no_copy(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="cannot be used: Is a directory"):
        async with restoring(tmp_path / "new", tmp_path, ()):
            pytest.fail("it was opened")


async def with_an_unreadable_schema(directory: Path) -> None:
    """Make a database of which SQLite cannot even say in valid text what is wrong."""
    await made(directory)
    file = directory / "countersign.db"
    file.write_bytes(file.read_bytes().replace(b"CREATE TABLE", b"CREATE \x9e\x9e\x9eLE", 1))


async def test_a_schema_that_is_no_text_is_said_to_be_damaged(tmp_path: Path) -> None:
    await with_an_unreadable_schema(tmp_path / "data")
    with pytest.raises(StoreUnavailableError, match="cannot be made: the database file is damaged"):
        await back_up(tmp_path / "data", tmp_path / "copy")
    assert _names(tmp_path) == ["data"]


async def test_no_copy_with_such_a_schema_is_restored(tmp_path: Path) -> None:
    await with_an_unreadable_schema(tmp_path / "data")
    copy = (tmp_path / "data" / "countersign.db").rename(tmp_path / "copy")
    with pytest.raises(StoreUnavailableError, match="cannot be used: the database file is damaged"):
        async with restoring(tmp_path / "new", copy, ()):
            pytest.fail("it was opened")
    assert not (tmp_path / "new" / "countersign.db").exists()


async def test_no_bot_starts_with_an_empty_database_after_a_restore_that_failed(
    tmp_path: Path,
) -> None:
    await made(tmp_path / "data")
    await back_up(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(OSError, match="power cut"):
        async with restoring(tmp_path / "new", tmp_path / "copy", KINDS):
            raise OSError("power cut")

    with pytest.raises(StoreBrokenError) as error:
        await SqliteStores(tmp_path / "new").open()

    assert error.value.fault is Fault.MISSING
    assert has_database(tmp_path / "new")
    async with restoring(tmp_path / "new", tmp_path / "copy", KINDS):
        pass
    restored = SqliteStores(tmp_path / "new")
    await restored.open()
    await restored.close()
