"""The one error handler: every click is answered, and nobody ever sees a traceback."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.response import BoltResponse

from bot.cards import modals
from bot.errors import UserFacingError
from bot.listeners.desk import Desk
from storage.errors import RecordNotFoundError, StoreUnavailableError

logger = logging.getLogger(__name__)

_JSON: dict[str, str | Sequence[str]] = {"content-type": "application/json"}


def register(app: AsyncApp, desk: Desk) -> None:
    """Bind the handler."""

    @app.error
    async def on_error(
        error: Exception, body: dict[str, Any], context: AsyncBoltContext
    ) -> BoltResponse:
        if isinstance(error, BoltUnhandledRequestError):
            return BoltResponse(status=200)
        text = explain(error)
        kind = body.get("type")
        if not isinstance(error, UserFacingError):
            logger.error(
                "a %s failed: %s",
                kind,
                type(error).__name__,
                exc_info=error,
                extra={"action": "listener_failed", "user_id": context.user_id},
            )
        if kind == "event_callback":
            return BoltResponse(status=500)  # not stored: Slack shall send it again
        if kind == "view_submission":
            answer = {
                "response_action": "update",
                "view": modals.notice_modal("Please check the card", text),
            }
            return BoltResponse(status=200, body=json.dumps(answer), headers=_JSON)
        _answer_privately(desk, body, context, text)
        return BoltResponse(status=200)


def explain(error: Exception) -> str:
    """What a person is told: what happened, and what to do."""
    if isinstance(error, UserFacingError):
        return str(error)
    if isinstance(error, RecordNotFoundError):
        return "This request is not known here any more. Nothing was done."
    if isinstance(error, StoreUnavailableError):
        return (
            "I cannot reach my database now. Please look at the card in a moment; if it still has "
            "its buttons, try again."
        )
    return (
        "Something went wrong on my side. Please look at the card; if it still has its buttons, "
        "try again."
    )


def _answer_privately(
    desk: Desk, body: dict[str, Any], context: AsyncBoltContext, text: str
) -> None:
    channel_id, user_id = context.channel_id, context.user_id
    if not channel_id or not user_id:
        return
    container = body.get("container")
    thread_ts = container.get("thread_ts") if isinstance(container, dict) else None
    desk.spawn(
        desk.notifier.whisper(
            channel_id, user_id, text, thread_ts=thread_ts if isinstance(thread_ts, str) else ""
        )
    )
