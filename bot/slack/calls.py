"""Slack API calls: destinations, and errors without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.layout.blocks import Card
from bot.records.approval import Approval

BATCH_EVENT = "countersign_batch"
"""Event type in the metadata of a batch card."""
MOST_PATIENCE = timedelta(days=1)
"""Longest wait that the bot accepts from Slack's `Retry-After`."""
_UNCLEAR = timedelta(minutes=1)
"""Delay if Slack's `Retry-After` is not a number."""

_PARTLY = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "unknown_error"}
)
"""Error codes after which a call may have taken effect."""


ANSWER_S = 5
"""Longest time of a reply through a `response_url`, in seconds."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Checks that a `response_url` belongs to Slack, because it comes with a payload."""

    api_url: str

    def are_slacks(self, address: str) -> bool:
        """Whether a URL is Slack's: its own host for replies, or the API's host."""
        api, other = urlsplit(self.api_url), urlsplit(address)
        try:
            there = (other.scheme, other.hostname, other.port)
            here = (api.scheme, api.hostname, api.port)
        except ValueError:  # invalid port
            return False
        if other.username is not None or other.password is not None:
            return False
        return there in {here, ("https", f"hooks.{api.hostname}", None)}


async def post_json(client: AsyncWebClient, address: str, data: object) -> None:
    """Send JSON to a URL from a payload, without following redirects.

    Raises:
        aiohttp.ClientError: The request failed; also OSError and TimeoutError.
    """
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(
            address, json=data, proxy=client.proxy, ssl=client.ssl or True, allow_redirects=False
        ) as response,
    ):
        if response.status != HTTPStatus.OK:
            raise aiohttp.ClientResponseError(
                response.request_info,
                (),
                status=response.status,
                message="not taken",
                headers=response.headers,
            )


def slack_fault(error: BaseException) -> str:
    """Return Slack's error code, or the kind of network error."""
    if isinstance(error, SlackApiError):
        # A response that is not JSON is not Slack's, and has no fields.
        read = getattr(error.response, "get", None)
        code = read("error") if callable(read) else None
        return str(code or "unknown_error")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientError | OSError):
        return f"connection failed ({type(error).__name__})"
    return type(error).__name__


def took_no_effect(error: BaseException) -> bool:
    """Whether Slack refused the call, so that certainly nothing was done."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return True
    if not isinstance(error, SlackApiError) or _status(error) >= 500:
        return False
    return slack_fault(error) not in _PARTLY


def may_pass(error: BaseException) -> bool:
    """Whether the same call may soon succeed. After a timeout it is not repeated."""
    if isinstance(error, SlackApiError):
        is_busy = _status(error) >= 500 or slack_fault(error) in _PARTLY
        return is_busy or retry_after(error) is not None
    return isinstance(error, aiohttp.ClientError | OSError) and not isinstance(error, TimeoutError)


def retry_after(error: BaseException) -> timedelta | None:
    """Return Slack's retry delay, or None.

    Source: https://docs.slack.dev/apis/web-api/rate-limits (429 and Retry-After, in seconds)
    """
    if isinstance(error, aiohttp.ClientResponseError):
        if error.status != HTTPStatus.TOO_MANY_REQUESTS:
            return None
        headers: Mapping[str, Any] = error.headers or {}
    elif isinstance(error, SlackApiError):
        if _status(error) != 429 and slack_fault(error) not in {"ratelimited", "rate_limited"}:
            return None
        headers = getattr(error.response, "headers", None) or {}
    else:
        return None
    header = next((value for name, value in headers.items() if name.lower() == "retry-after"), "1")
    try:
        seconds = float(header[0] if isinstance(header, list) else header)
    except (TypeError, ValueError, IndexError):
        return _UNCLEAR
    if not seconds >= 0:
        return _UNCLEAR
    return timedelta(seconds=min(max(seconds, 1.0), MOST_PATIENCE.total_seconds()))


def _status(error: SlackApiError) -> int:
    return int(getattr(error.response, "status_code", 0) or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Putting:
    """Place and identity of a message that is neither a card nor an agent's text.

    Attributes:
        event: Event type in its metadata.
        record_id: Id of its record, in its metadata.
        channel_id: The channel; a user id for a direct message.
        thread_ts: The thread; empty for the channel itself.
        key: Tells the messages of one event and record apart, in its metadata; may be empty.
        ts: Its `ts`, if known.
        mentions: Ids of its recipients.
        looks: Whether to search for an earlier post outside of threads, too.
        is_last: Whether a deleted message is not posted again.
        stays: Whether an existing message stays as it is: others may have changed it.
    """

    event: str
    record_id: str
    channel_id: str
    thread_ts: str = ""
    key: str = ""
    ts: str = ""
    mentions: Sequence[str] = ()
    looks: bool = False
    is_last: bool = False
    stays: bool = False


class Poster(Protocol):
    """Posts and updates messages."""

    async def put(self, putting: Putting, card: Card) -> str:
        """Update the message at its `ts`, or post it; return the `ts`."""
        ...

    async def link(self, approval: Approval) -> str:
        """Return the URL of a card; empty if unknown."""
        ...
