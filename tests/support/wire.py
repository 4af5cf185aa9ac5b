"""A proxy in front of a MongoDB server, through which a test decides what the server answers."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import bson

from tests.support.mongo_listener import LISTENER

Command = dict[str, Any]
Ask = Callable[[], Awaitable[Command]]
Play = Callable[[Command, Ask], Awaitable[Command]]
"""Answers a command; the second argument asks the real server. `ConnectionError` cuts the line."""

_HEADER = struct.Struct("<iiii")
_MSG, _QUERY, _REPLY = 2013, 2004, 1


@asynccontextmanager
async def proxied(uri: str, play: Play) -> AsyncIterator[str]:
    """Run a proxy while the block runs; give the address that leads through it."""
    host, port = urlsplit(uri).hostname, urlsplit(uri).port
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        behind, ahead = await asyncio.open_connection(host, port)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                for number in count(1):
                    head, body = await _read(reader)

                    async def ask(message: bytes = head + body) -> Command:
                        ahead.write(message)
                        return _document(*await _read(behind))

                    answer = await play(_document(head, body), ask)
                    writer.write(_reply(number, head, answer))
                    await writer.drain()
        finally:
            ahead.close()
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"mongodb://127.0.0.1:{server.sockets[0].getsockname()[1]}/{urlsplit(uri).path[1:]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def refusal(code: int, name: str, text: str, **more: object) -> Command:
    """Make the answer of a server that refuses a command; the test expects it."""
    LISTENER.expect(code)
    return {"ok": 0.0, "errmsg": text, "code": code, "codeName": name, **more}


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(_HEADER.size)
    return head, await reader.readexactly(_HEADER.unpack(head)[0] - _HEADER.size)


def _document(head: bytes, body: bytes) -> Command:
    """Return the command or the answer in a message, with the documents that go beside it."""
    kind = _HEADER.unpack(head)[3]
    if kind == _REPLY:
        return bson.decode(body[20:])
    if kind == _QUERY:  # the first command of a connection
        return bson.decode(body[body.index(b"\0", 4) + 9 :])
    assert kind == _MSG, f"the proxy does not know the operation {kind}"
    found: Command = {}
    place = 4
    while place < len(body):
        size = int.from_bytes(body[place + 1 : place + 5], "little")
        section = body[place + 1 : place + 1 + size]
        if body[place] == 0:
            found |= bson.decode(section)
        else:
            name, _, documents = section[4:].partition(b"\0")
            found[name.decode()] = list(bson.decode_iter(documents))
        place += 1 + size
    return found


def _reply(number: int, asked: bytes, answer: Command) -> bytes:
    _, request, _, kind = _HEADER.unpack(asked)
    document = bson.encode(answer)
    if kind == _QUERY:
        kind, body = _REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document
    else:
        kind, body = _MSG, b"\0\0\0\0\0" + document
    return _HEADER.pack(_HEADER.size + len(body), number, request, kind) + body
