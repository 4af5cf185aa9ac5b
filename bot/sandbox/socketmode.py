"""Socket Mode: the app connects, and gets its payloads as envelopes.

Source:
    https://docs.slack.dev/apis/events-api/using-socket-mode
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from bot.sandbox.args import Args
from bot.sandbox.delivery import Parcel, Reply
from bot.sandbox.records import Payload
from bot.sandbox.state import Workspace

CONNECTIONS = 10
"""Most sockets of one app at a time."""
_TICKET_LIFE = 30.0


@dataclass(eq=False, slots=True, kw_only=True)
class _Socket:
    ws: web.WebSocketResponse
    waiting: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)


class SocketMode:
    """All sockets of the app; each envelope goes to one of them, in turn."""

    def __init__(self, workspace: Workspace, *, patience: float) -> None:
        self._workspace = workspace
        self._patience = patience
        self._tickets: dict[str, float] = {}
        self._sockets: list[_Socket] = []
        self._turn = 0

    @property
    def is_open(self) -> bool:
        """Whether the app is connected."""
        return bool(self._sockets)

    def open_connection(self, workspace: Workspace, args: Args) -> Payload:  # noqa: ARG002 - same for all methods
        """apps.connections.open: an address that works once."""
        ticket = workspace.ids.secret()
        self._tickets[ticket] = workspace.clock() + _TICKET_LIFE
        address = workspace.url.replace("http://", "ws://", 1)
        return {"url": f"{address}/socket?ticket={ticket}&app_id={workspace.app_id}"}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One connection, from the ticket to the end."""
        expires_at = self._tickets.pop(request.query.get("ticket", ""), 0.0)
        if self._workspace.clock() > expires_at:
            raise web.HTTPForbidden(text="This ticket is unknown, old or used.")
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        if len(self._sockets) >= CONNECTIONS:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await ws.close()
            return ws
        socket = _Socket(ws=ws)
        self._sockets.append(socket)
        try:
            await ws.send_json(self._hello())
            self._workspace.connection_changed()
            await self._listen(socket)
        finally:
            self._forget(socket)
        return ws

    async def send(self, parcel: Parcel) -> Reply:
        """Send an envelope to the next socket, and wait for its acknowledgement."""
        if not self._sockets:
            return Reply(ok=False, reason="not_connected")
        self._turn += 1
        socket = self._sockets[self._turn % len(self._sockets)]
        envelope = self._envelope(parcel)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        socket.waiting[envelope["envelope_id"]] = future
        try:
            async with asyncio.timeout(self._patience):
                await socket.ws.send_json(envelope)
                return await future
        except TimeoutError:
            return Reply(ok=False, reason="http_timeout")
        except ConnectionError:
            return Reply(ok=False, reason="connection_failed")
        finally:
            socket.waiting.pop(envelope["envelope_id"], None)

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell each socket to go, as Slack does every few hours, and close it."""
        for socket in list(self._sockets):
            try:
                await socket.ws.send_json({"type": "disconnect", "reason": reason})
                await socket.ws.close(code=WSCloseCode.GOING_AWAY)
            except ConnectionError:
                continue

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
                future.set_result(Reply(ok=False, reason="connection_failed"))
        self._workspace.connection_changed()


def _take_ack(socket: _Socket, text: str) -> None:
    try:
        ack: Any = json.loads(text)
    except ValueError:
        return
    if not isinstance(ack, dict):
        return
    future = socket.waiting.get(str(ack.get("envelope_id")))
    if future is not None and not future.done():
        future.set_result(Reply(ok=True, body=ack.get("payload")))
