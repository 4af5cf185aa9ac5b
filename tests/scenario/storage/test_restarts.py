"""The bot as a process of its own: killed while a card is pending, started again, clicked."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from slack_sandbox.server import Sandbox
from storage.mongo import Driver
from tests.support.fakes import FakeClock
from tests.support.forked import fork_bot
from tests.support.mongo import DRIVERS, MongoServer, spawn_mongo_server
from tests.support.mongo_listener import LISTENER
from tests.support.ports import free_port
from tests.support.stage import APP_TOKEN, APPROVE, BOT_TOKEN, Stage, a_sandbox, buttons
from tests.support.stores import MongoStores

_HOME = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])}
TAKEOVER = 60
"""Seconds; over MongoDB a lease of the killed process may have to end first."""
ASK = "@countersign deploy payments 1.4.2 to production"
LIVE = r"^Done\. To go back: “roll back payments in production”"


@dataclass
class Process:
    """`countersign run` in a process: forked, or typed where that is the matter."""

    environ: dict[str, str]
    log: Path
    child: ForkServerProcess | None = None
    typed: list[subprocess.Popen[bytes]] = field(default_factory=list)

    async def start(self) -> None:
        self.child = fork_bot(self.environ, self.log)
        await self.is_ready()

    def type(self, **changes: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.support.typed", "run"],
            env={**_HOME, **self.environ, **LISTENER.environ(), **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.typed.append(child)
        return child

    async def is_ready(self) -> None:
        """Wait until the probe says so."""
        url = f"http://127.0.0.1:{self.environ['COUNTERSIGN_PORT']}/readyz"
        deadline = time.monotonic() + 120
        async with aiohttp.ClientSession() as session:
            while time.monotonic() < deadline:
                try:
                    async with session.get(url) as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                self.still_runs()
                await asyncio.sleep(0.05)  # another process: there is no event to wait for
        raise AssertionError("the bot was not ready in time")

    def still_runs(self) -> None:
        for child in self.typed:
            assert child.poll() is None, self.output(child)
        assert self.child is None or self.child.is_alive(), self.log.read_text()

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.join(60)

    def stop(self, within: float) -> None:
        """Ask it to stop, and see that it does, in so many seconds, without a fault."""
        assert self.child is not None
        self.child.terminate()
        self.child.join(within)
        code = self.child.exitcode
        self.kill()
        assert code == 0, "the bot did not stop in time"

    def output(self, child: subprocess.Popen[bytes]) -> str:
        out, _ = child.communicate(timeout=90)
        return out.decode()

    def close(self) -> None:
        if self.child is not None:
            self.kill()
        for child in self.typed:
            if child.poll() is None:
                child.kill()
            child.wait(timeout=60)
            if child.stdout is not None:
                child.stdout.close()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with a_sandbox(retry_delays=(0, 0.5, 1)) as sandbox:
        yield Stage(sandbox=sandbox, transport="socket", environ={}, clock=FakeClock())


def environ_of(sandbox: Sandbox, data: Path) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": BOT_TOKEN,
        "SLACK_APP_TOKEN": APP_TOKEN,
        "SLACK_API_URL": sandbox.api_url,
        "COUNTERSIGN_APPROVERS": "channel",
        "COUNTERSIGN_CHANNELS": ",".join(sandbox.channel_ids),
        "COUNTERSIGN_DATA_DIR": str(data),
        "COUNTERSIGN_PORT": str(free_port()),
    }


BY_MONGODB = [pytest.param(driver, marks=pytest.mark.mongo) for driver in DRIVERS]


@pytest.fixture(params=["sqlite", *BY_MONGODB])
async def process(
    request: pytest.FixtureRequest, stage: Stage, tmp_path: Path
) -> AsyncIterator[Process]:
    environ = environ_of(stage.sandbox, tmp_path / "data")
    if request.param in DRIVERS:
        server: MongoServer = request.getfixturevalue("mongo_server")
        environ["MONGODB_URI"] = server.new_uri()
        environ["COUNTERSIGN_MONGO_DRIVER"] = request.param
    running = Process(environ, tmp_path / "log")
    await running.start()
    yield running
    running.close()


async def test_killed_while_pending(process: Process, stage: Stage) -> None:
    card = await stage.asked(ASK, word=APPROVE)
    if "MONGODB_URI" in process.environ:
        await is_settled(process.environ["MONGODB_URI"], card)
    process.kill()
    await process.start()
    await stage.click("Ada", card, APPROVE)
    await stage.said(LIVE, within=TAKEOVER)
    final = await stage.card(word="Approved", within=TAKEOVER)
    assert buttons(final) == []
    assert len(stage.cards()) == 1
    assert sum(text.startswith("Done.") for text in stage.texts()) == 1


async def test_a_second_bot_on_the_same_directory(stage: Stage, tmp_path: Path) -> None:
    process = Process(environ_of(stage.sandbox, tmp_path / "data"), tmp_path / "log")
    first = process.type()
    await process.is_ready()
    second = fork_bot(process.environ | {"COUNTERSIGN_PORT": str(free_port())}, process.log)
    await asyncio.to_thread(second.join, 90)
    assert second.exitcode == 1
    said = process.log.read_text()
    assert "in use by another Countersign" in said
    assert "Traceback" not in said
    first.terminate()
    assert await asyncio.to_thread(first.wait, 60) == 0
    process.close()


async def is_settled(uri: str, card: dict[str, Any]) -> None:
    """Wait until the bot has written down that the card is posted."""
    storage = MongoStores(uri, driver="pymongo")
    await storage.open()
    approval_id = card["metadata"]["event_payload"]["id"]
    while not (await storage.approvals.get(approval_id)).thread_card.ts:  # noqa: ASYNC110 (another process)
        await asyncio.sleep(0.02)
    await storage.close()


async def click_until_recorded(stage: Stage, card: dict[str, Any]) -> None:
    """Click as a person does who is told to try again; a single server has no retried writes."""
    ada = stage.user("Ada")
    for _ in range(5):
        before = len(stage.sandbox.ephemerals(ada))
        await stage.click("Ada", card, APPROVE)
        is_approved = "Approved" in str(stage.cards()[0])
        if is_approved or len(stage.sandbox.ephemerals(ada)) == before:
            return


@pytest.mark.mongo
@pytest.mark.parametrize("driver", DRIVERS)
async def test_mongodb_restarted_while_pending(
    stage: Stage, tmp_path: Path, driver: Driver
) -> None:
    server = spawn_mongo_server(tmp_path / "mongo")
    environ = environ_of(stage.sandbox, tmp_path / "data") | {
        "MONGODB_URI": server.new_uri(),
        "COUNTERSIGN_MONGO_DRIVER": driver,
    }
    process = Process(environ, tmp_path / "log")
    try:
        await process.start()
        card = await stage.asked(ASK, word=APPROVE)
        await is_settled(environ["MONGODB_URI"], card)
        # In a thread: Slack is in this loop, and a bot that hears no pong for two seconds connects
        # anew, whereby a click is lost.
        await asyncio.to_thread(server.stop)
        await stage.click("Ada", card, APPROVE)
        await stage.whispered("Ada", "can't reach my database")
        await asyncio.to_thread(server.start)
        await process.is_ready()
        await click_until_recorded(stage, card)
        await stage.said(LIVE, within=TAKEOVER)
        assert buttons(await stage.card(word="Approved", within=TAKEOVER)) == []
    finally:
        process.close()
        server.stop()


async def test_a_wrong_start_says_what_to_do(stage: Stage, tmp_path: Path) -> None:
    """With the other wrong starts `main` is called: unit/bot/commands/test_cli.py."""
    process = Process(environ_of(stage.sandbox, tmp_path / "data"), tmp_path / "log")
    child = process.type(SLACK_BOT_TOKEN="xoxb-wrong")
    said = await asyncio.to_thread(process.output, child)
    assert "invalid_auth" in said
    assert child.returncode == 2
    assert "Traceback" not in said
    assert "xoxb" not in said
    process.close()
