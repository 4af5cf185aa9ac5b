"""What passes by itself and what somebody has to mend are different errors, in plain words."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    DocumentTooLarge,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WriteError,
)

from storage.errors import Fault, RecordRefusedError, StoreBrokenError, StoreUnavailableError
from storage.mongo.client import Client
from storage.mongo.faults import store_error


def same(text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OperationFailure("not authorized on db to execute command", 13), Fault.REFUSED),
        (OperationFailure("Authentication failed.", 18), Fault.REFUSED),
        (OperationFailure("bad auth", 8000), Fault.REFUSED),
        (OperationFailure("you are over your space quota", 8000), Fault.FULL),
        (OperationFailure("available disk space is less than required", 14031), Fault.FULL),
        (OperationFailure("Transaction numbers are only allowed on a replica", 20), Fault.UNSUITED),
        (ConfigurationError("reports wire version 8, requires at least 9"), Fault.UNSUITED),
        (BulkWriteError({"writeErrors": [{"code": 14031}]}), Fault.FULL),
    ],
)
def test_a_lasting_fault_is_known_by_what_it_is(error: PyMongoError, fault: Fault) -> None:
    converted = store_error(error, same)

    assert isinstance(converted, StoreBrokenError)
    assert converted.fault is fault
    assert "repaired" in str(converted)


@pytest.mark.parametrize(
    "error",
    [
        AutoReconnect("connection closed"),
        OperationFailure("not primary", 10107),
        OperationFailure("interrupted at shutdown", 11600),
        OperationFailure("could not find a primary", 133),
        OperationFailure("of a kind we do not know", 1, {"errorLabels": ["RetryableWriteError"]}),
        BulkWriteError({"writeErrors": [{"code": 112}]}),
        BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 64}]}),
        BulkWriteError({"writeErrors": []}),
        ServerSelectionTimeoutError("refused"),
    ],
)
def test_a_fault_that_passes_is_not_called_lasting(error: PyMongoError) -> None:
    converted = store_error(error, same)

    assert type(converted) is StoreUnavailableError


def test_a_refusal_of_a_bulk_quotes_no_document() -> None:
    fault = {"code": 9, "errmsg": "no operators", "op": {"q": {"_id": "a secret"}}}

    converted = store_error(BulkWriteError({"writeErrors": [fault]}), same)

    assert str(converted).endswith("used: the server refuses this with code 9: no operators")


@pytest.mark.parametrize(
    "error",
    [
        DocumentTooLarge("17 MB"),
        WriteError("object to insert too large", 10334),
        OperationFailure("resulting document after update is larger", 17419),
        BulkWriteError({"writeErrors": [{"code": 17280}]}),
    ],
)
def test_what_is_too_large_is_refused_for_good(error: PyMongoError) -> None:
    assert isinstance(store_error(error, same), RecordRefusedError)


def test_host_and_reason_suffice() -> None:
    said = (
        "db1:27017: [Errno 111] Connection refused (configured timeouts: socketTimeoutMS: "
        "1800.0ms, connectTimeoutMS: 1800.0ms), Timeout: 1.8s, Topology Description: "
        "<TopologyDescription id: 6, topology_type: Unknown, servers: [<ServerDescription "
        "('db1', 27017)>]>"
    )

    converted = store_error(ServerSelectionTimeoutError(said), same)

    assert isinstance(converted, StoreUnavailableError)
    assert converted.detail == "db1:27017: [Errno 111] Connection refused"


async def test_the_time_counts_from_the_call_whatever_waits() -> None:
    client = Client(
        "mongodb://127.0.0.1:1/", driver="pymongo", database=None, timeout=timedelta(seconds=0.05)
    )

    async with asyncio.timeout(60):
        with pytest.raises(StoreUnavailableError, match="no answer within"):
            await forever(client)


async def forever(client: Client) -> None:
    async with client.call():
        await asyncio.Event().wait()  # as in the queue of motor's threads


async def test_who_stops_the_caller_does_not_look_like_a_database_that_is_away() -> None:
    client = Client(
        "mongodb://127.0.0.1:1/", driver="pymongo", database=None, timeout=timedelta(seconds=60)
    )
    task = asyncio.create_task(forever(client))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
