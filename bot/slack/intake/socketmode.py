"""Socket Mode: Bolt's handler, which also answers malformed envelopes."""

from __future__ import annotations

import logging
from contextlib import nullcontext

from aiohttp import ClientError
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from bot.slack.calls import may_pass, took_no_effect
from bot.slack.intake.http import UNREADABLE, Answering

logger = logging.getLogger(__name__)

PING_S = 4
"""Seconds between pings, and before reconnecting."""


class SocketMode(AsyncSocketModeHandler):
    """A Socket Mode connection."""

    def __init__(
        self, bolt: AsyncApp, app_token: str, *, answering: Answering = nullcontext
    ) -> None:
        super().__init__(bolt, app_token, ping_interval=PING_S)
        self._answering = answering
        self._app_token = app_token

    async def open(self) -> None:
        """Connect, retrying until it succeeds or Slack refuses the token.

        Raises:
            SlackApiError: Slack refuses the token.
        """
        client = self.client
        try:
            answer = await client.web_client.apps_connections_open(app_token=self._app_token)
            client.wss_uri = str(answer["url"])
        except (SlackClientError, ClientError, OSError, AttributeError) as error:
            if took_no_effect(error) and not may_pass(error):
                raise
        await client.connect()  # type: ignore[no-untyped-call] # not typed in slack_sdk

    async def handle(  # type: ignore[override] # as in Bolt's own
        self, client: SocketModeClient, req: SocketModeRequest
    ) -> None:
        """Pass an envelope to Bolt; acknowledge malformed ones, or they are sent again."""
        with self._answering():
            try:
                await super().handle(client, req)
            except UNREADABLE as error:
                logger.warning(
                    "an envelope that cannot be read: %s",
                    type(error).__name__,
                    extra={"action": "request_refused"},
                )
                await client.send_socket_mode_response(SocketModeResponse(req.envelope_id))
            except ConnectionError as error:  # a stop, or a lost connection; events are sent again
                logger.info(
                    "an envelope was not acknowledged: %s",
                    type(error).__name__,
                    extra={"action": "request_refused"},
                )
