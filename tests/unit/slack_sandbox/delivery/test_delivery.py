"""How payloads are delivered: signatures, retries, time-outs, tickets, sockets in turn."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from slack_sandbox import ADA, APP, BOT, BOT_USER, OPS, ROSA, RefusedError, Sandbox, serve


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=time.time, retry_delays=(0, 0, 0)) as opened:
        yield opened


@dataclass
class Door:
    """An HTTP app that answers as told and notes what came."""

    answers: list[web.Response]
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.came.append((dict(request.headers), await request.read()))
        return self.answers.pop(0) if self.answers else web.Response()


@asynccontextmanager
async def a_door(sandbox: Sandbox, *answers: web.Response) -> AsyncIterator[Door]:
    door = Door(list(answers))
    app = web.Application()
    app.add_routes([web.post("/slack/events", door.handle)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sandbox.events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    yield door
    await runner.cleanup()


async def an_address(sandbox: Sandbox) -> str:
    client = AsyncWebClient(token=sandbox.app_token, base_url=sandbox.api_url)
    answer = await client.apps_connections_open(app_token=sandbox.app_token)
    return str(answer["url"])


@asynccontextmanager
async def sockets_of(
    sandbox: Sandbox, number: int
) -> AsyncIterator[list[aiohttp.ClientWebSocketResponse]]:
    async with aiohttp.ClientSession() as session:
        opened = []
        for _ in range(number):
            socket = await session.ws_connect(await an_address(sandbox))
            await socket.receive_json()
            opened.append(socket)
        await sandbox.until(lambda: sandbox.connections == number)
        yield opened
        for socket in opened:
            await socket.close()


async def test_events_are_retried_three_times_and_say_why(sandbox: Sandbox) -> None:
    async with a_door(sandbox, *(web.Response(status=500) for _ in range(4))) as door:
        await sandbox.say(ROSA, OPS, "hello")
        await sandbox.until(lambda: sandbox.lost_events)
    retries = [headers.get("X-Slack-Retry-Num") for headers, _ in door.came]
    assert retries == [None, "1", "2", "3"]
    assert {headers["X-Slack-Retry-Reason"] for headers, _ in door.came[1:]} == {"http_error"}
    assert len({body for _, body in door.came}) == 1


async def test_own_posts_come_back_as_messages_of_a_bot(sandbox: Sandbox) -> None:
    async with a_door(sandbox) as door:
        client = AsyncWebClient(token=sandbox.bot_token, base_url=sandbox.api_url)
        ts = (await client.chat_postMessage(channel=OPS, text="hello"))["ts"]
        await sandbox.until(lambda: len(door.came) == 1)
    event = json.loads(door.came[0][1])["event"]
    assert (event["type"], event["ts"], event["user"]) == ("message", ts, BOT_USER)
    assert (event["bot_id"], event["bot_profile"]["app_id"]) == (BOT, APP)
    assert event["app_id"] == APP


async def test_app_can_stop_the_retries(sandbox: Sandbox) -> None:
    answer = web.Response(status=500, headers={"x-slack-no-retry": "1"})
    async with a_door(sandbox, answer) as door:
        await sandbox.say(ROSA, OPS, "hello")
        await sandbox.say(ROSA, OPS, "again")
        await sandbox.until(lambda: len(door.came) == 2 and sandbox.is_idle)
    assert len(door.came) == 2


async def test_interaction_is_not_retried(sandbox: Sandbox) -> None:
    async with a_door(sandbox, web.Response(status=500)) as door:
        with pytest.raises(RefusedError, match="app_error"):
            await sandbox.send_interaction({"type": "block_actions"})
    assert len(door.came) == 1


async def test_silent_app_times_out() -> None:
    async with Sandbox(clock=time.time, ack_timeout=0.05) as sandbox:

        async def never(request: web.Request) -> web.Response:
            await request.read()
            await sandbox.until(lambda: False, timeout=1)
            return web.Response()

        app = web.Application()
        app.add_routes([web.post("/", never)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        sandbox.events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        with pytest.raises(RefusedError, match="operation_timeout"):
            await sandbox.send_interaction({"type": "block_actions"})
        await runner.cleanup()


async def test_ticket_works_once(sandbox: Sandbox) -> None:
    url = await an_address(sandbox)
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url) as socket:
            assert (await socket.receive_json())["type"] == "hello"
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await session.ws_connect(url)
    assert caught.value.status == 403


async def test_each_envelope_goes_to_one_socket_and_is_sent_again(sandbox: Sandbox) -> None:
    async with sockets_of(sandbox, 2) as sockets:
        await sandbox.say(ROSA, OPS, "hello")
        first = await sockets[1].receive_json()
        await sockets[1].close()
        again = await sockets[0].receive_json()
        assert (first["retry_attempt"], again["retry_attempt"]) == (0, 1)
        assert again["retry_reason"] == "connection_failed"
        assert first["payload"] == again["payload"]
        await sockets[0].send_json({"envelope_id": again["envelope_id"]})
        await sandbox.until(lambda: sandbox.is_idle)
    assert sandbox.lost_events == []


async def test_app_that_leaves_before_it_hears_a_pong_is_no_error(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(await an_address(sandbox))
        await socket.receive_json()
        for _ in range(500):
            await socket.ping()
        connection = socket._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.abort()
        await sandbox.until(lambda: not sandbox.is_connected)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_eleventh_socket_is_sent_away(sandbox: Sandbox) -> None:
    sandbox.set_limits(on=False)
    async with aiohttp.ClientSession() as session:
        sockets = []
        for _ in range(11):
            socket = await session.ws_connect(await an_address(sandbox))
            sockets.append((socket, await socket.receive_json()))
    assert [first["type"] for _, first in sockets] == ["hello"] * 10 + ["disconnect"]
    assert sockets[-1][1]["reason"] == "too_many_websockets"


@pytest.mark.parametrize(
    ("scope", "kinds"), [("app_mentions:read", ["message"]), ("channels:history", ["app_mention"])]
)
async def test_events_need_their_scope(sandbox: Sandbox, scope: str, kinds: list[str]) -> None:
    sandbox.scopes.discard(scope)
    async with a_door(sandbox) as door:
        await sandbox.say(ROSA, OPS, "@countersign hello")
        await sandbox.until(lambda: door.came and sandbox.is_idle)
    assert [json.loads(body)["event"]["type"] for _, body in door.came] == kinds


async def test_message_of_another_bot_says_so(sandbox: Sandbox) -> None:
    robot = sandbox.add_person("robot", is_bot=True)
    sandbox.workspace.channels[OPS].members.append(robot.id)
    async with a_door(sandbox) as door:
        await sandbox.say(robot.id, OPS, "hello")
        await sandbox.until(lambda: door.came)
    event = json.loads(door.came[0][1])["event"]
    assert event["bot_id"] not in (None, BOT)


async def test_command_needs_its_scope(sandbox: Sandbox) -> None:
    sandbox.scopes.discard("commands")
    async with a_door(sandbox) as door:
        with pytest.raises(RefusedError, match="unknown_command"):
            await sandbox.command(ADA, OPS, "/countersign", "x")
        sandbox.scopes.add("commands")
        await sandbox.command(ADA, OPS, "/countersign", "x")
    assert b"command=%2Fcountersign" in door.came[0][1]


async def test_serve_runs_until_cancelled() -> None:
    sandbox = Sandbox(clock=time.time)
    addresses: list[str] = []

    def ready(listening: Sandbox) -> None:
        addresses.append(listening.url)
        listening.workspace.changes.tell()

    task = asyncio.create_task(serve(sandbox, ready=ready))
    await sandbox.until(lambda: addresses)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(addresses[0])
