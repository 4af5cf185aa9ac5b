"""Connect to Slack: clients and the bot's identity."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.config.settings import Settings
from bot.errors import SettingsError
from bot.observability.events import TellEvent, nobody
from bot.observability.instrument import MeteredClient
from bot.slack.calls import retry_after, slack_fault

logger = logging.getLogger(__name__)

QUICK_S = 2
"""Longest time of a Slack call while a person waits for a response, in seconds."""
LOOKUP_S = 5
"""Longest time of a look-up in Slack, in seconds."""
PATIENT_S = 10
"""Longest time of any other Slack call, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The bot's identity, from `auth.test`.

    Attributes:
        team_id: The workspace where the app is installed.
        bot_user_id: User id that people mention.
        bot_id: Bot id.
        enterprise_id: The organization on Enterprise Grid, or empty.
        team: Name of the workspace; empty if unknown.
    """

    team_id: str
    bot_user_id: str
    bot_id: str
    enterprise_id: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """Access to Slack.

    Attributes:
        token: The bot token.
        signing_secret: Verifies requests in HTTP mode; empty in Socket Mode.
        api_url: Base URL of the Web API, with a trailing slash.
        identity: The bot's identity.
    """

    token: str
    signing_secret: str
    api_url: str
    identity: Identity

    def __repr__(self) -> str:
        return f"Slack(api_url={self.api_url!r}, identity={self.identity!r})"

    def client(
        self,
        *,
        timeout_s: int,
        tell: TellEvent = nobody,
        session: ClientSession | None = None,
    ) -> AsyncWebClient:
        """Return a client that never retries by itself.

        Args:
            timeout_s: Timeout of a call in seconds; a session's own timeout has priority.
            tell: Receives the events of each call.
            session: Used for all calls; the caller closes it.
        """
        made = MeteredClient(
            token=self.token,
            base_url=self.api_url,
            timeout=timeout_s,
            session=session,
            retry_handlers=[],
        )
        made.tell = tell
        return made


def lookup_session() -> ClientSession:
    """Open a session for look-ups while a person waits; without cookies."""
    return ClientSession(timeout=ClientTimeout(total=LOOKUP_S), cookie_jar=DummyCookieJar())


def _not_reached(settings: Settings, fault: str) -> SettingsError:
    if fault.endswith(("auth", "_token", "revoked")):
        remedy = "check the token on the app's page (OAuth & Permissions)"
        return SettingsError("SLACK_BOT_TOKEN", f"Slack does not take the bot in: {fault}", remedy)
    is_set = "slack_api_url" in settings.model_fields_set
    return SettingsError(
        "SLACK_API_URL" if is_set else "Slack",
        f"the bot can't reach Slack: {fault}",
        f"check {'the address and ' if is_set else ''}the network of this machine",
    )


async def reach_slack(
    settings: Settings, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Slack:
    """Ask Slack for the bot's identity; wait for rate limits.

    Raises:
        SettingsError: The token is invalid, or Slack does not respond.
    """
    token = settings.slack_bot_token.get_secret_value()
    client = AsyncWebClient(token=token, base_url=settings.slack_api_url, timeout=10)
    answer: AsyncSlackResponse | None = None
    while answer is None:
        try:
            answer = await client.auth_test()
        except (SlackClientError, ClientError, OSError, TimeoutError, AttributeError) as error:
            wait = retry_after(error)
            if wait is None:
                raise _not_reached(settings, slack_fault(error)) from error
            logger.info("Slack's rate limit: waiting %s", wait, extra={"action": "lookup_waits"})
            await sleep(wait.total_seconds())
    secret = settings.slack_signing_secret
    return Slack(
        token=token,
        signing_secret=secret.get_secret_value() if secret is not None else "",
        api_url=settings.slack_api_url,
        identity=Identity(
            team_id=str(answer["team_id"]),
            bot_user_id=str(answer["user_id"]),
            bot_id=str(answer.get("bot_id") or ""),
            enterprise_id=str(answer.get("enterprise_id") or ""),
            team=str(answer.get("team") or ""),
        ),
    )
