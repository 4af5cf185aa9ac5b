"""What a MongoDB server says is data from outside: its refusals, its clock, its identity."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Int64
from bson.datetime_ms import DatetimeMS

from bot.commands.call import Call
from bot.commands.cli import carry_out
from bot.commands.database import look_at_storage
from bot.commands.parser import parse
from bot.config.settings import Settings
from storage.errors import StoreUnavailableError
from storage.mongo import Driver
from tests.contract.builders import an_entry
from tests.contract.conftest import TIMEOUT
from tests.support.mongo import MongoServer
from tests.support.stage import UNREACHABLE
from tests.support.stores import MongoStores
from tests.support.wire import Ask, Command, Play, proxied, refusal

pytestmark = pytest.mark.mongo

SETTINGS = {**UNREACHABLE, "COUNTERSIGN_APPROVERS": "U0123456789"}


def refusing(name: str, answer: Command, asked: list[str] | None = None) -> Play:
    async def play(command: Command, ask: Ask) -> Command:
        if asked is not None:
            asked.append(next(iter(command)))
        return answer if name in command else await ask()

    return play


REFUSALS = [
    ("createIndexes", 68, "IndexAlreadyExists", "Identical index already exists: a_1", "report"),
    ("createIndexes", 67, "CannotCreateIndex", "too many indexes", "compatible"),
    ("createIndexes", 85, "IndexOptionsConflict", "exists with other options", "drop that index"),
    ("createIndexes", 86, "IndexKeySpecsConflict", "same name, other keys", "drop that index"),
    ("update", 9, "FailedToParse", "unknown operator", "compatible"),
    ("update", 72, "InvalidOptions", "no such write concern", "compatible"),
    ("update", 20, "IllegalOperation", "Transaction numbers are only allowed", "retryWrites=false"),
    ("update", 301, "", "Retryable writes are not supported", "retryWrites=false"),
    ("update", 40415, "", "BSON field 'update.x' is an unknown field", "compatible"),
    ("update", 4711, "", "no code of ours", "compatible"),
]


@pytest.mark.parametrize(("name", "code", "code_name", "text", "remedy"), REFUSALS)
async def test_a_refusal_of_the_server_is_told_with_its_code_and_a_remedy(
    mongo_server: MongoServer, name: str, code: int, code_name: str, text: str, remedy: str
) -> None:
    asked: list[str] = []
    play = refusing(name, refusal(code, code_name, text), asked)
    said: list[str] = []
    async with proxied(mongo_server.new_uri(), play) as uri:
        environ = {**SETTINGS, "MONGODB_URI": uri, "COUNTERSIGN_MONGO_DRIVER": "pymongo"}
        settings = Settings.load(environ)
        findings = [reported async for reported in look_at_storage(settings, Settings.make_storage)]
        is_once = asked.count(name) == 1
        code_of_exit = await carry_out(
            Call(arguments=parse(["run"]), environ=environ, run_bot=_open, say=said.append),
            said.append,
        )

    (finding,) = findings
    assert finding.subject == "MONGODB_URI"
    for words in (finding.text, said[-1]):
        assert "refuses" in words
        assert f"code {code}" in words
        assert code_name in words
        assert text in words
        assert "does not answer" not in words
        assert "repeated" not in words
        assert "full error" not in words
    assert remedy in finding.remedy
    assert remedy in said[-1]
    assert "server is running" not in finding.remedy
    assert code_of_exit == 1
    assert is_once


async def _open(settings: Settings, **_: object) -> None:
    storage = settings.make_storage()
    try:
        await storage.open()
        await storage.ping()
    finally:
        await storage.close()


@pytest.mark.parametrize(
    ("local", "is_known"),
    [
        (datetime.now, True),
        (lambda tz: int(time.time() * 1_000), True),
        (lambda tz: Int64(time.time() * 1_000), True),
        (lambda tz: time.time() * 1_000, True),
        (lambda tz: DatetimeMS(1 << 60), False),
        (lambda tz: 0, False),
        (lambda tz: float("nan"), False),
        (lambda tz: "noon", False),
        (lambda tz: True, False),
        (lambda tz: None, False),
        (None, False),
    ],
)
async def test_the_clock_of_a_server_is_read_whatever_its_type(
    mongo_server: MongoServer,
    driver: Driver,
    local: Callable[..., Any] | None,
    *,
    is_known: bool,
) -> None:
    async def play(command: Command, ask: Ask) -> Command:
        answer = await ask()
        if {"hello", "isMaster"} & command.keys() and command[
            "$db"
        ] != "admin":  # the driver's own come there
            answer.pop("localTime", None)
            if local is not None:
                answer["localTime"] = local(tz=UTC)
        return answer

    async with proxied(mongo_server.new_uri(), play) as uri:
        storage = MongoStores(uri, driver=driver, timeout=TIMEOUT)
        await storage.open()
        server_ms = await storage.server_ms()
        await storage.close()

    assert (server_ms is not None) == is_known
    if server_ms is not None:
        assert abs(server_ms - time.time() * 1_000) < 60_000


async def test_i14_a_record_that_another_unique_index_refuses_is_not_taken_for_stored(
    mongo_server: MongoServer, driver: Driver
) -> None:
    """MongoDB names the index that refuses; only that of the key says that a record is there."""
    pattern = {"thread_id": 1}

    async def play(command: Command, ask: Ask) -> Command:
        answer = await ask()
        if command.get("insert") == "audit":
            fault = {"index": 0, "code": 11000, "errmsg": "E11000", "keyPattern": pattern}
            return {**answer, "n": 0, "writeErrors": [fault]}
        return answer

    async with proxied(mongo_server.new_uri(), play) as uri:
        storage = MongoStores(uri, driver=driver, timeout=TIMEOUT)
        await storage.open()
        try:
            for entries in (["a"], ["b", "c"]):
                with pytest.raises(StoreUnavailableError, match="11000"):
                    await storage.audit.append(*(an_entry(entry_id) for entry_id in entries))
            pattern = {"_id": 1}
            await storage.audit.append(an_entry("d"), an_entry("e"))
        finally:
            await storage.close()
