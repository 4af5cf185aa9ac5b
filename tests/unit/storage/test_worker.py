"""Statements in groups: each with its own result, all on the disk when they return."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.errors import RecordRefusedError, StoreUnavailableError
from storage.sqlite.file.worker import Worker, connect

INSERT = "INSERT INTO t (x) VALUES (:x) RETURNING x"


async def _table(path: Path) -> Worker:
    worker = await connect(str(path))
    await worker.run("PRAGMA journal_mode = WAL", {})
    await worker.run("CREATE TABLE t (x INTEGER UNIQUE CHECK (x < 100))", {})
    return worker


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Worker]:
    worker = await _table(tmp_path / "db")
    yield worker
    await worker.close()


def _stored(path: Path) -> list[int]:
    with sqlite3.connect(path) as other:
        values = [row[0] for row in other.execute("SELECT x FROM t ORDER BY x")]
    other.close()
    return values


async def test_many_at_once(worker: Worker, tmp_path: Path) -> None:
    rows = await asyncio.gather(*(worker.run(INSERT, {"x": x}) for x in range(50)))
    assert rows == [[{"x": x}] for x in range(50)]
    assert _stored(tmp_path / "db") == list(range(50))


async def test_one_that_fails_does_not_undo_the_others(worker: Worker, tmp_path: Path) -> None:
    work = [worker.run(INSERT, {"x": x}) for x in (1, 2, 2, 500, 3)]
    work += [worker.run(INSERT, {"x": 2**70}), worker.run(INSERT, {"x": "\ud800"})]
    work += [worker.run("SELECT count(*) AS n FROM t", {}), worker.run("NO STATEMENT", {})]
    results = await asyncio.gather(*work, return_exceptions=True)
    kinds = [type(result) for result in results]
    assert kinds == [
        list,
        list,
        StoreUnavailableError,
        StoreUnavailableError,
        list,
        RecordRefusedError,
        RecordRefusedError,
        list,
        StoreUnavailableError,
    ]
    assert _stored(tmp_path / "db") == [1, 2, 3]


async def test_a_full_disk_undoes_the_group_and_tells_everybody(
    worker: Worker, tmp_path: Path
) -> None:
    await worker.run("CREATE TABLE big (x TEXT)", {})
    await worker.run(INSERT, {"x": 1})
    await worker.run("PRAGMA max_page_count = 10", {})
    big = "INSERT INTO big (x) VALUES (:x)"
    work = [worker.run(INSERT, {"x": 2}), worker.run(big, {"x": "y" * 200_000})]
    work += [worker.run(INSERT, {"x": 3})]
    results = await asyncio.gather(*work, return_exceptions=True)
    failures = [isinstance(result, StoreUnavailableError) for result in results]
    stored = _stored(tmp_path / "db")
    # Whoever was told that it worked is on the disk, and nobody else.
    assert stored == [1] + [
        x for x, failed in zip((2, 3), (failures[0], failures[2]), strict=True) if not failed
    ]
    assert failures[1]
    await worker.run("PRAGMA max_page_count = 100000", {})
    await worker.run(INSERT, {"x": 9})
    assert 9 in _stored(tmp_path / "db")


async def test_a_transaction_that_was_left_open_is_rolled_back_and_said(
    worker: Worker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await worker.run("BEGIN", {})
    assert await worker.run(INSERT, {"x": 1}) == [{"x": 1}]
    assert _stored(tmp_path / "db") == [1]
    assert "a transaction of the database was left open; it is rolled back" in caplog.messages


async def test_a_group_that_cannot_be_committed(worker: Worker, tmp_path: Path) -> None:
    await worker.run("PRAGMA foreign_keys = ON", {})
    await worker.run(
        "CREATE TABLE child (x INTEGER REFERENCES t (x) DEFERRABLE INITIALLY DEFERRED)", {}
    )
    results = await asyncio.gather(
        worker.run(INSERT, {"x": 1}),
        worker.run("INSERT INTO child (x) VALUES (77)", {}),
        return_exceptions=True,
    )
    assert all(isinstance(result, StoreUnavailableError) for result in results)
    assert _stored(tmp_path / "db") == []


async def test_a_caller_that_gave_up_does_not_disturb_the_others(
    worker: Worker, tmp_path: Path
) -> None:
    first = asyncio.create_task(worker.run(INSERT, {"x": 1}))
    second = asyncio.create_task(worker.run(INSERT, {"x": 2}))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == [{"x": 2}]
    assert _stored(tmp_path / "db") == [2]  # nobody waits for the first any more


async def test_closing_finishes_what_waits(tmp_path: Path) -> None:
    worker = await _table(tmp_path / "db")
    work = [asyncio.create_task(worker.run(INSERT, {"x": x})) for x in range(5)]
    await asyncio.sleep(0)
    await worker.close()
    await asyncio.gather(*work)
    assert _stored(tmp_path / "db") == [0, 1, 2, 3, 4]
    with pytest.raises(StoreUnavailableError, match="not open"):
        await worker.run(INSERT, {"x": 9})


async def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="unable to open"):
        await connect(str(tmp_path / "missing" / "db"))
