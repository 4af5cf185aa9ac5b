"""Limit connections to the HTTP server, and their duration.

A sender is unverified until the request is complete and its signature is checked. Before that, a
connection has a deadline, and is closed in favor of newer ones if there are too many. A complete
request has no deadline.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

logger = logging.getLogger(__name__)

MOST = 512
"""Maximum number of open HTTP connections, or half of the system's file limit."""
SILENCE_S = 60.0
"""Seconds between log lines about too many connections."""


class Timer(Protocol):
    """A timer that runs."""

    def cancel(self) -> None:
        """Stop the timer."""


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Timer]
"""Calls a function after a number of seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits of connections, in seconds."""

    request: float = 5.0
    idle: float = 75.0


class Door:
    """Accepts connections, and closes those that block others.

    Args:
        inner: Creates the protocol that reads requests.
        most: Maximum number of connections. A further one replaces the oldest with an incomplete
            request, or is refused.
        patience: Time limits.
        call_later: Starts the timers; None for those of the running event loop.
    """

    def __init__(
        self,
        inner: Callable[[], asyncio.Protocol],
        *,
        most: int = MOST,
        patience: Patience | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self._inner = inner
        self._most = most
        self.patience = patience or Patience()
        self.call_later = call_later or asyncio.get_running_loop().call_later
        # In order of arrival.
        self._inside: dict[asyncio.BaseTransport, _Connection] = {}
        self._warned_at: float | None = None

    def __call__(self) -> asyncio.Protocol:
        """Create the protocol of a new connection."""
        return _Connection(self, self._inner())

    @property
    def inside(self) -> int:
        """Return the number of connections."""
        return len(self._inside)

    def complete(self, transport: asyncio.BaseTransport | None) -> None:
        """Mark a connection's request as complete and being processed."""
        if transport in self._inside:
            self._inside[transport].work()

    def done(self, transport: asyncio.BaseTransport | None) -> None:
        """Mark a connection's request as answered."""
        if transport in self._inside:
            self._inside[transport].rest()

    def enter(self, connection: _Connection, transport: asyncio.Transport) -> None:
        """Add a connection; above the maximum, close another or refuse this one."""
        if len(self._inside) >= self._most:
            waiting = [other for other in self._inside.values() if not other.is_working]
            # Connections without any answered request are closed first.
            leaving = min(waiting, key=lambda other: other.answered > 0, default=connection)
            self._warn()
            if leaving is connection:
                transport.abort()
                return
            leaving.leave()
        self._inside[transport] = connection

    def _warn(self) -> None:
        """Log that there are too many, at limited frequency."""
        now = asyncio.get_running_loop().time()
        if self._warned_at is None or now >= self._warned_at + SILENCE_S:
            self._warned_at = now
            logger.warning(
                "more than %d connections at once, closing incomplete ones",
                self._most,
                extra={"action": "connection_closed"},
            )

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """Remove a connection that has ended."""
        self._inside.pop(transport, None)


@dataclass(eq=False, slots=True)
class _Connection(asyncio.Protocol):
    """Wraps the request protocol with time limits.

    Attributes:
        door: Its limits.
        inner: Reads the requests.
        is_working: Whether a complete request is being processed.
        answered: Number of answered requests.
    """

    door: Door
    inner: asyncio.Protocol
    is_working: bool = False
    answered: int = 0
    _is_heard: bool = False
    _transport: asyncio.Transport | None = None
    _timer: Timer | None = field(default=None)

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
        """Stop the timer: the request is complete."""
        self.is_working = True
        self._is_heard = False
        self._silence()

    def rest(self) -> None:
        """Restart the timer: the request is answered."""
        self.is_working = False
        self.answered += 1
        patience = self.door.patience
        # Data that arrived during the response begins the next request.
        self._wait(patience.request if self._is_heard else patience.idle)

    def leave(self) -> None:
        """Close the connection at once."""
        self._silence()
        if self._transport is not None:
            self.door.forget(self._transport)
            self._transport.abort()

    def _wait(self, seconds: float) -> None:
        self._silence()
        if self._transport is not None and not self._transport.is_closing():
            self._timer = self.door.call_later(seconds, self.leave)

    def _silence(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def only_complete(door: Door) -> Middleware:
    """Return middleware that accepts only complete, uncompressed requests.

    Compressed bodies are refused unread: no sender needs them, and they could expand without limit.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        if request.match_info.http_exception is not None:
            return await handler(request)  # unknown path: the body is not read
        if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            refusal = web.HTTPUnsupportedMediaType(text="Compressed requests are not read.\n")
            refusal.force_close()
            raise refusal
        try:
            await request.read()
        except (ConnectionError, RuntimeError):
            if request.protocol.connected:
                raise
            return web.Response(status=408)  # the client is gone
        door.complete(transport)
        try:
            return await handler(request)
        finally:
            door.done(transport)

    return middleware


def room_for_connections(most: int = MOST) -> int:
    """Return the maximum number of connections: `most`, or half of the system's file limit."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # missing on some systems
        return most
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(16, min(most, soft // 2)) if soft > 0 else most
