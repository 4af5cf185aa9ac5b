"""A stand-in for a provider: an HTTP server that speaks OpenAI's chat completions, on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from pydantic_ai.models import Model

KEY = "sk-test-not-a-secret"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the server's model makes; `arguments` are sent in pieces of `cut` signs."""

    name: str
    arguments: str
    call_id: str
    cut: int = 7


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the server's model, or an HTTP error with its code.

    Attributes:
        finish: Why it ends; None leaves that out, as a stream does that breaks off.
        refusal: The model's words in place of an answer.
        has_choices: Whether there is anything in it.
        hangs: Whether nothing more comes after the text.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    status: int = 200
    code: str = ""
    finish: str | None = ""
    refusal: str = ""
    has_choices: bool = True
    hangs: bool = False

    @property
    def reason(self) -> str | None:
        """The `finish_reason` that is sent."""
        return ("tool_calls" if self.calls else "stop") if self.finish == "" else self.finish


@dataclass(slots=True)
class OpenAIServer:
    """Answers requests in the order of its script, and keeps what it was sent.

    Attributes:
        script: What is still to be answered.
        requests: Bodies of all requests.
        keys: Authorization headers of all requests.
        base_url: Where it listens.
    """

    script: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    base_url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        reply = self.script.pop(0)
        if reply.status != 200:
            fault = {"message": f"out of order: {KEY}", "type": "server_error", "code": reply.code}
            error = {"error": fault}
            return web.json_response(error, status=reply.status)
        if body.get("stream"):
            return await self._stream(request, reply)
        if reply.hangs:
            await asyncio.Event().wait()
        return web.json_response(_whole(reply))

    async def _stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta in _deltas(reply):
            await response.write(_event(_chunk(delta)))
        if reply.hangs:
            await asyncio.Event().wait()
        if reply.has_choices and reply.reason is not None:
            await response.write(_event(_chunk({}, reply.reason)))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response


@asynccontextmanager
async def openai_server(*script: Reply) -> AsyncIterator[tuple[OpenAIServer, Model]]:
    """Start a server on a free port, with a model that talks to it."""
    # OpenAI's client takes as long to import as the bot does, and few tests need it.
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    server = OpenAIServer(list(script))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.base_url = f"http://{host}:{port}/v1"
    try:
        async with AsyncOpenAI(base_url=server.base_url, api_key=KEY, max_retries=0) as client:
            provider = OpenAIProvider(openai_client=client)
            yield server, OpenAIChatModel("gpt-test", provider=provider)
    finally:
        await runner.cleanup()


def _whole(reply: Reply) -> dict[str, Any]:
    calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in reply.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if calls:
        message["tool_calls"] = calls
    if reply.refusal:
        message["refusal"] = reply.refusal
    choice = {"index": 0, "message": message, "finish_reason": reply.reason}
    return {**_head("chat.completion"), "choices": [choice] if reply.has_choices else []}


def _deltas(reply: Reply) -> list[dict[str, Any]]:
    if not reply.has_choices:
        return []
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"refusal": word} for word in reply.refusal.split(" ") if word]
    deltas += [{"content": word} for word in reply.text.split(" ") if word]
    # Providers mix the pieces of parallel calls; the index tells them apart.
    pieces = [_pieces(at, call) for at, call in enumerate(reply.calls)]
    while any(pieces):
        deltas += [{"tool_calls": [queue.pop(0)]} for queue in pieces if queue]
    return deltas


def _pieces(at: int, call: Call) -> list[dict[str, Any]]:
    head = {
        "index": at,
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    cuts = range(0, len(call.arguments), call.cut)
    tails = [
        {"index": at, "function": {"arguments": call.arguments[cut : cut + call.cut]}}
        for cut in cuts
    ]
    return [head, *tails]


def _chunk(delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**_head("chat.completion.chunk"), "choices": [choice]}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1764547200, "model": "gpt-test"}


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()
