"""The proxy as a process before a server on HTTP, when one of both is killed (check 70)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.scenario.programs.test_mcp_proxy import Bench, texts, until
from tests.support.ports import free_port
from tests.support.programs.loopback import Loopback
from tests.support.programs.server import Record


@pytest.fixture
def bench(door: Loopback, tmp_path: Path) -> Bench:
    return Bench(door, tmp_path)


def is_unknown(record: Record) -> bool:
    return bool(record.shown["execution"]["state"] == "unknown")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    async with Client(streamable_http_client(url), mode="auto") as client:
        yield client


async def call_until_killed(url: str, tool: str, arguments: dict[str, Any]) -> None:
    with suppress(Exception):  # of several libraries
        async with connected(url) as client:
            await client.call_tool(tool, arguments)


async def test_70_a_proxy_killed_while_people_think_leaves_the_request(bench: Bench) -> None:
    async with bench.tools() as server:
        async with bench.proxy(server.url) as proxy:
            call = asyncio.create_task(call_until_killed(proxy.url, "deploy", {"env": "eu"}))
            await asyncio.to_thread(bench.door.request)
            await proxy.kill()
            await call
        await bench.approve()
        async with bench.proxy(server.url) as proxy, connected(proxy.url) as client:
            # This process has not seen a list of the tools.
            done = await client.call_tool("deploy", {"env": "eu"})
            assert "deployed" in texts(done)
    assert bench.runs == ["deploy eu 1"]
    assert len(bench.door.server.records) == 1


async def test_70_a_proxy_killed_while_the_call_runs_never_runs_it_again(bench: Bench) -> None:
    bench.door.server.policy = "allow"
    async with bench.tools() as server:
        async with bench.proxy(server.url) as proxy:
            call = asyncio.create_task(call_until_killed(proxy.url, "slow", {"seconds": 30}))
            await until(lambda: "slow begins" in bench.runs)
            await proxy.kill()
            await call
        async with bench.proxy(server.url) as proxy, connected(proxy.url) as client:
            again = await client.call_tool("slow", {"seconds": 30})
            assert "Not run again: it was started before" in texts(again)
    assert bench.runs == ["slow begins"]


async def test_70_a_server_killed_while_the_call_runs_leaves_its_outcome_unknown(
    bench: Bench,
) -> None:
    bench.door.server.policy = "allow"
    port = free_port()
    async with bench.tools(port) as server, bench.proxy(server.url) as proxy:
        async with connected(proxy.url) as client:
            lost = await client.call_tool("die", {})
            assert "Its outcome is unknown, and people are asked" in texts(lost)
            await asyncio.to_thread(bench.door.request, is_unknown)
            bench.door.server.policy = "ask"
            people = bench.approve()
            away = await client.call_tool("deploy", {"env": "eu"})
            await people
            assert "Not run: the server cannot be reached" in texts(away)
        async with bench.tools(port), connected(proxy.url) as client:
            people = bench.approve()
            assert "deployed" in texts(await client.call_tool("deploy", {"env": "us"}))
            await people
    assert bench.runs == ["die", "deploy us 1"]


async def test_70_a_signal_ends_the_proxy_and_people_are_asked_about_what_runs(
    bench: Bench,
) -> None:
    bench.door.server.policy = "allow"
    async with bench.tools() as server, bench.proxy(server.url) as proxy:
        call = asyncio.create_task(call_until_killed(proxy.url, "slow", {"seconds": 60}))
        await until(lambda: "slow begins" in bench.runs)
        proxy.process.terminate()
        await proxy.process.wait()
        await call
    assert bench.door.request().shown["execution"]["state"] == "unknown"


async def test_70_while_countersign_is_away_nothing_runs(bench: Bench) -> None:
    async with (
        bench.tools() as server,
        bench.proxy(server.url, countersign="http://127.0.0.1:9") as proxy,
        connected(proxy.url) as client,
    ):
        assert "people could not be asked" in texts(await client.call_tool("keys"))
    assert bench.runs == []
