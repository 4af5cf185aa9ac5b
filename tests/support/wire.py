"""A proxy in front of a MongoDB server, through which a test decides what the server answers."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Protocol

import bson
from pymongo.uri_parser import parse_uri

from tests.support.mongo import own_client
from tests.support.mongo_listener import LISTENER
from tests.support.ports import free_port

Command = dict[str, Any]


class Ask(Protocol):
    """Asks the real server."""

    def __call__(self, command: Command | None = None) -> Awaitable[Command]:
        """Send the command as it came, or another one."""
        ...


Play = Callable[[Command, Ask], Awaitable[Command]]
"""Answers a command. `ConnectionError` cuts the line."""

_HEADER = struct.Struct("<iiii")
_MSG, _QUERY, _REPLY = 2013, 2004, 1


@asynccontextmanager
async def proxied(uri: str, play: Play, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Run a proxy while the block runs; give the address that leads through it.

    The login goes through the proxy; TLS ends at it. Nobody is led past it to the members of a
    replica set.

    Args:
        uri: The address of the server.
        play: Answers each command.
        tls: For clients of the proxy; None for none.
    """
    host, port = await asyncio.to_thread(_primary, uri)
    tls_behind = _tls(uri)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        behind, ahead = await asyncio.open_connection(host, port, ssl=tls_behind)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                for number in count(1):
                    head, body = await _read(reader)

                    async def ask(
                        command: Command | None = None, *, asked: bytes = head + body
                    ) -> Command:
                        ahead.write(asked if command is None else _message(asked, command))
                        return _document(*await _read(behind))

                    answer = await play(_document(head, body), ask)
                    if "maxWireVersion" in answer:
                        answer = _as_one_member(answer, here)
                    writer.write(_reply(number, head, answer))
                    await writer.drain()
        finally:
            ahead.close()
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", free_port(), ssl=tls)
    here = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield _leading_to(here, uri)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _primary(uri: str) -> tuple[str, int]:
    with own_client(uri) as client:
        client.admin.command("ping")
        host, port = client.primary or next(iter(client.nodes))
    return host, port or 27017


def _tls(uri: str) -> ssl.SSLContext | None:
    options = parse_uri(uri)["options"]
    if not options.get("tls"):
        return None
    context = ssl.create_default_context(cafile=options.get("tlsCAFile"))
    if options.get("tlsAllowInvalidHostnames") or options.get("tlsAllowInvalidCertificates"):
        context.check_hostname = False
    if options.get("tlsAllowInvalidCertificates"):
        context.verify_mode = ssl.CERT_NONE
    if own := options.get("tlsCertificateKeyFile"):
        context.load_cert_chain(own, password=options.get("tlsCertificateKeyFilePassword"))
    return context


_ENDING_HERE = ("tls", "ssl", "compressors", "srv")
"""Beginnings of options that do not concern the way from a client to the proxy."""


def _leading_to(place: str, uri: str) -> str:
    address, _, options = uri.partition("?")
    hosts, _, database = address.partition("://")[2].partition("/")
    login, at, _ = hosts.rpartition("@")
    kept = [option for option in options.split("&") if not option.lower().startswith(_ENDING_HERE)]
    given = f"?{'&'.join(kept)}" if any(kept) else ""
    return f"mongodb://{login}{at}{place}/{database}{given}"


def _as_one_member(answer: Command, place: str) -> Command:
    """Return the answer to `hello` of a replica set, if it is one, that has the proxy alone.

    Without a topology version, no client asks for answers before anything has changed.
    """
    left = {"topologyVersion", "passives", "arbiters", "compression"}
    answer = {name: value for name, value in answer.items() if name not in left}
    named = {"hosts": [place], "me": place, "primary": place}
    return answer | {name: value for name, value in named.items() if name in answer}


def as_member(answer: Command) -> Command:
    """Return the answer to `hello` as a replica set of one member gives it: writes are repeated."""
    if "maxWireVersion" not in answer:
        return answer
    member = dict.fromkeys(("me", "primary"), "here:1") | {"setName": "rs0", "hosts": ["here:1"]}
    return {"logicalSessionTimeoutMinutes": 30, "setVersion": 1, **answer, **member}


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
    command: Command = {}
    place = 4
    while place < len(body):
        size = int.from_bytes(body[place + 1 : place + 5], "little")
        section = body[place + 1 : place + 1 + size]
        if body[place] == 0:
            command |= bson.decode(section)
        else:
            name, _, documents = section[4:].partition(b"\0")
            command[name.decode()] = list(bson.decode_iter(documents))
        place += 1 + size
    return command


def _message(asked: bytes, command: Command) -> bytes:
    """Return a message with another command, for which the server answers as it would before."""
    body = b"\0\0\0\0\0" + bson.encode(command)
    _, request, answers, _ = _HEADER.unpack(asked[: _HEADER.size])
    return _HEADER.pack(_HEADER.size + len(body), request, answers, _MSG) + body


def _reply(number: int, asked: bytes, answer: Command) -> bytes:
    _, request, _, kind = _HEADER.unpack(asked)
    document = bson.encode(answer)
    if kind == _QUERY:
        kind, body = _REPLY, struct.pack("<iqii", 8, 0, 0, 1) + document
    else:
        kind, body = _MSG, b"\0\0\0\0\0" + document
    return _HEADER.pack(_HEADER.size + len(body), number, request, kind) + body
