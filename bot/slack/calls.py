"""Calls to Slack: where messages go, and faults in a few words without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.layout.blocks import Card
from storage.records import Approval

BATCH_EVENT = "countersign_batch"
"""The event type of a card of several calls, in its metadata."""
MOST_PATIENCE = timedelta(days=1)
"""Longest wait that the bot accepts from Slack's `Retry-After`."""
_UNCLEAR = timedelta(minutes=1)
"""The wait where Slack's word for it is no number of seconds."""

_PARTLY = frozenset(
    {"fatal_error", "internal_error", "request_timeout", "service_unavailable", "unknown_error"}
)
"""Codes with which a call may have taken effect all the same."""


ANSWER_S = 5
"""Seconds that an answer to a click may take by its own address."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The check that an answer's address is Slack's: it comes with a payload, and is called."""

    api_url: str

    def are_slacks(self, address: str) -> bool:
        """Whether an answer may be sent there: to Slack's own host for it, or to the API's."""
        api, other = urlsplit(self.api_url), urlsplit(address)
        try:
            there = (other.scheme, other.hostname, other.port)
            here = (api.scheme, api.hostname, api.port)
        except ValueError:  # a port that is no number
            return False
        if other.username is not None or other.password is not None:
            return False
        return there in {here, ("https", f"hooks.{api.hostname}", None)}


async def post_json(client: AsyncWebClient, address: str, data: object) -> None:
    """Send JSON data to an address that came with a payload; it is followed nowhere else.

    Raises:
        aiohttp.ClientError: It was not taken; also OSError and TimeoutError.
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
                response.request_info, (), status=response.status, message="not taken"
            )


def slack_fault(error: BaseException) -> str:
    """Slack's error code, or the kind of the network fault."""
    if isinstance(error, SlackApiError):
        # With an answer that is not JSON the response is not Slack's, and has no fields.
        read = getattr(error.response, "get", None)
        code = read("error") if callable(read) else None
        return str(code or "unknown_error")
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientError | OSError):
        return f"connection failed ({type(error).__name__})"
    return type(error).__name__


def took_no_effect(error: BaseException) -> bool:
    """Whether Slack said that it refuses; only then is it certain that nothing was done."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return True
    if not isinstance(error, SlackApiError) or _status(error) >= 500:
        return False
    return slack_fault(error) not in _PARTLY


def may_pass(error: BaseException) -> bool:
    """Whether the same call may succeed in a moment; a call that took too long already is not."""
    if isinstance(error, SlackApiError):
        is_busy = _status(error) >= 500 or slack_fault(error) in _PARTLY
        return is_busy or retry_after(error) is not None
    return isinstance(error, aiohttp.ClientError | OSError) and not isinstance(error, TimeoutError)


def retry_after(error: BaseException) -> timedelta | None:
    """Return the time that Slack asks us to wait; None when it does not.

    Source:
        https://docs.slack.dev/apis/web-api/rate-limits (429 and Retry-After, in seconds)
    """
    if not isinstance(error, SlackApiError):
        return None
    if _status(error) != 429 and slack_fault(error) not in {"ratelimited", "rate_limited"}:
        return None
    headers = getattr(error.response, "headers", None) or {}
    found = next((value for name, value in headers.items() if name.lower() == "retry-after"), "1")
    try:
        seconds = float(found[0] if isinstance(found, list) else found)
    except (TypeError, ValueError, IndexError):
        return _UNCLEAR
    if not seconds >= 0:
        return _UNCLEAR
    return timedelta(seconds=min(max(seconds, 1.0), MOST_PATIENCE.total_seconds()))


def _status(error: SlackApiError) -> int:
    return int(getattr(error.response, "status_code", 0) or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Putting:
    """A message that is no card and no text of the agent: where it stands, and how it is found.

    Attributes:
        event: The kind of it, in its metadata.
        record_id: Its record, in its metadata.
        channel_id: The channel; a user id for a direct message.
        thread_ts: The thread; empty for the channel itself.
        ts: Its `ts`, where it is known.
        mentions: Ids of those whom it is for.
        looks: Whether it is searched outside of threads, too: it may be there already.
        is_last: Whether nothing is posted in its place once it is gone.
        stays: Whether one that is there already stays as it is: others may have changed it since.
    """

    event: str
    record_id: str
    channel_id: str
    thread_ts: str = ""
    ts: str = ""
    mentions: Sequence[str] = ()
    looks: bool = False
    is_last: bool = False
    stays: bool = False


class Poster(Protocol):
    """Shows messages in Slack."""

    async def put(self, putting: Putting, card: Card) -> str:
        """Show one over the message at its `ts`, or post it; return the `ts`."""
        ...

    async def link(self, approval: Approval) -> str:
        """The address of a card; empty when Slack does not tell it."""
        ...
