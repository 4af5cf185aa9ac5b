"""Payloads for the app, sent as signed HTTP requests."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import urlencode

import aiohttp

from slack_sandbox.workspace.records import Payload

Kind = Literal["events_api", "interactive", "slash_commands"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppReply:
    """The app's reply to a payload."""

    ok: bool
    body: Any = None
    """JSON, text, or None."""
    reason: str = ""
    """The reason of a failure, in the words of x-slack-retry-reason, or `not_connected`."""
    is_final: bool = False
    """Whether the app asked for no retries."""
    via: object = None
    """The connection that was used, if there were several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A payload and its delivery attempt."""

    kind: Kind
    payload: Payload
    attempt: int = 0
    reason: str = ""
    """The reason why the last attempt failed."""
    avoid: object = None
    """The connection of the last attempt; the next attempt prefers another one."""

    @property
    def name(self) -> str:
        """The event with its subtype, the type of the interaction, or the command."""
        if self.kind == "slash_commands":
            return str(self.payload.get("command", ""))
        if self.kind == "interactive":
            return str(self.payload.get("type", ""))
        event = self._part("event")
        return ".".join(str(event[part]) for part in ("type", "subtype") if event.get(part))

    @property
    def channel(self) -> str:
        """The id of the payload's conversation; empty without one."""
        if self.kind == "slash_commands":
            return str(self.payload.get("channel_id", ""))
        if self.kind == "interactive":
            return str(self._part("channel").get("id", ""))
        return str(self._part("event").get("channel", ""))

    @property
    def user(self) -> str:
        """The id of the person who clicked or typed; empty for events."""
        return str(self.payload.get("user_id") or self._part("user").get("id") or "")

    @property
    def key(self) -> str:
        """The event id or the trigger id, which all attempts share."""
        return str(self.payload.get("event_id") or self.payload.get("trigger_id") or "")

    def _part(self, name: str) -> Payload:
        """Return an object of the payload; empty if it is missing, as in payloads of tests."""
        part = self.payload.get(name)
        return part if isinstance(part, dict) else {}


class Transport(Protocol):
    """A transport to the app."""

    @property
    def is_open(self) -> bool:
        """Whether the transport can be used now."""

    async def send(self, parcel: Parcel) -> AppReply:
        """Send a payload and wait for the answer."""


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

    async def send(self, parcel: Parcel) -> AppReply:
        """Post a payload and read the answer."""
        url = self._url()
        if url is None:
            return AppReply(ok=False, reason="not_connected")
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
            return AppReply(ok=False, reason="http_timeout")
        except aiohttp.ClientError:
            return AppReply(ok=False, reason="connection_failed")

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


def _encoded(parcel: Parcel) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    if parcel.kind == "events_api":
        return json.dumps(parcel.payload).encode(), "application/json"
    if parcel.kind == "interactive":
        return urlencode({"payload": json.dumps(parcel.payload)}).encode(), form
    return urlencode(parcel.payload).encode(), form


async def _reply(response: aiohttp.ClientResponse) -> AppReply:
    text = await response.text()
    final = response.headers.get("x-slack-no-retry") == "1"
    if not 200 <= response.status < 300:
        return AppReply(ok=False, reason="http_error", is_final=final)
    return AppReply(ok=True, body=_decoded(response.content_type, text))


def _decoded(content_type: str, text: str) -> Any:
    if not text:
        return None
    if content_type == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
