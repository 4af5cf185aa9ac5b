"""Database files that are gone, empty, or were damaged by hand."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bot.commands.cli import main
from bot.commands.database import look_at_storage
from bot.config.settings import Settings
from bot.records.approval_queries import count_pending
from storage.errors import Fault, StorageError, StoreBrokenError
from storage.sqlite import back_up
from tests.contract.builders import an_approval
from tests.support.halves import later
from tests.support.stores import SqliteStores

NAME = "countersign.db"


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def deleted(path: Path) -> None:
    path.unlink()


@pytest.fixture
async def directory(tmp_path: Path) -> Path:
    """A data directory in which a bot ran, with a copy of its database beside."""
    storage = SqliteStores(tmp_path / "data")
    await storage.open()
    await storage.approvals.insert(an_approval())
    await storage.close()
    await back_up(tmp_path / "data", tmp_path / "copy.db")
    return tmp_path / "data"


@pytest.mark.parametrize("lose", [emptied, deleted])
async def test_a_database_that_was_lost_is_not_begun_anew(
    directory: Path, lose: Callable[[Path], None]
) -> None:
    lose(directory / NAME)

    for _ in range(2):  # nor by trying again
        with pytest.raises(StoreBrokenError, match="though there was a database") as caught:
            await SqliteStores(directory).open()
        assert caught.value.fault is Fault.MISSING

    (directory / "countersign.lock").unlink()  # as the remedy says
    fresh = SqliteStores(directory)
    await fresh.open()
    assert await count_pending(fresh.approvals) == 0
    await fresh.close()


@pytest.mark.parametrize("lose", [emptied, deleted])
async def test_the_doctor_says_what_to_do_about_a_lost_database(
    directory: Path, lose: Callable[[Path], None]
) -> None:
    lose(directory / NAME)
    settings = Settings.load(
        {
            "COUNTERSIGN_DATA_DIR": str(directory),
            "COUNTERSIGN_APPROVERS": "U0123456789",
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": "s" * 32,
        }
    )

    (finding,) = [reported async for reported in look_at_storage(settings, Settings.make_storage)]

    assert "though there was a database in this directory" in finding.text
    assert "countersign restore" in finding.remedy
    assert "delete countersign.lock" in finding.remedy


async def test_an_empty_file_is_not_read_copied_or_pruned(directory: Path) -> None:
    emptied(directory / NAME)
    for attempt in (
        SqliteStores(directory).open_to_read(),
        SqliteStores(directory).open_beside(),
        back_up(directory, directory.parent / "other.db"),
    ):
        with pytest.raises(StorageError, match="is empty"):
            await attempt


async def test_a_restored_copy_takes_the_place_of_a_lost_database(directory: Path) -> None:
    deleted(directory / NAME)
    environ = {"COUNTERSIGN_DATA_DIR": str(directory)}
    command = ("restore", str(directory.parent / "copy.db"))

    code = await asyncio.to_thread(main, command, environ=environ, say=lambda _: None)

    assert code == 0
    storage = SqliteStores(directory)
    await storage.open()
    assert await count_pending(storage.approvals) == 1
    await storage.close()


OPENS = """
import asyncio, itertools, os, signal, sqlite3, sys
from pathlib import Path
from tests.support.stores import SqliteStores

count = last = 0

class Connection(sqlite3.Connection):
    def cursor(self, *args):
        global count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().cursor(*args)

    def executescript(self, script):
        self.cursor()
        result = super().executescript(script)
        self.cursor()
        return result

connect = sqlite3.connect
sqlite3.connect = lambda *args, **options: connect(*args, factory=Connection, **options)

async def main(directory):
    await SqliteStores(directory).open()
    os._exit(0)

for last in itertools.count(1):
    if not (child := os.fork()):
        asyncio.run(main(Path(sys.argv[1]) / str(last)))
    _, status = os.waitpid(child, 0)
    if not status:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, status
"""
"""Starts again and again, each time killed one statement later, until a start is not killed."""


@later
async def test_a_first_start_that_was_killed_anywhere_can_be_repeated(tmp_path: Path) -> None:
    command = (sys.executable, "-c", OPENS, str(tmp_path))
    dying = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).parents[3])
    assert await dying.wait() == 0
    starts = await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
    for data in starts:
        storage = SqliteStores(data)
        await storage.open()
        await storage.approvals.insert(an_approval())
        await storage.close()
        with closing(sqlite3.connect(data / NAME)) as other:
            assert other.execute("SELECT count(*) FROM approvals").fetchone() == (1,)
    assert len(starts) > 5
