"""Bots, databases and programs as processes: killed, and started again, while programs wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.records.programs import ProgramLimits
from bot.stores import Stores
from countersign_client import AsyncCountersign
from tests.chaos import program
from tests.chaos.program import ProgramPlan, read_journal
from tests.scenario.storage.test_restarts import (
    BY_MONGODB,
    Process,
    environ_of,
    stage as stage,  # noqa: PLC0414 - a fixture
)
from tests.support.forked import fork_bot
from tests.support.mongo import MongoServer, spawn_mongo_server
from tests.support.ports import free_port
from tests.support.programs.keys import add_program
from tests.support.stage import APPROVE, Stage
from tests.support.stores import MongoStores, SqliteStores

CALLERS = 10
TOO_MANY = (429, "too-many-waiting")


@dataclass
class House:
    """A bot with its door for programs, on a database that can be killed.

    Attributes:
        process: The bot.
        server: The server of its database; None for the embedded one, which dies with the bot.
        url: Address of the API.
        key: Key of a program.
        other_key: Key of another one, which may hold `CALLERS` calls.
    """

    process: Process
    server: MongoServer | None
    url: str
    key: str
    other_key: str

    async def kill(self) -> None:
        """Kill the bot and its database."""
        self.process.kill()
        if self.server is not None:
            await asyncio.to_thread(self.server.kill)

    async def start(self) -> None:
        """Start both again."""
        if self.server is not None:
            await asyncio.to_thread(self.server.start)
        await self.process.start()


@pytest.fixture(params=["sqlite", *BY_MONGODB])
async def house(
    request: pytest.FixtureRequest, stage: Stage, tmp_path: Path
) -> AsyncIterator[House]:
    port, data, server = free_port(), tmp_path / "data", None
    environ = {**environ_of(stage.sandbox, data), "COUNTERSIGN_API_PORT": str(port)}
    storage: Stores = SqliteStores(data)
    async with AsyncExitStack() as stack:
        if request.param != "sqlite":
            server = spawn_mongo_server(tmp_path / "mongo")
            stack.callback(server.stop)
            environ["MONGODB_URI"] = server.new_uri()
            environ["COUNTERSIGN_MONGO_DRIVER"] = request.param
            storage = MongoStores(environ["MONGODB_URI"], driver="pymongo")
        process = Process(environ, tmp_path / "log")
        stack.callback(process.close)
        await process.start()
        await storage.open_beside()
        keys = [
            await add_program(
                storage,
                name,
                team_id=stage.sandbox.workspace.team_id,
                owner_id=stage.user("Rosa"),
                channels=(stage.channel,),
                limits=ProgramLimits(waiting=waiting),
            )
            for name, waiting in (("ci", 100), ("poller", CALLERS))
        ]
        await storage.close()
        yield House(process, server, f"http://127.0.0.1:{port}", *keys)


async def test_5_a_program_that_died_gets_its_decision_by_its_key(
    house: House, stage: Stage, tmp_path: Path
) -> None:
    """After it, the bot and the database were killed and started again."""
    journal = tmp_path / "journal"
    plan = ProgramPlan(
        jobs=[0],
        channels=[stage.channel],
        urls=[house.url],
        key=house.key,
        journal=str(journal),
    )
    environ = {program.PLAN: json.dumps(asdict(plan))}
    first = fork_bot(environ, tmp_path / "first", run=program.run)
    await stage.card(word=APPROVE)
    first.kill()
    await asyncio.to_thread(first.join, 60)
    await house.kill()
    await house.start()
    second = fork_bot(environ, tmp_path / "second", run=program.run)
    await stage.click("Ada", (await stage.card(word=APPROVE)), APPROVE)
    await asyncio.to_thread(second.join, 120)
    assert second.exitcode == 0, (tmp_path / "second").read_text()
    lines = read_journal(journal)
    (name,) = {line["id"] for line in lines if line["what"] == "asked"}
    facts = [line["what"] for line in lines if line["what"] != "asked"]
    assert facts == ["decided", "started", "acted", "over"]
    async with AsyncCountersign(house.url, house.key) as client:
        assert (await client.get(name)).execution.state == "ran"
    assert len(stage.cards()) == 1


@pytest.mark.parametrize("way", ["TERM", "KILL"])
async def test_6_ten_callers_that_wait_get_the_decision_over_a_restart(
    house: House, stage: Stage, way: str
) -> None:
    """By TERM, none of the calls that are held sees a fault."""
    async with (
        AsyncCountersign(house.url, house.key) as client,
        AsyncCountersign(house.url, house.other_key) as other,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {house.other_key}"}) as http,
    ):
        made = await client.create("Deploy", key="k", tool="deploy", arguments={})
        card = await stage.card(word=APPROVE)
        polled = await other.create("Restart", key="k", tool="restart", arguments={})

        async def poll(wait_s: int) -> tuple[int, Any]:
            url = f"{house.url}/v1/requests/{polled.id}?wait={wait_s}"
            async with http.get(url) as answer:
                body = await answer.json(content_type=None)
                return answer.status, body.get("code") or body["status"]

        async def hold() -> tuple[int, Any]:
            for _ in range(200):
                if (answer := await poll(55)) != TOO_MANY:
                    return answer
                await asyncio.sleep(0.1)  # the look below has the last place
            return TOO_MANY

        waiting = [asyncio.create_task(client.wait(made)) for _ in range(CALLERS)]
        polls = [asyncio.create_task(hold()) for _ in range(CALLERS)]
        for _ in range(60):
            if await poll(1) == TOO_MANY:
                break  # all are held
            await asyncio.sleep(0.5)
        else:
            pytest.fail("not all polls are held")
        child = house.process.child
        assert child is not None
        if way == "TERM":
            child.terminate()
            await asyncio.to_thread(child.join, 60)
            assert child.exitcode == 0
            assert await asyncio.gather(*polls) == [(200, "pending")] * CALLERS
        else:
            house.process.kill()
            faults = await asyncio.gather(*polls, return_exceptions=True)
            assert all(isinstance(fault, aiohttp.ClientError) for fault in faults)
        await house.process.start()
        await stage.click("Ada", card, APPROVE)
        ends = await asyncio.gather(*waiting)
        assert [end.status for end in ends] == ["approved"] * CALLERS
