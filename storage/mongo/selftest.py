"""Test whether a server fulfills what decisions depend on. Leaves nothing behind.

Some servers speak MongoDB's protocol but are not MongoDB. They must guarantee three things: a
conditional update of one document is atomic, so that one of several concurrent clicks wins;
creating an existing index changes nothing, because every start creates all indexes; and a write
that the driver sends again, because the reply was lost, runs once.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from bson import Int64
from pymongo import ReturnDocument

from storage.base import CheckResult
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo.client import Apart
from storage.mongo.faults import is_timeout

ROUNDS = 10
AT_ONCE = 20
"""Number of concurrent clicks in one round. On FerretDB 1.24, up to 8 of 20 won."""

FAR_S = 0.05
"""Duration of a round trip, in seconds, from which the self-test warns: a message needs about fifty
round trips.
"""
ROUND_TRIPS = 50

_NUMBER = Int64(1 << 40)
"""Number of the repeated write; higher than all numbers that the driver gave in its session."""

_OTHER = "use MongoDB itself, or a compatible service that keeps single-document atomicity"
_SLOW = (
    "run `countersign doctor` again while the server is less busy; if it stays slow, use a larger "
    "server: people get no answer from the bot in time"
)


class Server(Protocol):
    """The part of a connection that the test needs; see `storage.mongo.client.Client`."""

    def collection(self, name: str) -> Any:
        """Return the driver's collection."""
        ...

    def call(self, limit_s: float | None = None) -> AbstractAsyncContextManager[Apart]:
        """Limit the duration of one operation, and translate the driver's errors."""
        ...

    @property
    def retries_writes(self) -> bool:
        """Whether the driver sends a write again after a lost reply."""
        ...

    async def make_all_indexes(self) -> None:
        """Create the indexes of all collections, with the time limit of the start."""
        ...

    async def session(self) -> Any:
        """Start a session of the driver."""
        ...

    async def command(
        self, name: str, *, limit_s: float | None = None, **values: Any
    ) -> dict[str, Any]:
        """Run a database command and return its response."""
        ...


async def check_kind(server: Server) -> None:
    """Refuse a server whose updates are known to be not atomic.

    Raises:
        StoreBrokenError: The server is such a release of FerretDB.
    """
    try:
        version = ferret_version(await server.command("buildInfo"))
    except StoreBrokenError:
        return  # the server does not identify itself; the doctor's self-test can still check it
    if version.startswith(("0.", "1.")):
        raise StoreBrokenError(
            f"this is FerretDB {version}: two people could decide one request there, as its "
            f"updates of one document are not atomic; {_OTHER}",
            Fault.UNSUITED,
        )


def ferret_version(build: Mapping[str, object]) -> str:
    """Return the version of FerretDB; empty for other servers."""
    for name, value in build.items():
        if name.lower().startswith("ferretdb"):
            version = value.get("version") if isinstance(value, dict) else value
            if isinstance(version, str) and version.removeprefix("v")[:1].isdigit():
                return version.removeprefix("v")
    return ""


async def self_test(server: Server) -> list[CheckResult]:
    """Run the self-test of an open server; return faults and remarks.

    Raises:
        StoreUnavailableError: The server does not respond, or refuses.
    """
    try:
        return await _all_checks(server)
    except StoreUnavailableError as error:
        if not is_timeout(error):
            raise
        text = f"the server is slow: the self-test ended without a result ({error.detail})"
        return [CheckResult(text=text, remedy=_SLOW)]


async def _all_checks(server: Server) -> list[CheckResult]:
    scratch = f"doctor_{uuid.uuid4().hex}"
    hello = await hello_of(server)
    try:
        faults = [
            *await _one_wins(server, scratch),
            *await _all_count(server, scratch),
            *await _indexes_may_exist(server),
        ]
        if _is_cluster(hello) and server.retries_writes:
            faults += await _runs_once(server, scratch)
    finally:
        async with server.call() as apart:
            await apart(server.collection(scratch).drop())
    return [*faults, *_kind(hello), *await _distance(server)]


