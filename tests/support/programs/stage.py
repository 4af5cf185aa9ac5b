"""A proxy between a client and a server of tools that are made of messages."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from countersign_client import AsyncCountersign
from countersign_client.mcp.calls import Options
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.proxy import Proxy
from tests.support.programs.server import KEY, URL, Record, Server

DEPLOY: dict[str, Any] = {
    "name": "deploy",
    "description": "Deploys.",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"env": {"type": "string"}, "replicas": {"type": "integer", "minimum": 1}},
        "required": ["env"],
    },
    "outputSchema": {"type": "object"},
    "annotations": {"destructiveHint": True},
}
CALL = {"env": "production", "replicas": 3}


class Stage:
    """Countersign, a client and a server of tools; time moves when it is told to."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.time = 0.0
        self.countersign = Server(lambda: self.time)
        self.is_away = False
        self.options = Options(**{"name": "ops", "session": "s", **options})
        self.client: list[dict[str, Any]] = []
        """Messages that the client got."""
        self.server: list[dict[str, Any]] = []
        """Messages that the server got."""
        self.client_is_gone = False
        self.may_write = asyncio.Event()
        """Not set: the client reads a message, and the proxy does not know that it was written."""
        self.may_write.set()
        self.server_is_gone = False
        self._changed = asyncio.Condition()
        self._sleepers: list[asyncio.Event] = []
        self.proxy = self.restarted()

    def restarted(self) -> Proxy:
        """A new process of the proxy."""
        http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        patient = AsyncCountersign(URL, KEY, patience=0, http=http)
        now = lambda: 1_763_000_000 + self.time  # noqa: E731
        files = Definitions(self.folder / "tools.json", now), Spool(self.folder, now)
        self.proxy = Proxy(
            patient, self.options, files, self._to_client, self._to_server, self._sleep
        )
        return self.proxy

    async def __aenter__(self) -> Self:
        await self.list_tools(DEPLOY)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.proxy.server_gone()
        await self.proxy.close()

    async def send(self, message: dict[str, Any] | bytes) -> None:
        """Let the client send."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        await self.proxy.from_client(line)

    async def list_tools(self, *tools: dict[str, Any], **params: Any) -> dict[str, Any]:
        """Let the client list the tools."""
        await self.send({"jsonrpc": "2.0", "id": "l", "method": "tools/list", "params": params})
        listed = {"jsonrpc": "2.0", "id": "l", "result": {"tools": tools}}
        await self.proxy.from_server(json.dumps(listed).encode() + b"\n")
        return self.client[-1]

    async def call(
        self, message_id: Any = 1, arguments: Any = CALL, name: str = "deploy", **params: Any
    ) -> None:
        """Let the client call a tool."""
        params = {"name": name, "arguments": arguments, **params}
        await self.send(
            {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}
        )

    async def cancel(self, message_id: Any = 1) -> None:
        """Let the client give a call up."""
        params = {"requestId": message_id}
        await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def asked(self, count: int = 1) -> Record:
        """Wait for so many requests, and give the newest."""
        await self.until(lambda: len(self.countersign.records) >= count)
        return list(self.countersign.records.values())[-1]

    async def do(self, deed: Callable[[], object]) -> None:
        """Let people do something."""
        async with self._changed:
            deed()
            self._changed.notify_all()

    async def running(self, count: int = 1) -> dict[str, Any]:
        """Wait until the server got so many calls, and give the newest."""
        await self.until(lambda: len(self.calls) >= count)
        return self.calls[-1]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Calls that the server got."""
        return [message for message in self.server if message.get("method") == "tools/call"]

    async def finish(self, call: dict[str, Any], **answer: Any) -> None:
        """Let the server answer a call."""
        answer = answer or {"result": {"content": [{"type": "text", "text": "deployed"}]}}
        line = json.dumps({"jsonrpc": "2.0", "id": call["id"], **answer}).encode() + b"\n"
        await self.proxy.from_server(line)

    async def answer(self, message_id: Any = 1) -> dict[str, Any]:
        """Wait for the answer to a message of the client."""
        await self.until(lambda: bool(self._answers(message_id)))
        return self._answers(message_id)[-1]

    async def text(self, message_id: Any = 1) -> str:
        """Wait for the texts of a result."""
        result = (await self.answer(message_id))["result"]
        return " ".join(block["text"] for block in result["content"])

    async def ran(self, message_id: Any = 1) -> str:
        """Approve the newest request, let the server run it, and give the texts of the result."""
        record = await self.asked()
        count = len(self.calls)
        await self.do(lambda: self.countersign.approve(record))
        await self.finish(await self.running(count + 1))
        return await self.text(message_id)

    async def tick(self) -> None:
        """Let each wait of the proxy end."""
        await self.until(lambda: bool(self._sleepers))
        sleepers, self._sleepers = self._sleepers, []
        for each in sleepers:
            each.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        begun = time.monotonic()
        while not holds():
            assert time.monotonic() < begun + 20, (self.client, self.server)
            await asyncio.sleep(0.001)

    def _answers(self, message_id: Any) -> list[dict[str, Any]]:
        return [each for each in self.client if each.get("id") == message_id]

    async def _to_client(self, line: bytes) -> None:
        if self.client_is_gone:
            raise BrokenPipeError
        assert line.count(b"\n") == 1
        self.client.append(json.loads(line))
        await self.may_write.wait()

    async def _to_server(self, line: bytes) -> None:
        if self.server_is_gone:
            raise BrokenPipeError
        assert line.count(b"\n") == 1
        self.server.append(json.loads(line))

    async def _sleep(self, _: float) -> None:
        event = asyncio.Event()
        self._sleepers.append(event)
        await event.wait()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        if self.is_away:
            raise httpx.ConnectError("connection refused", request=request)
        target, query = request.url.path, list(request.url.params.multi_items())
        headers = {name.lower(): value for name, value in request.headers.items()}
        async with self._changed:
            while request.method == "GET" and self.countersign.is_held(target, query):
                await self._changed.wait()
            answer = self.countersign.answer(
                request.method, target, query, headers, request.content
            )
            self._changed.notify_all()
        return httpx.Response(answer.status, headers=dict(answer.headers), content=answer.content)
