"""The database is away, or slow, in the middle: nothing acknowledged is lost, nobody waits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.leases import CLICK_PATIENCE
from storage.errors import StoreUnavailableError
from storage.sqlite.database import Database
from storage.sqlite.file.statements import Rows
from tests.contract.builders import a_whisper
from tests.contract.faults.driver import Faults, HungDisk, break_sqlite
from tests.scenario import agents
from tests.support.stage import APPROVE, Stage, Transport, a_stage

ASK = "@countersign go"
AGENT = "tests.scenario.agents:nasty"


@pytest.fixture(params=["http", "socket"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    agents.RAN.clear()
    transport: Transport = request.param
    async with a_stage(tmp_path, transport, CLICK_PATIENCE, COUNTERSIGN_AGENT=AGENT) as made:
        made.sandbox.retry_delays = (0.3, 0.3, 0.3)
        made.sandbox._dispatcher.delays = made.sandbox.retry_delays
        yield made


class Outage:
    """A database that refuses its statements, from some moment on: at once, or at the end."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.hangs = False
        self.is_on = False
        self.is_over = asyncio.Event()
        self.begins_with = "no such statement"
        fetch = Database.fetch

        async def maybe(database: Database, sql: str, *values: Any) -> Rows:
            self.is_on = self.is_on or self.begins_with in sql
            if not self.is_on:
                return await fetch(database, sql, *values)
            if self.hangs:
                await self.is_over.wait()
            raise StoreUnavailableError("refused")

        patch.setattr(Database, "fetch", maybe)

    def begin(self, *, hangs: bool = False) -> None:
        self.is_on, self.hangs = True, hangs

    def end(self) -> None:
        self.is_on, self.begins_with = False, "no such statement"
        self.is_over.set()


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    return Outage(monkeypatch)


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_click_is_answered_and_counts_when_it_is_made_again(
    stage: Stage, outage: Outage, hangs: bool
) -> None:
    card = await stage.asked(ASK, word=APPROVE)
    await stage.rest()
    outage.begin(hangs=hangs)
    await stage.click("Ada", card, APPROVE)  # is answered while the database still hangs
    words = "can't reach my database"
    assert "try again" in await stage.whispered("Ada", words)
    outage.end()
    assert agents.RAN == []
    await stage.click("Ada", card, APPROVE)
    await stage.said("Sent")
    assert len(agents.RAN) == 1
    assert len(stage.cards()) == 1


@pytest.mark.parametrize("stage", ["http"], indirect=True)  # a socket's tries take longer
async def test_a_message_that_could_not_be_kept_comes_again(stage: Stage, outage: Outage) -> None:
    outage.begin()
    await stage.say("Rosa", ASK)
    await asyncio.sleep(0.4)
    assert stage.cards() == []
    outage.end()
    await stage.card(word=APPROVE)
    assert len(stage.cards()) == 1


@pytest.mark.parametrize("stage", ["http"], indirect=True)  # a socket's tries take longer
async def test_a_message_that_could_never_be_kept_is_answered(stage: Stage, outage: Outage) -> None:
    outage.begin()
    await stage.say("Rosa", ASK)
    assert "within a minute" in await stage.whispered("Rosa", "may not have saved this message")
    outage.end()
    assert stage.cards() == []


async def test_what_was_acknowledged_goes_on_by_itself(stage: Stage, outage: Outage) -> None:
    card = await stage.asked(ASK, word=APPROVE)
    await stage.rest()
    # The decision is on record; before the thread hears of it, the database goes away.
    outage.begins_with = "UPDATE threads SET"
    await stage.click("Ada", card, APPROVE)
    await stage.rest()
    assert agents.RAN == []
    stage.clock.forward(minutes=1)
    with pytest.raises(StoreUnavailableError):
        await stage.tick()
    outage.end()
    await stage.tick()
    await stage.said("Sent")
    assert len(agents.RAN) == 1
    await stage.card(word="Approved")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    made = Faults()
    break_sqlite(monkeypatch, made)
    return made


@pytest.fixture
async def broken(faults: Faults, tmp_path: Path) -> AsyncIterator[Stage]:
    """A bot whose SQLite has faults."""
    async with a_stage(tmp_path, "http", COUNTERSIGN_AGENT=AGENT) as made:
        yield made
        faults.only, faults.error = "", None


async def readiness(stage: Stage) -> tuple[int, str]:
    """The answer of `/readyz`, which holds for a second."""
    await asyncio.sleep(1.1)
    url = f"http://127.0.0.1:{stage.environ['COUNTERSIGN_PORT']}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, (await answer.json())["missing"]


def malformed() -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError("database disk image is malformed")


async def test_i14_due_work_that_cannot_be_read_keeps_no_other(
    broken: Stage, faults: Faults
) -> None:
    """As a damaged page of one index does, for ever."""
    assert await readiness(broken) == (200, "")
    ts = await broken.say("Rosa", "hello")
    await broken.rest()
    now = broken.clock()
    about = {"channel_id": broken.channel, "thread_ts": ts, "user_id": broken.user("Ada")}
    whisper = a_whisper(**about, text="This is yours.", created_ms=now, due_ms=now)
    await broken.storage.ephemeral_messages.insert(whisper)
    faults.error, faults.only = malformed, "FROM approvals WHERE true AND due_ms <= "

    with pytest.raises(StoreUnavailableError, match="malformed"):
        await broken.tick()

    assert await broken.whispered("Ada", "This is yours.")
    assert await readiness(broken) == (503, "the database does not give what is due: requests")
    faults.only, faults.error = "", None
    await broken.tick()
    assert await readiness(broken) == (200, "")


async def test_a_disk_that_hangs_is_said_by_readiness_in_time(
    broken: Stage, faults: Faults
) -> None:
    disk = HungDisk()
    faults.arm(disk)
    try:
        assert await readiness(broken) == (503, "the database does not answer")  # while it hangs
    finally:
        faults.error = None
        disk.come_back()
    assert await readiness(broken) == (200, "")