async def _one_wins(server: Server, scratch: str) -> list[CheckResult]:
    most = 0
    for number in range(ROUNDS):
        async with server.call() as apart:
            await apart(
                server.collection(scratch).insert_one({"_id": f"one{number}", "state": "open"})
            )
        results = await asyncio.gather(
            *(_decide(server, scratch, f"one{number}", by) for by in range(AT_ONCE))
        )
        most = max(most, sum(results))
    if most == 1:
        return []
    return [
        CheckResult(
            text=f"of {AT_ONCE} decisions of one request at once, {most} were taken; "
            "the server's updates of one document are not atomic",
            remedy=_OTHER,
        )
    ]


async def _decide(server: Server, scratch: str, key: str, by: int) -> bool:
    async with server.call() as apart:
        changed = await apart(
            server.collection(scratch).find_one_and_update(
                {"_id": key, "state": "open"},
                {"$set": {"state": "decided", "by": by}},
                return_document=ReturnDocument.AFTER,
            )
        )
    return changed is not None


async def _all_count(server: Server, scratch: str) -> list[CheckResult]:
    async with server.call() as apart:
        await apart(server.collection(scratch).insert_one({"_id": "sum", "n": 0}))
    await asyncio.gather(*(_add(server, scratch) for _ in range(AT_ONCE)))
    async with server.call() as apart:
        document = await apart(server.collection(scratch).find_one({"_id": "sum"}))
    if document is not None and document["n"] == AT_ONCE:
        return []
    number = document["n"] if document is not None else "none"
    text = f"of {AT_ONCE} additions at once, {number} counted; updates get lost on this server"
    return [CheckResult(text=text, remedy=_OTHER)]


async def _add(server: Server, scratch: str) -> None:
    async with server.call() as apart:
        await apart(server.collection(scratch).update_one({"_id": "sum"}, {"$inc": {"n": 1}}))


async def _indexes_may_exist(server: Server) -> list[CheckResult]:
    try:
        await server.make_all_indexes()  # the start has created them already
    except StoreUnavailableError as error:
        if is_timeout(error):
            raise
        text = f"making indexes that exist already fails there: {error.detail}"
        return [CheckResult(text=text, remedy=f"the bot would start only once; {_OTHER}")]
    return []


async def _runs_once(server: Server, scratch: str) -> list[CheckResult]:
    async with server.call() as apart:
        await apart(server.collection(scratch).insert_one({"_id": "again", "n": 0}))
    # The driver gives the sessions that have ended to other writes, whose numbers begin below ours.
    # Therefore, this session is not ended. The server ends it.
    session = await server.session()
    for _ in range(2):
        await server.command(
            "update",
            value=scratch,
            updates=[{"q": {"_id": "again"}, "u": {"$inc": {"n": 1}}}],
            writeConcern={"w": "majority"},
            txnNumber=_NUMBER,
            session=session,
        )
    async with server.call() as apart:
        document = await apart(server.collection(scratch).find_one({"_id": "again"}))
    if document is not None and document["n"] == 1:
        return []
    text = (
        "the server runs a write again that the driver repeats after a lost reply, so a click that "
        "counted may be told as too late, and work may wait for the end of a lease"
    )
    remedy = "add retryWrites=false to MONGODB_URI, as for every service without retryable writes"
    return [CheckResult(text=text, remedy=remedy)]


async def hello_of(server: Server) -> Mapping[str, Any]:
    """Return what a server says about itself.

    Raises:
        StoreUnavailableError: The server does not respond, or refuses.
    """
    try:
        return await server.command("hello")
    except StoreBrokenError:  # the older name of the command, for old and compatible servers
        return await server.command("isMaster")


def _is_cluster(hello: Mapping[str, Any]) -> bool:
    return "setName" in hello or hello.get("msg") == "isdbgrid"


def _kind(hello: Mapping[str, Any]) -> list[CheckResult]:
    if _is_cluster(hello):
        return []
    text = (
        "the server is neither a replica set nor a sharded cluster: after each cut connection, "
        "work waits for the end of a lease (15 s); a replica set of one member is enough"
    )
    return [CheckResult(text=text)]


async def _distance(server: Server) -> list[CheckResult]:
    times: list[float] = []
    for _ in range(5):
        begin = time.monotonic()
        await server.command("ping")
        times.append(time.monotonic() - begin)
    took = statistics.median(times)
    if took <= FAR_S:
        return []
    text = (
        f"a round trip to the server takes {took * 1000:.0f} ms, and a message needs about "
        f"{ROUND_TRIPS} of them until its card: {took * ROUND_TRIPS:.0f} s; run the bot in the "
        "region of its database"
    )
    return [CheckResult(text=text)]
