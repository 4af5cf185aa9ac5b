"""A server that speaks MongoDB's protocol, for tests.

`COUNTERSIGN_TEST_MONGODB_URI` names one; else `COUNTERSIGN_TEST_MONGODB_SERVER` says which kind is
started: `mongod`, `java` (mongo-java-server, an implementation of its own, whose jars
`make test-mongo SERVER=java` fetches), or `nx` (the package nx-27017, which is wrong in places but
installs anywhere). Unset, it is `mongod` when that is on the PATH, else `nx`. If none works, tests
fail; nothing is ever skipped. Use the fixture `mongo_server` to have some server, and
`spawn_mongo_server` where the test itself must stop and start it.
"""

import gc
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from storage.mongo import Driver
from tests.support.mongo_listener import by_hand
from tests.support.ports import free_port

URI_VARIABLE = "COUNTERSIGN_TEST_MONGODB_URI"
KIND_VARIABLE = "COUNTERSIGN_TEST_MONGODB_SERVER"
JARS = Path(__file__).parents[2] / ".javaserver"
"""Where `make` puts what the Java server needs."""
PREFIX = "countersign_test_"
START_MS = 20_000

DRIVERS: tuple[Driver, ...] = ("motor", "pymongo")
"""All that talks to MongoDB is tried with both; where several bots run, they take turns."""

MAY_LEAK = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.usefixtures("collected"),
]
"""Marks for the tests of a file that close a storage while its server is away: PyMongo's async
client forgets to close a socket when it is closed at the moment that it tries to connect."""


@contextmanager
def own_client(uri: str, **options: Any) -> Iterator[MongoClient[dict[str, Any]]]:
    """Open a client of the test's own: the commands of the block are not judged."""
    with by_hand(), MongoClient[dict[str, Any]](uri, **options) as client:
        yield client


class MongoServer:
    """A server for tests.

    Attributes:
        kind: `uri` (named by the environment), `mongod`, `java`, or `nx`.
        uri: How to reach it; the same after a restart.
        is_kept: Whether data is there again after a restart.
    """

    def __init__(
        self, kind: str, directory: Path | None, uri: str = "", *, is_kept: bool = True
    ) -> None:
        self.kind = kind
        self.is_kept = is_kept
        self.uri = uri
        self._directory = directory
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._databases: list[str] = []

    @property
    def pid(self) -> int:
        """Process id of a server that this session started."""
        assert self._process is not None, "the server does not run, or is not ours"
        return self._process.pid

    def new_database(self) -> str:
        """Give a name that no other test uses."""
        name = PREFIX + uuid.uuid4().hex
        self._databases.append(name)
        return name

    def new_uri(self) -> str:
        """Give the address of a database that no other test uses."""
        return self.uri_of(self.new_database())

    def uri_of(self, database: str) -> str:
        """Give the address of a database on this server, with the same login."""
        address, _, options = self.uri.partition("?")
        scheme, _, place = address.partition("://")
        hosts, _, login = place.partition("/")
        given = [options] if options else []
        # Else the login would be looked for in the new database. A certificate's is in no database.
        if "@" in hosts and "authsource=" not in options.lower() and "X509" not in options:
            given.append(f"authSource={login or 'admin'}")
        return f"{scheme}://{hosts}/{database}" + (f"?{'&'.join(given)}" if given else "")

    def start(self) -> None:
        """Start, and wait until it answers. It keeps its port over restarts."""
        assert self._directory is not None, "a server named by the environment cannot be started"
        is_new = not self._port
        for attempt in range(5):  # another process may take the port before the server does
            if not self._port:
                self._port = free_port()
            self.uri = f"mongodb://127.0.0.1:{self._port}/"
            if self.kind == "mongod":
                self.uri += "?replicaSet=rs0"
            self._launch()
            try:
                self._await_answer()
            except PyMongoError:
                self.kill()
                if attempt == 4:
                    raise
                if is_new:
                    self._port = 0
            else:
                return

    def stop(self) -> None:
        """Stop in good order; may be repeated."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Stop at once, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._directory is not None:  # nx does not start while any process has this number
            (self._directory / "pid").unlink(missing_ok=True)

    def restart(self) -> None:
        """Stop and start, on the same data."""
        self.stop()
        self.start()

    def clean(self) -> None:
        """Drop the databases of this session, where they would outlive it."""
        if self._directory is None:
            with own_client(self.uri) as client:
                for name in self._databases:
                    client.drop_database(name)

    def _launch(self) -> None:
        assert self._directory is not None
        port, data = str(self._port), self._directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        command = COMMANDS[self.kind](port, data)
        if not self.is_kept:
            command += IN_MEMORY[self.kind]
        with (self._directory / "output").open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the command is made above
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _await_answer(self) -> None:
        direct = f"mongodb://127.0.0.1:{self._port}/?directConnection=true"
        with own_client(direct, serverSelectionTimeoutMS=START_MS) as client:
            client.admin.command("ping")
            if self.kind == "mongod":
                member = {"_id": 0, "host": f"127.0.0.1:{self._port}"}
                try:
                    client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
                except OperationFailure as error:
                    if error.code != 23:  # AlreadyInitialized
                        raise
        if self.kind == "mongod":  # wait until it is elected
            with own_client(self.uri, serverSelectionTimeoutMS=START_MS) as client:
                client.admin.command("ping")


def _mongod(port: str, data: Path) -> list[str]:
    command = ["mongod", "--replSet", "rs0", "--bind_ip", "127.0.0.1"]
    return [*command, "--port", port, "--dbpath", str(data)]


def _java(port: str, data: Path) -> list[str]:
    source = Path(__file__).parents[1] / "javaserver" / "Server.java"
    return ["java", "-cp", f"{JARS}/*", str(source), port, str(data / "file")]


def _nx(port: str, data: Path) -> list[str]:
    command = [sys.executable, "-P", str(Path(__file__).with_name("nx.py")), "--host", "127.0.0.1"]
    command += ["--port", port, "--data-dir", str(data)]
    command += ["--log-file", str(data.with_name("log"))]
    return [*command, "--pid-file", str(data.with_name("pid"))]


COMMANDS = {"mongod": _mongod, "java": _java, "nx": _nx}
IN_MEMORY: dict[str, list[str]] = {
    "mongod": [],
    "java": ["memory"],
    "nx": ["--data-dir", "memory"],
}
"""Added for a server that is not restarted; mongod always writes."""


def spawn_mongo_server(directory: Path, *, is_kept: bool = True) -> MongoServer:
    """Start a server of our own in a directory; the caller stops it."""
    default = "mongod" if shutil.which("mongod") else "nx"
    kind = os.environ.get(KIND_VARIABLE, "") or default
    server = MongoServer(kind, directory, is_kept=is_kept)
    assert server.kind in COMMANDS, f"{KIND_VARIABLE}: there is no {server.kind!r}"
    assert server.kind != "java" or JARS.is_dir(), "run `make test-mongo SERVER=java`"
    server.start()
    return server


@pytest.fixture(scope="session")
def mongo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MongoServer]:
    """The server of this test session (with pytest-xdist: of this worker)."""
    uri = os.environ.get(URI_VARIABLE, "")
    if uri:
        server = MongoServer("uri", None, uri)
    else:
        # Nobody restarts it. Files take nx a third of its time, and the Java server three quarters,
        # more with each database.
        server = spawn_mongo_server(tmp_path_factory.mktemp("mongo"), is_kept=False)
    yield server
    server.clean()
    server.stop()


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """Let go of garbage while its warnings are still the business of the same file.

    Once for all of its tests: each time may take a fifth of a second.
    """
    yield
    gc.collect()
