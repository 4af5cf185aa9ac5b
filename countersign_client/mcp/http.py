"""The proxy over Streamable HTTP, before a server at a URL; each answer of it is read."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import uvicorn
from mcp.server.transport_security import (
    DEFAULT_MAX_REQUEST_BODY_SIZE,
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from countersign_client.asynchronous import AsyncCountersign
from countersign_client.mcp.calls import Options
from countersign_client.mcp.files import Definitions, Spool
from countersign_client.mcp.messages import (
    REFUSED,
    MalformedMessageError,
    Message,
    is_modern,
    members_of,
    parse,
    read,
    serialised,
)
from countersign_client.mcp.proxy import BETWEEN, Proxy, UnreachedError

logger = logging.getLogger("countersign_client")

PATH = "/mcp"
GRACE = 5
"""Seconds in which calls that run may end, once a signal has ended the proxy."""
_LAST_EVENT, _SESSION = "last-event-id", "mcp-session-id"
_PASSED = ("accept", _LAST_EVENT, "mcp-protocol-version", _SESSION)
"""Headers of a client that the server gets; the others are made anew, or are not its business."""
_EVENTS = "text/event-stream"
_UNREACHED = (httpx2.ConnectError, httpx2.ConnectTimeout)
_TIMES = httpx2.Timeout(30, read=None)
# A connection that the server is about to close would make an outcome unknown.
_LIMITS = httpx2.Limits(max_connections=None, keepalive_expiry=2)
LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that is no stream."""
_MOST_FAILURES = 5
_PAUSE = 1.0
"""Seconds until a stream that broke off is taken up again, if the server does not say."""
LONGEST_PAUSE = 30.0
"""Seconds until then at most, whatever the server says."""


def checked_hosts(host: str, port: int, more: Sequence[str]) -> TransportSecuritySettings:
    """Refuse other names of this machine, and pages of the web: no DNS rebinding.

    Args:
        host: The address that is listened on.
        port: The port.
        more: Other values of the header Host. A request with an Origin is refused.
    """
    name = f"[{host}]" if ":" in host else host
    hosts = [f"{name}:{port}", f"localhost:{port}", *more]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[])


@dataclass(frozen=True)
class Ends:
    """The two ends of a proxy.

    Attributes:
        url: The server's endpoint.
        headers: Headers for the server, such as its credentials.
        host: The address that is listened on.
        port: The port.
        hosts: Other values of the header Host that clients may send.
    """

    url: str
    headers: Mapping[str, str]
    host: str
    port: int
    hosts: Sequence[str] = ()


async def serve(
    ends: Ends,
    options: Options,
    files: tuple[Definitions, Spool],
    countersign: AsyncCountersign,
) -> None:
    """Stand between clients and a server, until a signal comes.

    Args:
        ends: Where both are.
        options: How to ask.
        files: The server's tools, and the results that no client took.
        countersign: Asks people.
    """
    async with httpx2.AsyncClient(headers=ends.headers, timeout=_TIMES, limits=_LIMITS) as http:
        relay = Relay(ends.url, http, Proxy(countersign, options, files, _nowhere, _nowhere))
        config = uvicorn.Config(
            relay.app(checked_hosts(ends.host, ends.port, ends.hosts)),
            host=ends.host,
            port=ends.port,
            log_level="warning",
            timeout_graceful_shutdown=GRACE,
        )
        await uvicorn.Server(config).serve()


class Relay:
    """Passes requests of clients on to a server, and holds calls of tools."""

    def __init__(self, url: str, http: httpx2.AsyncClient, proxy: Proxy) -> None:
        """Begin with no client.

        Args:
            url: The server's endpoint.
            http: The connections to the server, with its credentials.
            proxy: Knows the calls of all clients.
        """
        self.url = url
        self.http = http
        self.proxy = proxy

    def app(self, security: TransportSecuritySettings) -> Starlette:
        """Make the application.

        Args:
            security: Which clients are answered.
        """
        guard = TransportSecurityMiddleware(security)

        async def answer(request: Request) -> Response:
            refused = await guard.validate_request(request, is_post=request.method == "POST")
            return refused or await _Exchange(self, request).answer()

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            closing = asyncio.create_task(self.proxy.close())
            await asyncio.wait({closing}, timeout=GRACE)
            self.proxy.abort()
            await closing

        limit = Middleware(RequestBodyLimitMiddleware, max_body_size=DEFAULT_MAX_REQUEST_BODY_SIZE)
        routes = [Route(PATH, answer, methods=["GET", "POST", "DELETE"])]
        return Starlette(routes=routes, middleware=[limit], lifespan=lifespan)


