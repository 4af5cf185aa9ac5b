"""The servers of MongoDB's protocol start again after they were killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.mongo import own_client, spawn_mongo_server


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
