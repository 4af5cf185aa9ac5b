"""The slash command: parse, execute, respond privately."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import InvalidInputError, UserFacingError
from bot.ports.people import Actor
from bot.slack.modals import window_of
from bot.slack.payloads import actor_of
from bot.slack.responding import Responder
from bot.slack.slash_commands.answers import Asker, TypedAnswer
from bot.slack.slash_commands.freezes import with_channel_ids
from bot.slack.slash_commands.words import answer, marked
from bot.words.typed import typed_text

COMMAND = "/countersign"
_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")


def register(
    app: AsyncApp,
    *,
    responder: Responder,
    client: AsyncWebClient,
    asker: Callable[[Actor], Asker],
) -> None:
    """Register the listener of the command."""

    @app.command(COMMAND)
    async def on_command(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        text = body.get("text")
        typed = typed_text(with_channel_ids(text)) if isinstance(text, str) else ""
        try:
            actor, window = actor_of(context, body), window_of(client, body)
            typing = replace(asker(actor), window=window, channel_id=channel_of(body))
            answered = await responder.in_time(_answer(typing, body, typed))
        except UserFacingError as error:
            answered = TypedAnswer(text=str(error))
        if not answered.text:  # a form is open
            await ack()
            return
        blocks = [*marked(answered, typed)] or None
        await ack(text=answered.text, blocks=blocks, response_type="ephemeral")


def channel_of(body: Mapping[str, Any]) -> str:
    """Return the channel where a command was typed; empty if unknown."""
    channel_id = body.get("channel_id")
    return channel_id if isinstance(channel_id, str) and _CHANNEL.fullmatch(channel_id) else ""


async def _answer(asker: Asker, body: Mapping[str, Any], typed: str) -> TypedAnswer:
    """Execute what a person typed.

    Raises:
        InvalidInputError: Slack does not send such a payload.
    """
    team_id = body.get("team_id")
    if not isinstance(team_id, str) or not team_id or not asker.actor.user_id:
        raise InvalidInputError("this command")
    return await answer(asker, typed)
