"""Commands after a mention in a thread, where Slack has no slash commands."""

from __future__ import annotations

import logging

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.calls import slack_fault
from bot.slack.listeners.slash_commands.answers import Asker
from bot.slack.listeners.slash_commands.words import answer, is_word
from bot.threads.message_event import Incoming, plain_text
from storage.errors import StorageError

logger = logging.getLogger(__name__)


def word_of(incoming: Incoming) -> str:
    """Return the command in a reply; empty if the reply is for the agent."""
    is_reply = incoming.thread_ts != incoming.ts
    if not is_reply or not incoming.is_mention:
        return ""
    if not incoming.text.lstrip().startswith(f"<@{incoming.bot_user_id}"):
        return ""
    typed = plain_text(incoming.text, incoming.bot_user_id)
    return typed if is_word(typed) else ""


async def answer_word(client: AsyncWebClient, asker: Asker, incoming: Incoming, typed: str) -> None:
    """Execute a command and answer privately, once per message."""
    try:
        found = await answer(asker, typed)
        await client.chat_postEphemeral(
            channel=incoming.channel_id,
            user=asker.actor.user_id,
            thread_ts=incoming.thread_ts,
            text=found.text,
            blocks=[*found.blocks] or None,
        )
    except (SlackClientError, ClientError, OSError, TimeoutError) as error:
        fault = slack_fault(error)
        logger.warning("a word is not answered: %s", fault, extra={"action": "whisper_failed"})
    except StorageError as error:
        logger.warning("a word is not answered: %s", error, extra={"action": "whisper_failed"})
