"""Test whether a server does what decisions depend on. Leaves nothing behind.

There are servers that speak MongoDB's protocol and are not MongoDB. Two promises must hold on them:
a conditional update of one document is atomic (of any number of clicks, one wins), and making an
index that exists already changes nothing (every start does so).
"""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from pymongo import IndexModel, ReturnDocument

from storage.base import CheckResult
from storage.errors import Fault, StoreBrokenError, StoreUnavailableError
from storage.mongo.client import Apart

ROUNDS = 10
AT_ONCE = 20
"""Clicks in one round. FerretDB 1.24 let up to 8 of 20 win."""

FAR_S = 0.05
"""A round trip that takes longer makes people wait: a message needs some fifty of them."""
ROUND_TRIPS = 50

_OTHER = "use MongoDB itself, or a compatible service that keeps single-document atomicity"


class Server(Protocol):
    """The part of a connection that the test needs; see `storage.mongo.client.Client`."""

    def collection(self, name: str) -> Any:
        """Give the driver's own collection."""
        ...

    def call(self, limit_s: float | None = None) -> AbstractAsyncContextManager[Apart]:
        """Hold one operation to its time, and turn the driver's errors into ours."""
        ...

    async def command(self, name: str, *, limit_s: float | None = None) -> dict[str, Any]:
        """Run a command that asks the server something."""
        ...


async def check_kind(server: Server) -> None:
    """Refuse a server that is known to break what we rely on.

    Raises:
        StoreBrokenError: It is one.
    """
    try:
        version = ferret_version(await server.command("buildInfo"))
    except StoreBrokenError:
        return  # it does not say what it is; the self-test of the doctor still can
    if version.startswith(("0.", "1.")):
        raise StoreBrokenError(
            f"this is FerretDB {version}: two people could decide one request there, as its "
            f"updates of one document are not atomic; {_OTHER}",
            Fault.UNSUITED,
        )


def ferret_version(build: Mapping[str, object]) -> str:
    """The version of FerretDB, when that is what answers; else empty."""
    for name, value in build.items():
        if name.lower().startswith("ferretdb"):
            found = value.get("version") if isinstance(value, dict) else value
            if isinstance(found, str) and found.removeprefix("v")[:1].isdigit():
                return found.removeprefix("v")
    return ""


async def self_test(server: Server) -> list[CheckResult]:
    """Try a server out; say what it lacks, and what is better known.

    Raises:
        StoreUnavailableError: It does not answer, or refuses.
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
            async with server.call() as apart:
                await apart(server.collection(scratch).create_indexes(models))
    except StoreUnavailableError as error:
        text = f"making indexes that exist already fails there: {error.detail}"
        return [CheckResult(text=text, remedy=f"the bot would start only once; {_OTHER}")]
    return []


async def _kind(server: Server) -> list[CheckResult]:
    try:
        answer = await server.command("hello")
    except StoreBrokenError:  # as older servers, and some that are not MongoDB's, know it
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
