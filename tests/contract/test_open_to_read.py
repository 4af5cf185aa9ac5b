"""A database is looked into beside the process that has it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.stores import Stores
from storage.errors import RecordFormatError, StoreUnavailableError
from storage.sqlite.file.worker import connect
from tests.contract.builders import THREAD_ID, a_thread, an_entry
from tests.support.mongo import MongoServer
from tests.support.mongo_listener import by_hand
from tests.support.stores import MongoStores, SqliteStores


async def test_what_is_written_meanwhile_is_read(new_storage: Callable[[], Stores]) -> None:
    reader = new_storage()
    assert isinstance(reader, MongoStores | SqliteStores)
    writer = new_storage()
    await writer.open()
    try:
        await writer.audit.append(an_entry("1"))
        if isinstance(reader, SqliteStores) and reader._database._directory is None:
            with pytest.raises(StoreUnavailableError, match="there is no database"):
                await reader.open_to_read()
            return
        await reader.open_to_read()
        await writer.audit.append(an_entry("2"))
        assert [entry.entry_id for entry in await reader.audit.of_thread(THREAD_ID, limit=9)] == [
            *("1", "2")
        ]
    finally:
        await reader.close()
        await writer.close()


async def test_the_embedded_database_refuses_writes(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.close()
    await storage.open_to_read()
    try:
        with pytest.raises(StoreUnavailableError, match="readonly"):
            await storage.threads.ensure(a_thread())
    finally:
        await storage.close()


async def test_a_file_of_another_release_is_refused(tmp_path: Path) -> None:
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.close()
    worker = await connect(str(tmp_path / "countersign.db"))
    await worker.run("PRAGMA user_version = 99", {})
    await worker.close()
    with pytest.raises(RecordFormatError, match="99"):
        await storage.open_to_read()
    with pytest.raises(StoreUnavailableError, match="not open"):
        await storage.ping()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "countersign.db").write_bytes(b"this is no database, however long it is" * 99)
    with pytest.raises(StoreUnavailableError):
        await SqliteStores(tmp_path).open_to_read()


@pytest.mark.mongo
async def test_a_reader_makes_no_index(mongo_server: MongoServer) -> None:
    database = mongo_server.new_database()
    storage = MongoStores(mongo_server.uri, driver="pymongo", database=database)
    await storage.open_to_read()
    try:
        assert await storage.audit.of_thread(THREAD_ID, limit=1) == []
        with by_hand():
            indexes = await storage._client.collection("audit").index_information()
        assert set(indexes) <= {"_id_"}
    finally:
        await storage.close()
