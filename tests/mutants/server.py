"""A MongoDB server for many processes: prints its address, and ends when its input does."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.mongo import spawn_mongo_server

if __name__ == "__main__":
    with TemporaryDirectory() as place:
        server = spawn_mongo_server(Path(place))
        sys.stdout.write(server.uri + "\n")
        sys.stdout.flush()
        sys.stdin.read()
        server.stop()
