"""`countersign forget` and `prune`: told first, done with --yes, beside the bot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.audit.report import story
from bot.commands.cli import FAILED, main
from bot.stores import Stores
from tests.contract.builders import THREAD_ID, a_message, a_post, a_thread, an_approval, an_entry
from tests.support.halves import later
from tests.support.mongo import DRIVERS, MongoServer
from tests.support.stores import MongoStores, SqliteStores

CONTENT = {"messages": 1, "posts": 1, "log": 1, "audit": 1}


async def fill(storage: Stores) -> None:
    await storage.open()
    await storage.threads.ensure(a_thread(active_ms=1_000))
    await storage.inbox.add(a_message())
    await storage.inbox.take([a_message().message_id], turn=1)
    await storage.posts.add(a_post(f"{THREAD_ID}#1:m", posted=True))
    await storage.log.append(THREAD_ID, 1, "said")
    await storage.audit.append(an_entry(detail={"digest": "d", "reason": "secret"}))


class Place:
    """A database, the bot that has it, and the command line beside it."""

    def __init__(self, make: Callable[[], Stores], **environ: str) -> None:
        self.make = make
        self.environ = environ

    def do(self, work: Callable[[Stores], Any]) -> Any:
        async def doing() -> Any:
            storage = self.make()
            await fill(storage)
            try:
                return await work(storage)
            finally:
                await storage.close()

        return asyncio.run(doing())

    async def type(self, *argv: str, fails: bool = False) -> list[str]:
        """Type a command while the bot runs."""
        said: list[str] = []
        code = await asyncio.to_thread(main, argv, environ=dict(self.environ), say=said.append)
        assert code == (FAILED if fails else 0)
        return said


@pytest.fixture(
    params=[
        "sqlite",
        *(pytest.param(driver, marks=[pytest.mark.mongo, later]) for driver in DRIVERS),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        path = tmp_path / "data"
        return Place(lambda: SqliteStores(path), COUNTERSIGN_DATA_DIR=str(path))
    server: MongoServer = request.getfixturevalue("mongo_server")
    uri = server.new_uri()
    return Place(lambda: MongoStores(uri), MONGODB_URI=uri, COUNTERSIGN_MONGO_DRIVER=request.param)


def test_forget_tells_first_and_then_does_it(place: Place) -> None:
    async def work(storage: Stores) -> None:
        lines = await place.type("forget", THREAD_ID)
        assert "1 message, 1 text, 1 turn in the log" in lines[0]
        assert "Nothing was deleted" in lines[1]
        assert await storage.retention.counts(THREAD_ID) == CONTENT

        lines = await place.type("forget", THREAD_ID, "--yes")
        assert lines[0].startswith(f"{THREAD_ID}: deleted: ")
        assert await storage.retention.counts(THREAD_ID) == {"audit": 2}
        kept, how = await story(storage, thread_id=THREAD_ID)
        assert (kept.erased, kept.detail) == (True, {"digest": "d"})
        assert how.detail["how"] == "forget"

    place.do(work)


def test_prune_tells_first_and_then_does_it(place: Place) -> None:
    async def work(storage: Stores) -> None:
        await storage.threads.ensure(a_thread(thread_id="T1:C1:2", active_ms=1 << 52))
        lines = await place.type("prune", "--older-than", "90d")
        assert lines[0].startswith(f"{THREAD_ID}: last active 1970-01-01: 1 message")
        assert lines[1] == "1 thread would be deleted and 0 kept. Nothing was deleted yet."
        assert await storage.retention.counts(THREAD_ID) == CONTENT

        lines = await place.type("prune", "--older-than", "90d", "--yes")
        assert lines[-1] == "1 thread deleted, 0 kept."
        assert await storage.retention.counts(THREAD_ID) == {"audit": 2}
        await storage.threads.get("T1:C1:2")

    place.do(work)


def test_what_is_open_is_refused_with_the_reason(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    async def work(storage: Stores) -> None:
        await storage.approvals.insert(an_approval())
        await place.type("forget", THREAD_ID, "--yes", fails=True)
        assert "a request waits for people" in capsys.readouterr().err
        lines = await place.type("prune", "--older-than", "1d", "--yes")
        assert lines == [
            f"{THREAD_ID}: kept: a request waits for people, or its card has yet to be drawn",
            "0 threads deleted, 1 kept.",
        ]
        assert await storage.retention.counts(THREAD_ID) == CONTENT | {"approvals": 1}

    place.do(work)


def test_a_thread_that_is_not_there(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    async def work(storage: Stores) -> None:
        del storage
        await place.type("forget", "T1:C1:99", fails=True)
        assert "no thread has the id 'T1:C1:99'" in capsys.readouterr().err

    place.do(work)


def test_without_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forget", THREAD_ID, "--data-dir", str(tmp_path)], environ={}) == FAILED
    assert "there is no database" in capsys.readouterr().err


@pytest.mark.parametrize("age", ["soon", "0d", "99999d"])
def test_an_age_that_is_none_is_refused(age: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["prune", "--older-than", age], environ={})
    assert "use whole days, such as 90d" in capsys.readouterr().err


def test_a_stripped_entry_says_so(place: Place) -> None:
    async def work(storage: Stores) -> None:
        del storage
        await place.type("forget", THREAD_ID, "--yes")
        lines = await place.type("audit", "--thread", THREAD_ID)
        assert all(line.endswith("(content deleted)") for line in lines)
        lines = await place.type("audit", "--thread", THREAD_ID, "--json")
        assert all('"erased": true' in line for line in lines)

    place.do(work)
