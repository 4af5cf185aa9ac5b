"""Short reads without the worker: what they see, and what they leave to it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bot.records.thread import Thread
from storage.errors import Fault, StoreBrokenError
from storage.sqlite.file.lock import FILE_NAME
from storage.sqlite.file.worker import Reader, open_reader
from tests.contract.builders import THREAD_ID, a_post, a_thread
from tests.support.stores import SqliteStores

COUNT = "SELECT count(*) AS found FROM t"


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[SqliteStores]:
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.threads.ensure(a_thread())
    yield storage
    await storage.close()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x INTEGER)")
        yield connection


@pytest.fixture
def reader(writer: sqlite3.Connection, tmp_path: Path) -> Iterator[Reader]:
    reader = open_reader(str(tmp_path / "db"), lambda: None)
    assert reader is not None
    with closing(reader):
        yield reader


def at_once(work: Coroutine[Any, Any, Thread]) -> Thread | None:
    """What it returns without ever waiting; None when it waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Thread = end.value
        return result
    work.close()
    return None


async def test_a_record_is_read_without_waiting(storage: SqliteStores) -> None:
    assert at_once(storage.threads.get(THREAD_ID)) == a_thread()


async def test_whoever_has_awaited_a_write_reads_it(storage: SqliteStores) -> None:
    async def write_and_read(name: str) -> bool:
        await storage.posts.add(a_post(name))
        is_added = await storage.posts.get(name) == a_post(name)
        await storage.posts.finish(name, ts="1.2")
        finished = a_post(name, ts="1.2", posted=True, revision=1)
        return is_added and await storage.posts.get(name) == finished

    assert all(await asyncio.gather(*(write_and_read(f"post-{n}") for n in range(200))))


async def test_a_read_is_not_held_up_by_who_writes(
    reader: Reader, writer: sqlite3.Connection
) -> None:
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO t VALUES (1)")

    assert reader.run(COUNT, {}) == [{"found": 0}]

    writer.execute("COMMIT")
    assert reader.run(COUNT, {}) == [{"found": 1}]


def test_a_reader_does_not_hold_up_the_log(reader: Reader, writer: sqlite3.Connection) -> None:
    writer.execute("INSERT INTO t VALUES (1)")
    assert reader.run(COUNT, {}) == [{"found": 1}]

    is_busy, in_log, moved = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert (is_busy, in_log, moved) == (0, 0, 0)


def test_what_is_locked_is_left_to_the_worker(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as writer:
        writer.execute("CREATE TABLE t (x INTEGER)")
        reader = open_reader(str(tmp_path / "db"), lambda: None)
        assert reader is not None
        with closing(reader):
            writer.execute("BEGIN EXCLUSIVE")  # in a file without a log, nobody else may read
            assert reader.run(COUNT, {}) is None


def test_nothing_is_written(reader: Reader, writer: sqlite3.Connection) -> None:
    assert reader.run("INSERT INTO t VALUES (1) RETURNING 1", {}) is None

    assert writer.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_nothing_is_read_from_what_is_watched_and_wrong(
    writer: sqlite3.Connection, tmp_path: Path
) -> None:
    fault = StoreBrokenError("replaced", Fault.REPLACED)
    reader = open_reader(str(tmp_path / "db"), lambda: fault)
    assert reader is not None
    with closing(reader):
        assert reader.run(COUNT, {}) is None


def test_what_is_no_database_has_no_reader(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"x" * 5_000)

    assert open_reader(str(tmp_path), lambda: None) is None
    reader = open_reader(str(tmp_path / "other"), lambda: None)
    assert reader is None or reader.run(COUNT, {}) is None
    if reader is not None:
        reader.close()


@pytest.mark.parametrize("name", [FILE_NAME, f"{FILE_NAME}-wal"])
async def test_c6_a_file_that_was_replaced_is_not_read(
    storage: SqliteStores, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).rename(tmp_path / "aside")
    (tmp_path / name).write_bytes((tmp_path / "aside").read_bytes())

    with pytest.raises(StoreBrokenError, match="replaced") as caught:
        await storage.threads.get(THREAD_ID)

    assert caught.value.fault is Fault.REPLACED
