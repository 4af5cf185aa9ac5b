"""The servers of MongoDB's protocol start again after they were killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pymongo.errors import PyMongoError

from tests.support.mongo import MongoServer, own_client, spawn_mongo_server


@pytest.mark.mongo
def test_a_killed_server_starts_again_with_its_data_when_its_number_is_taken(
    tmp_path: Path,
) -> None:
    server = spawn_mongo_server(tmp_path)
    try:
        with own_client(server.uri) as client:
            client.db.things.insert_one({"_id": 1})
        (tmp_path / "pid").write_text(str(os.getpid()))  # another process by now
        server.kill()
        server.start()
        with own_client(server.uri) as client:
            assert client.db.things.find_one({"_id": 1}) == {"_id": 1}
    finally:
        server.stop()


def test_a_server_that_answers_late_after_a_restart_keeps_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine; those who use it know no other address."""
    late = [PyMongoError("no answer yet"), None, PyMongoError("no answer yet"), None]

    def answer(_: MongoServer) -> None:
        if error := late.pop(0):
            raise error

    monkeypatch.setattr(MongoServer, "_launch", lambda _: None)
    monkeypatch.setattr(MongoServer, "_await_answer", answer)
    server = MongoServer("nx", tmp_path)
    server.start()
    known = server.uri
    server.restart()
    assert (server.uri, late) == (known, [])
