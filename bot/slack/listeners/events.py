"""Events: messages and mentions. They are acknowledged only when they are stored."""

from __future__ import annotations

import logging
import re
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext

from bot.core.inbox import Incoming
from bot.slack.listeners.context import ListenerContext

logger = logging.getLogger(__name__)

_SPOKEN = frozenset({None, "file_share", "thread_broadcast"})
"""Subtypes of messages that people write; all others are ignored."""


def register(app: AsyncApp, desk: ListenerContext) -> None:
    """Bind one listener for all events: an event without a listener would be sent again."""

    @app.event(re.compile(".*"))
    async def on_event(event: dict[str, Any], context: AsyncBoltContext) -> None:
        incoming = incoming_from(event, context)
        if incoming is None:
            logger.debug("event ignored", extra={"action": "event_ignored"})
            return
        thread_id = await desk.in_time(desk.inbox.receive(incoming))
        if thread_id is not None:
            desk.spawn(desk.threads.work(thread_id))


def incoming_from(event: dict[str, Any], context: AsyncBoltContext) -> Incoming | None:
    """Read a message of a person; None for everything else (apps, edits, joins, odd shapes)."""
    if event.get("type") not in {"app_mention", "message"} or event.get("subtype") not in _SPOKEN:
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("app_id"):
        return None
    texts = {key: event.get(key) for key in ("channel", "ts", "user")}
    if not all(isinstance(value, str) and value for value in texts.values()):
        return None
    ts = str(texts["ts"])
    thread_ts = event.get("thread_ts")
    text = event.get("text")
    return Incoming(
        team_id=context.team_id or "",
        channel_id=str(texts["channel"]),
        ts=ts,
        thread_ts=thread_ts if isinstance(thread_ts, str) and thread_ts else ts,
        user_id=str(texts["user"]),
        text=text if isinstance(text, str) else "",
        is_direct=event.get("channel_type") == "im" or str(texts["channel"]).startswith("D"),
        bot_user_id=context.bot_user_id or "",
    )
