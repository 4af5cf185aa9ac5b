"""How the app hears of things: over a socket if one is open, otherwise by signed HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import urlencode

import aiohttp

from bot.sandbox.records import Payload
from bot.sandbox.tasks import Tasks

Kind = Literal["events_api", "interactive", "slash_commands"]
RETRY_DELAYS: Sequence[float] = (0, 60, 300)
"""Seconds before each retry of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the app made of a payload."""

    ok: bool
    body: Any = None
    """JSON, text, or None."""
    reason: str = ""
    """If not ok: why, in the words of x-slack-retry-reason, or `not_connected`."""
    is_final: bool = False
    """The app asked for no retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One payload on its way."""

    kind: Kind
    payload: Payload
    attempt: int = 0
    reason: str = ""
    """Why the attempt before failed."""


class Transport(Protocol):
    """A way to the app."""

    @property
    def is_open(self) -> bool:
        """Whether it can be used now."""

    async def send(self, parcel: Parcel) -> Reply:
        """Hand a payload over and wait for the answer."""


class HttpTransport:
    """Signed requests to the app's address.

    Source:
        https://docs.slack.dev/authentication/verifying-requests-from-slack
    """

    def __init__(
        self,
        url: Callable[[], str | None],
        secret: str,
        *,
        clock: Callable[[], float],
        patience: float,
    ) -> None:
        self._url = url
        self._secret = secret.encode()
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=patience)
        self._session: aiohttp.ClientSession | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is an address to send to."""
        return self._url() is not None

    async def send(self, parcel: Parcel) -> Reply:
        """Post a payload and read the answer."""
        url = self._url()
        if url is None:
            return Reply(ok=False, reason="not_connected")
        body, content_type = _encoded(parcel)
        headers = {**self._signature(body), "Content-Type": content_type}
        if parcel.attempt:
            headers["X-Slack-Retry-Num"] = str(parcel.attempt)
            headers["X-Slack-Retry-Reason"] = parcel.reason
        try:
            session = self._open_session()
            async with session.post(url, data=body, headers=headers) as response:
                return await _reply(response)
        except TimeoutError:
            return Reply(ok=False, reason="http_timeout")
        except aiohttp.ClientError:
            return Reply(ok=False, reason="connection_failed")

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        return self._session

    def _signature(self, body: bytes) -> dict[str, str]:
        timestamp = str(int(self._clock()))
        signed = f"v0:{timestamp}:".encode() + body
        digest = hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}


class Delivery:
    """Sends payloads by the first transport that is open; events again if that failed."""

    def __init__(
        self,
        transports: Sequence[Transport],
        tasks: Tasks,
        *,
        delays: Sequence[float] = RETRY_DELAYS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transports = transports
        self._tasks = tasks
        self._delays = delays
        self._sleep = sleep
        self.lost: list[Payload] = []
        """Events that were given up."""

    @property
    def is_open(self) -> bool:
        """Whether the app can be reached, as far as one knows."""
        return any(transport.is_open for transport in self._transports)

    async def ask(self, kind: Kind, payload: Payload) -> Reply:
        """Send an interaction or a command, once."""
        return await self._send(Parcel(kind=kind, payload=payload))

    def announce(self, payload: Payload) -> None:
        """Send an event, up to four times, in the background."""
        self._tasks.start(self._announce(payload))

    async def _announce(self, payload: Payload) -> None:
        reply = await self._send(Parcel(kind="events_api", payload=payload))
        for attempt, delay in enumerate(self._delays, start=1):
            if reply.ok or reply.is_final:
                return
            await self._sleep(delay)
            reason = reply.reason
            reply = await self._send(
                Parcel(kind="events_api", payload=payload, attempt=attempt, reason=reason)
            )
        if not reply.ok:
            self.lost.append(payload)

    async def _send(self, parcel: Parcel) -> Reply:
        for transport in self._transports:
            if transport.is_open:
                return await transport.send(parcel)
        return Reply(ok=False, reason="not_connected")


def _encoded(parcel: Parcel) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    if parcel.kind == "events_api":
        return json.dumps(parcel.payload).encode(), "application/json"
    if parcel.kind == "interactive":
        return urlencode({"payload": json.dumps(parcel.payload)}).encode(), form
    return urlencode(parcel.payload).encode(), form


async def _reply(response: aiohttp.ClientResponse) -> Reply:
    text = await response.text()
    final = response.headers.get("x-slack-no-retry") == "1"
    if not 200 <= response.status < 300:
        return Reply(ok=False, reason="http_error", is_final=final)
    return Reply(ok=True, body=_decoded(response.content_type, text))


def _decoded(content_type: str, text: str) -> Any:
    if not text:
        return None
    if content_type == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
