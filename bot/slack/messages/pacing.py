"""Rate-limited calls to Slack."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import aiohttp
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError
from bot.leases import TURN_PATIENCE
from bot.slack.calls import retry_after, slack_fault, took_no_effect
from bot.slack.ratelimit import Pacer, TooSoonError

logger = logging.getLogger(__name__)

NO_PATIENCE = timedelta(0)
OPTIONAL = frozenset(
    {
        "agents.sessions.setStatus",
        "assistant.threads.setStatus",
        "assistant.threads.setSuggestedPrompts",
        "chat.startStream",
        "reactions.add",
        "reactions.remove",
    }
)
"""Methods that a workspace or a token may lack, and that the bot replaces or leaves out."""
_WITHOUT = frozenset({"missing_scope", "not_allowed_token_type"})
Arguments = dict[str, Any]


class PacedCalls:
    """Rate-limited calls of one workspace; detects when Slack refuses the app.

    Args:
        client: Makes the calls; without retries after a lost connection.
        pacer: Keeps Slack's rate limits.
        healed: Called when Slack accepts a call after it had refused the app.
    """

    def __init__(self, client: AsyncWebClient, pacer: Pacer, healed: Callable[[], None]) -> None:
        self._client = client
        self._pacer = pacer
        self._healed = healed
        self._is_refused = False

    @property
    def is_refused(self) -> bool:
        return self._is_refused

    async def try_call(
        self, method: str, channel_id: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Call an optional method.

        A missing scope does not mean that Slack refuses the app.

        Raises:
            DeliveryError: Slack refused or did not respond, or the rate limit is too far exceeded.
        """

        async def ready() -> Arguments:
            return dict(arguments)

        return await self._send(method, channel_id, ready, patience=NO_PATIENCE, tries=1)

    async def _call(
        self, method: str, arguments: Arguments, *, patience: timedelta = TURN_PATIENCE
    ) -> dict[str, Any]:
        async def ready() -> Arguments:
            return arguments

        return await self._send(method, str(arguments["channel"]), ready, patience=patience)

    async def _send(
        self,
        method: str,
        channel_id: str,
        make: Callable[[], Awaitable[Arguments | None]],
        *,
        patience: timedelta = TURN_PATIENCE,
        tries: int = 2,
    ) -> dict[str, Any]:
        """Make a call within the rate limit; its arguments are built only then.

        Raises:
            DeliveryError: Slack refused or did not respond, or the rate limit is too far exceeded.
        """
        while True:
            await self._wait(method, channel_id, patience)
            arguments = await make()
            if arguments is None:
                return {}
            try:
                return await self._ask(method, arguments)
            except DeliveryError as error:
                if error.retry_after is None:
                    raise
                self._pacer.hold(method, channel_id, error.retry_after)
                tries -= 1
                if not tries:
                    raise

    async def _wait(self, method: str, channel_id: str, patience: timedelta) -> None:
        try:
            await self._pacer.slot(method, channel_id, patience=patience)
        except TooSoonError as error:
            raise DeliveryError(
                method, "has to wait its turn", retry_after=error.wait, took_no_effect=True
            ) from error

    async def _ask(self, method: str, arguments: Arguments) -> dict[str, Any]:
        try:
            if method.startswith("chat.") and method != "chat.getPermalink":
                answer = await self._client.api_call(method, json=arguments)
            else:
                answer = await self._client.api_call(method, params=arguments)
        except (SlackClientError, aiohttp.ClientError, OSError, TimeoutError) as error:
            fault = DeliveryError(
                method,
                slack_fault(error),
                retry_after=retry_after(error),
                took_no_effect=took_no_effect(error),
            )
            is_optional = method in OPTIONAL and fault.reason in _WITHOUT
            self._is_refused = self._is_refused or (fault.is_refusal and not is_optional)
            raise fault from error
        except AttributeError as error:  # slack_sdk fails on responses that are not JSON
            raise DeliveryError(method, "an answer that is not JSON") from error
        data = answer.data
        if not isinstance(data, dict):
            raise DeliveryError(method, "an answer that is not JSON")
        if self._is_refused:
            self._is_refused = False
            self._healed()
        if arguments.get("thread_ts"):
            await self._check_is_inside(method, data)
        return data

    async def _check_is_inside(self, method: str, answer: Mapping[str, Any]) -> None:
        """Delete a reply that Slack posted into the channel, because its thread was deleted.

        Source: https://github.com/slack-go/slack/issues/1571

        Raises:
            DeliveryError: It was outside of its thread.
        """
        message, place = answer.get("message"), ("channel", "ts")
        if not isinstance(message, dict) or message.get("thread_ts"):
            return
        try:
            await self._call("chat.delete", {name: str(answer.get(name)) for name in place})
        except DeliveryError as error:
            logger.warning(
                "could not delete a message that Slack posted outside of its thread: %s",
                error,
                extra={"action": "removal_failed"},
            )
        raise DeliveryError(method, "thread_not_found", took_no_effect=True)
