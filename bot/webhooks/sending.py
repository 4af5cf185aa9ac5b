"""One attempt to deliver an event: sign it, post it, and read what the receiver answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import aiohttp
from standardwebhooks import Webhook
from yarl import URL

from bot.webhooks.addresses import AddressRefusedError, AddressRules, JudgingResolver

CONNECT_S = 5.0
"""Longest time to connect to the receiver of a webhook, in seconds."""
WHOLE_S = 20.0
"""Longest time of one attempt to deliver an event, in seconds."""
MOST_READ = 64 * 1024
"""Maximum size of a receiver's answer that is read, in bytes."""
MOST_KEPT = 100
"""Maximum length of a receiver's answer that is kept, in characters."""
LONGEST_WISH_S = 3_600
"""Longest `Retry-After` of a receiver that is obeyed, in seconds."""


def signed_headers(
    secrets: Sequence[str], event_id: str, body: str, *, now_ms: int
) -> dict[str, str]:
    """Return the headers of an attempt, with a signature for each secret.

    Args:
        secrets: The secrets in force, the newest first.
        event_id: Id of the event: the same for each attempt.
        body: The body.
        now_ms: Time of the attempt.

    Source:
        https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    """
    at = datetime.fromtimestamp(now_ms // 1_000, UTC)
    signatures = [Webhook(secret).sign(event_id, at, body) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(now_ms // 1_000),
        "webhook-signature": " ".join(signatures),
    }


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The result of an attempt.

    Attributes:
        status: HTTP status; 0 without an answer.
        error: Why it failed, for people; empty after a success.
        retry_after_s: Seconds after which the receiver wants the next attempt; None if it does not
            say.
    """

    status: int = 0
    error: str = ""
    retry_after_s: int | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has the event."""
        return 200 <= self.status < 300 and not self.error


class PostsWebhooks(Protocol):
    """Posts an event to an address that its rules allow."""

    @property
    def rules(self) -> AddressRules:
        """The addresses that are allowed."""
        ...

    async def post(self, url: URL, body: str, headers: dict[str, str]) -> WebhookAnswer:
        """Post once; a failure is an answer."""
        ...


@dataclass(frozen=True, slots=True)
class HttpPoster:
    """Posts over HTTP. Each attempt has its own connection, whose address is judged.

    With a proxy, this process connects to the proxy alone, which judges in its place.

    Args:
        rules: The addresses that are allowed.
        version: Version of the bot, for `User-Agent`.
    """

    rules: AddressRules
    version: str

    async def post(self, url: URL, body: str, headers: dict[str, str]) -> WebhookAnswer:
        """Post once; a failure is an answer. Redirects are not followed, cookies not kept."""
        try:
            async with (
                aiohttp.ClientSession(
                    connector=self._connector(url.scheme),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=WHOLE_S, connect=CONNECT_S),
                    trust_env=False,
                    auto_decompress=False,
                ) as session,
                session.post(
                    url,
                    data=body.encode(),
                    headers={"User-Agent": f"Countersign/{self.version}", **headers},
                    allow_redirects=False,
                    proxy=self.rules.proxy,
                ) as response,
            ):
                return await _answer_of(response)
        except TimeoutError:
            return WebhookAnswer(error="no answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return WebhookAnswer(error=_fault_of(error))

    def _connector(self, scheme: str) -> aiohttp.TCPConnector:
        if self.rules.proxy is not None:
            return aiohttp.TCPConnector(force_close=True)
        resolver = JudgingResolver(self.rules, scheme)
        return aiohttp.TCPConnector(
            resolver=resolver,
            use_dns_cache=False,
            force_close=True,
            socket_factory=resolver.open_socket,
        )


async def _answer_of(response: aiohttp.ClientResponse) -> WebhookAnswer:
    if 200 <= response.status < 300:
        return WebhookAnswer(response.status)
    read = b""
    while len(read) < MOST_READ and (part := await response.content.readany()):
        read += part
    text = read[: 4 * MOST_KEPT].decode(errors="replace")[:MOST_KEPT]
    shown = "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)
    wish = response.headers.get("Retry-After", "")
    is_number = response.status in {429, 503} and wish.isascii() and wish.isdigit()
    wish_s = min(int(wish[:9]), LONGEST_WISH_S) if is_number else None
    return WebhookAnswer(response.status, f"HTTP {response.status} {shown}".strip(), wish_s)


def _fault_of(error: Exception) -> str:
    """Return the reason of a failure, without addresses: the refusal, or the kind of the error."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused: HTTP {error.status}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefusedError):
            return f"not allowed: {cause}"
        cause = cause.__cause__ or cause.__context__
    return f"no connection: {type(error).__name__}"
