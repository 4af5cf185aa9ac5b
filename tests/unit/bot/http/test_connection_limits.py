"""The door of the HTTP server: half-sent requests, crowds, compressed bodies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import pytest
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from aiohttp.web_protocol import RequestHandler

from bot.http.connection_limits import (
    MOST,
    Door,
    Patience,
    Timer,
    only_complete,
    room_for_connections,
)
from bot.http.server import serve

LONG = 30.0
"""Seconds; nothing in these tests waits for so long unless it is broken."""

PATIENCE = Patience()
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Le"
HALF_BODY = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"
WHOLE_BODY = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"


@dataclass
class HandTimer:
    """A timer that runs when the test says so: no answer is too slow for it."""

    due: float
    act: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class HandTimers:
    """The time of a door, and its timers."""

    now: float = 0.0
    timers: list[HandTimer] = field(default_factory=list)

    def call_later(self, seconds: float, act: Callable[[], None]) -> Timer:
        self.timers.append(HandTimer(self.now + seconds, act))
        return self.timers[-1]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [timer for timer in self.timers if timer.due <= self.now]
        self.timers = [timer for timer in self.timers if timer.due > self.now]
        for timer in due:
            if not timer.is_cancelled:
                timer.act()


@dataclass
class House:
    """A server behind a door, and who was let in."""

    stack: AsyncExitStack
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    heard: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    timers: HandTimers = field(default_factory=HandTimers)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", self._health)
        app.router.add_post("/slow", self._slow)
        return app

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(text="well")

    async def _slow(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.begun.set()
        await self.go_on.wait()
        return web.Response(text="done")

    async def hears(self, words: bytes) -> None:
        """Wait until the server has read them."""
        async with asyncio.timeout(LONG):
            while await self.heard.get() != words:
                pass

    async def visit(self, *said: bytes) -> Visitor:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        visitor = Visitor(reader, writer)
        self.stack.push_async_callback(visitor.go)
        for words in said:
            await visitor.say(words)
        return visitor


@dataclass
class Visitor:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def go(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    async def say(self, words: bytes) -> None:
        self.writer.write(words)
        with suppress(ConnectionError):  # shown out already: the test looks for that itself
            await self.writer.drain()

    async def is_shown_out(self) -> bool:
        """Whether the connection is closed, in the end, without an answer."""
        try:
            async with asyncio.timeout(LONG):
                return await self.reader.read() == b""
        except ConnectionError:
            return True

    async def is_inside(self, *, for_seconds: float = 0.1) -> bool:
        """Whether the connection stays open for so long."""
        try:
            async with asyncio.timeout(for_seconds):
                await self.reader.read(1)
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        return False

    async def answer(self) -> str:
        """The status line and the body of one answer."""
        async with asyncio.timeout(LONG):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.splitlines()
                if line.lower().startswith(b"content-length")
            )
            body = await self.reader.readexactly(length)
        return f"{head.split(b' ', 2)[1].decode()} {body.decode().strip()}"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def a_house(stack: AsyncExitStack, *, request: float) -> House:
    house = House(stack)
    house.port = await serve(
        house.app(),
        host="127.0.0.1",
        port=0,
        stack=stack,
        patience=Patience(request=request),
    )
    return house


async def a_small_house(stack: AsyncExitStack, most: int = 1) -> tuple[House, Door]:
    """A house with room for few, whose time the test lets pass."""
    house = House(stack)
    app = house.app()
    runner = web.AppRunner(app)

    class Reader(RequestHandler):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            house.heard.put_nowait(data)

    def inner() -> asyncio.Protocol:
        assert runner.server is not None
        return Reader(runner.server, loop=asyncio.get_running_loop())

    door = Door(inner, most=most, patience=PATIENCE, call_later=house.timers.call_later)
    app.middlewares.append(only_complete(door))
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    server = await asyncio.get_running_loop().create_server(door, "127.0.0.1", 0)
    stack.callback(server.close)
    house.port = server.sockets[0].getsockname()[1]
    return house, door


@pytest.mark.parametrize("said", [b"", b"G", HALF, HALF_BODY], ids=["nothing", "G", "head", "body"])
async def test_a_half_sent_request_is_closed(
    stack: AsyncExitStack, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    house = await a_house(stack, request=0.05)
    visitor = await house.visit(said)
    assert await visitor.is_shown_out()
    assert house.bodies == []
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("said", [b"GET /healthz HTTP/1.1\r\n", HALF_BODY], ids=["head", "body"])
async def test_a_trickle_does_not_prolong_the_time(stack: AsyncExitStack, said: bytes) -> None:
    house = await a_house(stack, request=0.2)
    visitor = await house.visit(said)
    async with asyncio.timeout(LONG):
        while await visitor.is_inside(for_seconds=0.02):
            await visitor.say(b"x")
    assert house.bodies == []


async def test_a_whole_request_has_all_the_time_it_needs(stack: AsyncExitStack) -> None:
    house, _ = await a_small_house(stack)
    visitor = await house.visit(WHOLE_BODY)
    await house.begun.wait()
    house.timers.pass_time(3_600)
    house.go_on.set()
    assert await visitor.answer() == "200 done"


async def test_a_connection_rests_between_two_requests_but_not_for_ever(
    stack: AsyncExitStack,
) -> None:
    house, _ = await a_small_house(stack)
    visitor = await house.visit(HEALTH)
    for _ in range(3):
        assert await visitor.answer() == "200 well"
        house.timers.pass_time(PATIENCE.idle - 1)
        await visitor.say(HEALTH)
    assert await visitor.answer() == "200 well"
    house.timers.pass_time(PATIENCE.idle)
    assert await visitor.is_shown_out()


async def test_a_half_sent_second_request_is_closed(stack: AsyncExitStack) -> None:
    house, _ = await a_small_house(stack)
    visitor = await house.visit(HEALTH)
    assert await visitor.answer() == "200 well"
    await visitor.say(HALF)
    await house.hears(HALF)
    house.timers.pass_time(PATIENCE.request)
    assert await visitor.is_shown_out()


async def test_what_comes_while_an_answer_is_made_begins_the_next_request(
    stack: AsyncExitStack,
) -> None:
    house, _ = await a_small_house(stack)
    visitor = await house.visit(HEALTH)
    assert await visitor.answer() == "200 well"
    await visitor.say(WHOLE_BODY)
    await house.begun.wait()
    await visitor.say(HALF)
    await house.hears(HALF)
    house.timers.pass_time(3_600)
    house.go_on.set()
    assert await visitor.answer() == "200 done"
    house.timers.pass_time(PATIENCE.request)
    assert await visitor.is_shown_out()


async def test_in_a_crowd_the_oldest_that_wants_nothing_gives_way(stack: AsyncExitStack) -> None:
    house, door = await a_small_house(stack, most=3)
    first = await house.visit(HALF)
    second, third = await house.visit(HALF_BODY), await house.visit(HALF)
    visitor = await house.visit(HEALTH)
    assert await visitor.answer() == "200 well"
    assert await first.is_shown_out()
    assert await second.is_inside()
    assert await third.is_inside()
    assert door.inside == 3


async def test_who_had_an_answer_stays_longer_than_who_never_asked(stack: AsyncExitStack) -> None:
    house, _ = await a_small_house(stack, most=2)
    known = await house.visit(HEALTH)
    assert await known.answer() == "200 well"
    silent = await house.visit(HALF)
    visitor = await house.visit(HEALTH)
    assert await visitor.answer() == "200 well"
    assert await silent.is_shown_out()
    assert await known.is_inside()


async def test_nobody_is_shown_out_whose_request_is_worked_on(stack: AsyncExitStack) -> None:
    house, _ = await a_small_house(stack, most=1)
    worker = await house.visit(WHOLE_BODY)
    await house.begun.wait()
    late = await house.visit(HEALTH)
    assert await late.is_shown_out()
    house.go_on.set()
    assert await worker.answer() == "200 done"


async def test_who_left_makes_room(stack: AsyncExitStack) -> None:
    house, door = await a_small_house(stack, most=2)
    for _ in range(5):
        visitor = await house.visit(HEALTH)
        assert await visitor.answer() == "200 well"
        await visitor.go()
    assert door.inside <= 2


async def test_hundreds_of_half_sent_requests_keep_nobody_waiting(
    stack: AsyncExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    house = await a_house(stack, request=LONG)
    for _ in range(room_for_connections() + 20):
        await house.visit(HALF)
    visitor = await house.visit(HEALTH)
    assert await visitor.answer() == "200 well"
    lines = [record.getMessage() for record in caplog.records]
    assert [line for line in lines if "connections at once" in line] == lines[:1]  # once


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity, gzip", " GZIP"])
async def test_a_compressed_body_is_refused_before_it_is_read(
    stack: AsyncExitStack, encoding: str
) -> None:
    house = await a_house(stack, request=LONG)
    head = (
        f"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Encoding: {encoding}\r\n"
        "Content-Length: 500000\r\n\r\n"
    )
    visitor = await house.visit(head.encode())  # not one byte of it is sent
    assert await visitor.answer() == "415 Compressed requests are not read."
    assert house.bodies == []


async def test_nothing_is_read_for_a_path_that_does_not_exist(stack: AsyncExitStack) -> None:
    house = await a_house(stack, request=LONG)
    visitor = await house.visit(HALF_BODY.replace(b"/slow", b"/none"))
    assert (await visitor.answer()).startswith("404")


def test_half_of_the_files_are_left_for_the_rest() -> None:
    resource = pytest.importorskip("resource")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= room_for_connections() <= max(16, min(MOST, soft // 2))


async def test_who_left_before_the_body_is_read_makes_no_error() -> None:
    """aiohttp then says that by a `RuntimeError`, whose traceback would be in the log each time."""

    class Left(BaseProtocol):
        """A connection whose transport is gone."""

        ssl_context = peername = sockname = None

    loop = asyncio.get_running_loop()
    body = StreamReader(Left(loop), 2**16, loop=loop)
    gone = make_mocked_request("POST", "/slack/events", payload=body, protocol=Left(loop))
    gone.protocol.transport = None

    async def never(_: web.Request) -> web.StreamResponse:
        raise AssertionError("nobody is there")

    answer = await only_complete(Door(asyncio.Protocol))(gone, never)
    assert answer.status == 408
