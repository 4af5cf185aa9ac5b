"""The door of the HTTP server: how many connections there may be, and how long they may take.

Nothing is known of who knocks before the whole request is there and its signature is checked. Until
then a connection has a deadline, and gives way to newer ones when there are too many. Once its
request is complete, it is worked on in peace.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

logger = logging.getLogger(__name__)

MOST = 512
"""Maximum number of open HTTP connections, or half of the files that the system allows."""
SILENCE_S = 60.0
"""Seconds from one line in the log about too many connections to the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The most time that connections may take, in seconds."""

    request: float = 5.0
    idle: float = 75.0


class Door:
    """Lets connections in, and shows those out that keep others waiting.

    Args:
        inner: Makes the protocol that reads requests.
        most: Connections at once; a further one takes the place of the oldest whose request is not
            complete, and is refused when there is none.
        patience: How long they may take.
    """

    def __init__(
        self,
        inner: Callable[[], asyncio.Protocol],
        *,
        most: int = MOST,
        patience: Patience | None = None,
    ) -> None:
        self._inner = inner
        self._most = most
        self.patience = patience or Patience()
        # In the order of their arrival.
        self._inside: dict[asyncio.BaseTransport, _Connection] = {}
        self._said: float | None = None

    def __call__(self) -> asyncio.Protocol:
        """Make the protocol of a new connection."""
        return _Connection(self, self._inner())

    @property
    def inside(self) -> int:
        """The number of connections."""
        return len(self._inside)

    def complete(self, transport: asyncio.BaseTransport | None) -> None:
        """A request of this connection is complete, and is worked on."""
        if transport in self._inside:
            self._inside[transport].work()

    def done(self, transport: asyncio.BaseTransport | None) -> None:
        """The request of this connection is answered."""
        if transport in self._inside:
            self._inside[transport].rest()

    def enter(self, connection: _Connection, transport: asyncio.Transport) -> None:
        """Let a new connection in; when it is one too many, show another out, or this one."""
        if len(self._inside) >= self._most:
            waiting = [one for one in self._inside.values() if not one.is_working]
            # Who has never said anything goes before who had a request answered.
            leaving = min(waiting, key=lambda one: one.answered > 0, default=connection)
            self._complain()
            if leaving is connection:
                transport.abort()
                return
            leaving.leave()
        self._inside[transport] = connection

    def _complain(self) -> None:
        """Say that there are too many, once in a while: a crowd must not fill the log."""
        now = asyncio.get_running_loop().time()
        if self._said is None or now >= self._said + SILENCE_S:
            self._said = now
            logger.warning(
                "more than %d connections at once, closing incomplete ones",
                self._most,
                extra={"action": "connection_closed"},
            )

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """This connection has ended."""
        self._inside.pop(transport, None)


@dataclass(eq=False, slots=True)
class _Connection(asyncio.Protocol):
    """Hands everything on, and keeps the time.

    Attributes:
        door: Where it came in.
        inner: Reads the requests.
        is_working: Whether a complete request is worked on.
        answered: How many requests were answered.
    """

    door: Door
    inner: asyncio.Protocol
    is_working: bool = False
    answered: int = 0
    _is_heard: bool = False
    _transport: asyncio.Transport | None = None
    _alarm: asyncio.TimerHandle | None = field(default=None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.inner.connection_made(transport)
        self.door.enter(self, self._transport)
        self._wait(self.door.patience.request)

    def data_received(self, data: bytes) -> None:
        if not self._is_heard:
            self._is_heard = True
            if not self.is_working and self.answered:
                self._wait(self.door.patience.request)
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silence()
        if self._transport is not None:
            self.door.forget(self._transport)
        self.inner.connection_lost(exc)

    def work(self) -> None:
        """The request is complete: it has all the time it needs."""
        self.is_working = True
        self._is_heard = False
        self._silence()

    def rest(self) -> None:
        """The request is answered: the next one may come."""
        self.is_working = False
        self.answered += 1
        patience = self.door.patience
        # What came meanwhile is the beginning of the next request.
        self._wait(patience.request if self._is_heard else patience.idle)

    def leave(self) -> None:
        """Close the connection, whatever it wanted to say."""
        self._silence()
        if self._transport is not None:
            self.door.forget(self._transport)
            self._transport.abort()

    def _wait(self, seconds: float) -> None:
        self._silence()
        if self._transport is not None and not self._transport.is_closing():
            self._alarm = asyncio.get_running_loop().call_later(seconds, self.leave)

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None


def only_complete(door: Door) -> Middleware:
    """Make the middleware that lets only complete, plain requests through.

    A compressed body is refused before a byte of it is read: Slack sends none, and a small one may
    grow to anything.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        if request.match_info.http_exception is not None:
            return await handler(request)  # no such path: nothing of it is read
        if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            answer = web.Response(status=415, text="Compressed requests are not read.\n")
            answer.force_close()
            return answer
        try:
            await request.read()
        except (ConnectionError, RuntimeError):
            if request.protocol.connected:
                raise
            return web.Response(status=408)  # nobody is there any more to read it
        door.complete(transport)
        try:
            return await handler(request)
        finally:
            door.done(transport)

    return middleware


def room_for_connections() -> int:
    """Return the most connections at once: half of the files that the system allows."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # not every system has it
        return MOST
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(16, min(MOST, soft // 2)) if soft > 0 else MOST