class _Exchange:
    """A request of a client, and the messages of its answer."""

    def __init__(self, relay: Relay, request: Request) -> None:
        self._relay = relay
        self._request = request
        self._headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        # Without a session, ids are unique within this request alone.
        session = self._headers.get(_SESSION) or uuid4().hex
        self.proxy = relay.proxy.joined(self._to_client, self._to_server, session)
        self._message: Message = {}
        self._events: asyncio.Queue[tuple[bytes, asyncio.Future[None]] | None] = asyncio.Queue()
        """Messages, each with what waits until it is written; None: no more come."""
        self._unread: set[asyncio.Future[None]] = set()
        self._is_gone = False
        self._last: str | None = None
        self._pause = _PAUSE

    async def answer(self) -> Response:
        """Answer the client."""
        if self._request.method != "POST":
            return await self._pass(b"")
        try:
            self._message = parse(await self._request.body())
            is_taken = self.proxy.takes(self._message)
        except MalformedMessageError as error:
            return JSONResponse(error.answer, 400)
        if not is_taken:
            return await self._pass(serialised(self._message))
        if "id" not in self._message:
            return Response(status_code=202)
        self.proxy.when_over(self._message["id"], lambda: self._events.put_nowait(None))
        return _Stream(self._messages_of_call(), self._left)

    async def _pass(self, content: bytes) -> Response:
        """Let the server answer."""
        headers = self._headers | (_routing(self._message) if content else {})
        asked = self._relay.http.build_request(
            self._request.method, self._relay.url, content=content, headers=headers
        )
        try:
            response = await self._relay.http.send(asked, stream=True)
            session = response.headers.get(_SESSION)
            passed = {_SESSION: session} if session else {}
            if _is_stream(response):
                return _Stream(self._relayed(response), lambda: None, headers=passed)
            async with aclosing(response):
                body = await _read(response)
        except httpx2.HTTPError as error:
            place = self._relay.url.partition("?")[0]  # a query may hold a key
            logger.warning("%s does not answer: %r", place, error)
            return JSONResponse(_error(self._message.get("id"), "the server does not answer"), 502)
        kind = response.headers.get("content-type")
        passed |= {"content-type": kind} if kind else {}
        return Response(self.proxy.passed(body) if body else b"", response.status_code, passed)

    async def _relayed(self, response: httpx2.Response) -> AsyncIterator[ServerSentEvent]:
        async with aclosing(response):
            with suppress(httpx2.HTTPError):  # the client takes it up again
                async for event in httpx2.EventSource(response, None):
                    line = self.proxy.passed(event.data.encode()) if event.data else b""
                    if line is not None:
                        yield ServerSentEvent(
                            line.decode().rstrip("\n"),
                            event=event.event,
                            id=event.id or None,
                            retry=event.retry,
                        )

    async def _to_client(self, line: bytes) -> None:
        """Return when a message is written; OSError if the client has gone."""
        if self._is_gone:
            raise BrokenPipeError
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unread.add(written)
        self._events.put_nowait((line, written))
        await written

    async def _messages_of_call(self) -> AsyncIterator[ServerSentEvent]:
        """Give the messages of a held call, up to its answer."""
        while (event := await self._events.get()) is not None:
            line, written = event
            message = json.loads(line)
            is_last = "method" not in message and message.get("id") == self._message["id"]
            yield ServerSentEvent(line.decode().rstrip("\n"), event="message")
            self._is_gone = is_last
            self._unread.discard(written)
            if not written.done():
                written.set_result(None)
            if is_last:
                return

    def _left(self) -> None:
        """Notice that the client has gone, unless it has the answer."""
        if self._is_gone:
            return
        self._is_gone = True
        for written in self._unread:
            if not written.done():
                written.set_exception(BrokenPipeError())
        # From 2026-07-28 on, to close the stream is to cancel the call.
        self.proxy.give_up(self._message["id"], is_cancelled=is_modern(self._message))

    async def _to_server(self, line: bytes) -> None:
        """Let the server run a call, and hand in all that it says until it has answered."""
        message = json.loads(line)
        own_id, method, failures = message["id"], "POST", 0
        headers = self._headers | _routing(message) | self._parameters(message)
        while True:
            try:
                async with self._relay.http.stream(
                    method, self._relay.url, content=line, headers=headers
                ) as response:
                    is_heard = await self._hear(response, own_id)
            except _UNREACHED as error:
                if method == "POST":
                    raise UnreachedError from error
                is_heard = False
            except httpx2.HTTPError:
                is_heard = False
            failures = 0 if is_heard else failures + 1
            if not self.proxy.runs(own_id):
                return
            if self._last is None or failures > _MOST_FAILURES:
                self.proxy.lose(own_id)
                return
            method, line, headers = "GET", b"", {**headers, _LAST_EVENT: self._last}
            await asyncio.sleep(self._pause)

    async def _hear(self, response: httpx2.Response, own_id: str) -> bool:
        """Hand in what the server says, up to its answer; False: it streams nothing."""
        if not _is_stream(response):
            if response.request.method == "POST":
                self._take_answer(response.status_code, await _read(response), own_id)
            return False
        is_heard = False
        async for event in httpx2.EventSource(response, None):
            self._last = event.id or self._last
            if event.retry is not None:
                self._pause = min(event.retry / 1000, LONGEST_PAUSE)
            is_heard = True
            with suppress(OSError):  # the client has gone, and the call goes on
                if event.data:
                    await self.proxy.from_server(event.data.encode())
            if not self.proxy.runs(own_id):
                break
        return is_heard

    def _take_answer(self, status: int, body: bytes, own_id: str) -> None:
        """Take an answer that is no stream; a server that may have broken down says nothing."""
        try:
            answer = members_of(read(body))
        except (ValueError, RecursionError):
            answer = {}
        if "method" not in answer and ("result" in answer or "error" in answer):
            self.proxy.passed(serialised({**answer, "id": own_id}))
        elif 300 <= status < 500:
            text = f"the server refuses this with HTTP {status}"
            self.proxy.passed(serialised(_error(own_id, text)))

    def _parameters(self, message: Message) -> dict[str, str]:
        """Make the headers that mirror arguments, which people may have changed."""
        params = members_of(message.get("params"))
        if message["method"] != "tools/call" or not is_modern(message):
            return {}
        mirrored = x_mcp_header_map(self.proxy.schema_of(str(params.get("name"))))
        return mcp_param_headers(mirrored, members_of(params.get("arguments")))


class _Stream(EventSourceResponse):
    """Server-sent events, which notice that they are not wanted any more."""

    def __init__(self, content: AsyncIterator[ServerSentEvent], left: Any, **more: Any) -> None:
        super().__init__(content, ping=int(BETWEEN), sep="\n", **more)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()


def _routing(message: Message) -> dict[str, str]:
    """Make the headers by which servers route a message, so that they say what it says."""
    headers = {"content-type": "application/json"}
    if "method" in message and is_modern(message):
        bearing = NAME_BEARING_METHODS.get(message["method"], "")
        name = members_of(message.get("params")).get(bearing)
        headers[MCP_METHOD_HEADER] = encode_header_value(message["method"])
        headers |= {MCP_NAME_HEADER: encode_header_value(name)} if isinstance(name, str) else {}
    return headers


def _is_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.is_success and bool(kind == _EVENTS)


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > LARGEST_ANSWER:
            raise httpx2.ReadError("the answer is too large", request=response.request)
    return bytes(body)


def _error(message_id: Any, text: str) -> Message:
    error = {"code": REFUSED, "message": f"Countersign: {text}."}
    return {"jsonrpc": "2.0", "id": message_id, "error": error}


async def _nowhere(_: bytes) -> None:
    """Take messages of nobody."""
