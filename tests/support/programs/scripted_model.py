"""A model for Claude Code that calls Bash once, and then ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

COMMAND = {"command": "echo own > ran.txt", "description": "Write a file"}
CALL_ID = "toolu_01A"


class ScriptedModel:
    """Answers the calls of Claude Code.

    Attributes:
        url: Its address.
        results: What Claude Code told it about the call.
    """

    def __init__(self) -> None:
        self.url = ""
        self.results: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a call of /v1/messages."""
        body = await request.json()
        last = body["messages"][-1]["content"]
        parts = last if isinstance(last, list) else []
        results = [part for part in parts if part.get("type") == "tool_result"]
        self.results += [str(part["content"]) for part in results]
        has_bash = any(tool.get("name") == "Bash" for tool in body.get("tools", ()))
        block: dict[str, Any] = {"type": "text", "text": "Done."}
        if not results and has_bash:
            block = {"type": "tool_use", "id": CALL_ID, "name": "Bash", "input": COMMAND}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        if not body.get("stream"):
            return web.json_response(message)
        events = [
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _of(message)
        ]
        return web.Response(text="".join(events), content_type="text/event-stream")


def _of(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a message that is streamed."""
    (block,) = message["content"]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if block["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        empty = {**block, "input": {}}
    else:
        delta, empty = {"type": "text_delta", "text": block["text"]}, {**block, "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ScriptedModel]:
    """Start the model."""
    model, app = ScriptedModel(), web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/messages", model.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    model.url = f"http://{host}:{port}"
    try:
        yield model
    finally:
        await runner.cleanup()
