"""Socket Mode: the app connects and receives payloads in envelopes.

Source:
    https://docs.slack.dev/apis/events-api/using-socket-mode
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from aiohttp import WSCloseCode, WSMsgType, web

from slack_sandbox.args import Args
from slack_sandbox.delivery.http import AppReply, Parcel
from slack_sandbox.workspace.changes import BackgroundTasks
from slack_sandbox.workspace.records import Payload
from slack_sandbox.workspace.state import Workspace

Farewell = Literal["warning", "refresh_requested", "link_disabled"]
"""The reason why Slack ends a connection: soon, now, or because Socket Mode was switched off."""
Spread = Literal["in_turn", "random"]
"""Chooses the connection for an envelope."""

CONNECTIONS = 10
"""Maximum number of sockets of one app."""
WARNING = 10.0
"""Number of seconds from a warning to the end of a connection."""
_TICKET_LIFE = 30.0


@dataclass(eq=False, slots=True, kw_only=True)
class _Socket:
    ws: web.WebSocketResponse
    transport: asyncio.Transport | None = None
    waiting: dict[str, asyncio.Future[AppReply]] = field(default_factory=dict)


class SocketModeServer:
    """All sockets of the app. Each envelope goes to exactly one of them."""

    def __init__(self, workspace: Workspace, tasks: BackgroundTasks, *, patience: float) -> None:
        self._workspace = workspace
        self._tasks = tasks
        self._patience = patience
        self._random = Random(0)  # noqa: S311 - to be repeatable, not to be secret
        self.opened = 0
        """Number of connections ever opened."""
        self.spread: Spread = "in_turn"
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._tickets: dict[str, float] = {}
        self._sockets: list[_Socket] = []
        self._turn = 0

    @property
    def is_open(self) -> bool:
        """Whether the app is connected."""
        return bool(self._sockets)

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self._sockets)

    def seed(self, seed: int) -> None:
        """Choose connections at random, in the same order for the same seed."""
        self._random.seed(seed)
        self.spread = "random"

    def open_connection(self, workspace: Workspace, args: Args) -> Payload:  # noqa: ARG002 - same for all methods
        """apps.connections.open: return an address that works once."""
        ticket = workspace.ids.secret()
        self._tickets[ticket] = workspace.clock() + _TICKET_LIFE
        address = workspace.url.replace("http://", "ws://", 1)
        return {"url": f"{address}/socket?ticket={ticket}&app_id={workspace.app_id}"}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Handle one connection until its end."""
        expires_at = self._tickets.pop(request.query.get("ticket", ""), 0.0)
        if self._workspace.clock() > expires_at:
            raise web.HTTPForbidden(text="This ticket is unknown, old or used.")
        ws = web.WebSocketResponse()
        try:
            await ws.prepare(request)
        except ConnectionError:
            raise web.HTTPGone(text="The app has left before it was let in.") from None
        if len(self._sockets) >= CONNECTIONS:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await ws.close()
            return ws
        socket = _Socket(ws=ws, transport=request.transport)
        self._sockets.append(socket)
        try:
            await ws.send_json(self._hello())
            self.opened += 1
            self._workspace.connection_changed()
            await self._listen(socket)
        except ConnectionError:
            pass  # the app has left: even a pong cannot be sent
        finally:
            self._forget(socket)
        return ws

    async def send(self, parcel: Parcel) -> AppReply:
        """Send an envelope to one socket, and wait for its acknowledgement."""
        if not self._sockets:
            return AppReply(ok=False, reason="not_connected")
        socket = self._next(parcel.avoid)
        envelope = self._envelope(parcel)
        future: asyncio.Future[AppReply] = asyncio.get_running_loop().create_future()
        socket.waiting[envelope["envelope_id"]] = future
        try:
            async with asyncio.timeout(self._patience):
                await socket.ws.send_json(envelope)
                return await future
        except TimeoutError:
            return AppReply(ok=False, reason="http_timeout", via=socket)
        except ConnectionError:
            return AppReply(ok=False, reason="connection_failed", via=socket)
        finally:
            socket.waiting.pop(envelope["envelope_id"], None)

    async def disconnect(
        self, reason: Farewell = "refresh_requested", *, grace: float | None = None
    ) -> None:
        """Send a disconnect message to each socket, and close it.

        Args:
            reason: The reason in the message.
            grace: Number of seconds from the message to the end. None for Slack's time: ten seconds
                after a warning, otherwise none. Envelopes are still delivered until the end.
        """
        leaving = list(self._sockets)
        await _tell(leaving, reason)
        seconds = (WARNING if reason == "warning" else 0.0) if grace is None else grace
        if seconds > 0:
            self._tasks.start(self._close_later(leaving, seconds))
        else:
            await _close(leaving)

    def cut(self, number: int | None = None) -> None:
        """Break one connection, or all, without a message.

        Args:
            number: Number of the connection, the oldest is 0; None for all.
        """
        chosen = self._sockets if number is None else self._sockets[number : number + 1]
        for socket in list(chosen):
            if socket.transport is not None:
                socket.transport.abort()

    async def _close_later(self, leaving: list[_Socket], seconds: float) -> None:
        await self.sleep(seconds)
        await _close(leaving)

    def _next(self, avoid: object) -> _Socket:
        """Return the socket for the next envelope."""
        usable = [socket for socket in self._sockets if not socket.ws.closed] or self._sockets
        others = [socket for socket in usable if socket is not avoid] or usable
        if self.spread == "random":
            return self._random.choice(others)
        self._turn += 1
        return others[self._turn % len(others)]

    def _hello(self) -> Payload:
        return {
            "type": "hello",
            "num_connections": len(self._sockets),
            "connection_info": {"app_id": self._workspace.app_id},
            "debug_info": {"host": "sandbox", "approximate_connection_time": 18_060},
        }

    def _envelope(self, parcel: Parcel) -> Payload:
        envelope: Payload = {
            "envelope_id": self._workspace.ids.secret(),
            "type": parcel.kind,
            "payload": parcel.payload,
            "accepts_response_payload": parcel.kind != "events_api",
        }
        if parcel.kind == "events_api":
            envelope["retry_attempt"] = parcel.attempt
            envelope["retry_reason"] = parcel.reason
        return envelope

    async def _listen(self, socket: _Socket) -> None:
        async for message in socket.ws:
            if message.type == WSMsgType.TEXT:
                _take_ack(socket, message.data)
                self._workspace.changes.tell()

    def _forget(self, socket: _Socket) -> None:
        self._sockets.remove(socket)
        for future in socket.waiting.values():
            if not future.done():
                future.set_result(AppReply(ok=False, reason="connection_failed", via=socket))
        self._workspace.connection_changed()


async def _tell(leaving: list[_Socket], reason: Farewell) -> None:
    for socket in leaving:
        try:
            await socket.ws.send_json({"type": "disconnect", "reason": reason})
        except ConnectionError:
            continue  # the socket has already closed


async def _close(leaving: list[_Socket]) -> None:
    for socket in leaving:
        try:
            await socket.ws.close(code=WSCloseCode.GOING_AWAY)
        except ConnectionError:
            continue


def _take_ack(socket: _Socket, text: str) -> None:
    try:
        ack: Any = json.loads(text)
    except ValueError:
        return
    if not isinstance(ack, dict):
        return
    future = socket.waiting.get(str(ack.get("envelope_id")))
    if future is not None and not future.done():
        future.set_result(AppReply(ok=True, body=ack.get("payload")))
