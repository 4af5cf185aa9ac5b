"""Test whether a server fulfills what decisions depend on. Leaves nothing behind.

Some servers speak MongoDB's protocol but are not MongoDB. They must guarantee two things: a
conditional update of one document is atomic, so that one of several concurrent clicks wins; and
creating an existing index changes nothing, because every start creates all indexes.
"""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from pymongo import IndexModel, ReturnDocument

from storage.base import CheckResult
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo.client import Apart

ROUNDS = 10
AT_ONCE = 20
"""Number of concurrent clicks in one round. On FerretDB 1.24, up to 8 of 20 won."""

FAR_S = 0.05
"""Duration of a round trip, in seconds, from which the self-test warns: a message needs about fifty
round trips.
"""
ROUND_TRIPS = 50

_OTHER = "use MongoDB itself, or a compatible service that keeps single-document atomicity"


class Server(Protocol):
    """The part of a connection that the test needs; see `storage.mongo.client.Client`."""

    def collection(self, name: str) -> Any:
        """Return the driver's collection."""
        ...

    def call(self, limit_s: float | None = None) -> AbstractAsyncContextManager[Apart]:
        """Limit the duration of one operation, and translate the driver's errors."""
        ...

    async def create_indexes(self, name: str, models: Sequence[IndexModel]) -> None:
        """Create indexes of a collection."""
        ...

    async def command(self, name: str, *, limit_s: float | None = None) -> dict[str, Any]:
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
            found = value.get("version") if isinstance(value, dict) else value
            if isinstance(found, str) and found.removeprefix("v")[:1].isdigit():
                return found.removeprefix("v")
    return ""


async def self_test(server: Server) -> list[CheckResult]:
    """Run the self-test; return faults and remarks.

    Raises:
        StoreUnavailableError: The server does not respond, or refuses.
    """
    scratch = f"doctor_{uuid.uuid4().hex}"
    try:
        faults = [
            *await _one_wins(server, scratch),
            *await _all_count(server, scratch),
            *await _indexes_may_exist(server, scratch),
        ]
    finally:
        async with server.call() as apart:
            await apart(server.collection(scratch).drop())
    return [*faults, *await _kind(server), *await _distance(server)]


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
        found = await apart(server.collection(scratch).find_one({"_id": "sum"}))
    if found is not None and found["n"] == AT_ONCE:
        return []
    number = found["n"] if found is not None else "none"
    text = f"of {AT_ONCE} additions at once, {number} counted; updates get lost on this server"
    return [CheckResult(text=text, remedy=_OTHER)]


async def _add(server: Server, scratch: str) -> None:
    async with server.call() as apart:
        await apart(server.collection(scratch).update_one({"_id": "sum"}, {"$inc": {"n": 1}}))


async def _indexes_may_exist(server: Server, scratch: str) -> list[CheckResult]:
    models = [IndexModel([("a", 1)]), IndexModel([("a", 1), ("b", 1)])]
    try:
        for _ in range(2):
            await server.create_indexes(scratch, models)
    except StoreUnavailableError as error:
        text = f"making indexes that exist already fails there: {error.detail}"
        return [CheckResult(text=text, remedy=f"the bot would start only once; {_OTHER}")]
    return []


async def _kind(server: Server) -> list[CheckResult]:
    try:
        answer = await server.command("hello")
    except StoreBrokenError:  # the older name of the command, for old and compatible servers
        answer = await server.command("isMaster")
    if "setName" in answer or answer.get("msg") == "isdbgrid":
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
