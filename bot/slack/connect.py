"""The access to Slack: its client, who the bot is there, and what is looked up in it."""

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
"""Longest time of a Slack call while a person waits for the answer to a click, in seconds."""
LOOKUP_S = 5
"""Longest time of a look-up in Slack, in seconds."""
PATIENT_S = 10
"""Longest time of any other Slack call, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The bot's identity, as `auth.test` says.

    Attributes:
        team_id: The workspace where the app is installed.
        bot_user_id: Its user id, the one that people mention.
        bot_id: Its bot id.
        enterprise_id: The organisation on Enterprise Grid; empty without one.
        team: Name of the workspace; empty where it is not known.
    """

    team_id: str
    bot_user_id: str
    bot_id: str
    enterprise_id: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """The access to Slack.

    Attributes:
        token: The bot token.
        signing_secret: Signs requests in HTTP mode; empty in Socket Mode.
        api_url: Base address of the Web API, with a slash at the end.
        identity: Who the bot is.
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
        """A client that never repeats a call by itself, whatever became of it.

        Args:
            timeout_s: Seconds that a call may take; the session's own limit holds where it has one.
            tell: Takes the events of each call.
            session: Is used for all calls, and closed by whoever opened it.
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
    """Open a session for what is looked up while a person waits; it keeps no cookies."""
    return ClientSession(timeout=ClientTimeout(total=LOOKUP_S), cookie_jar=DummyCookieJar())


def _not_reached(fault: str) -> SettingsError:
    return SettingsError(
        "SLACK_BOT_TOKEN" if fault.endswith(("auth", "_token", "revoked")) else "SLACK_API_URL",
        f"Slack does not take the bot in: {fault}",
        "check the token on the app's page (OAuth & Permissions) and the address of the API",
    )


async def reach_slack(
    settings: Settings, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> Slack:
    """Ask Slack who the bot is; a rate limit is waited for.

    Args:
        settings: Token and address.
        sleep: Waits for some seconds.

    Raises:
        SettingsError: The token is not valid, or Slack does not answer.
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
                raise _not_reached(slack_fault(error)) from error
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
