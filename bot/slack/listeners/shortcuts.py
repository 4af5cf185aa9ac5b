"""Shortcuts: a person's pending approvals, and asking an agent about a message."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import DeliveryError, DirectoryError, InvalidInputError
from bot.leases import ThreadWorker
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.ports.threads import Notices
from bot.slack.home.homes import Composer
from bot.slack.modals import Window
from bot.slack.payloads import actor_of, address_of
from bot.slack.responding import Responder
from bot.slack.rich_text import markup_of
from bot.threads.inbox import ThreadInbox
from bot.threads.message_shortcut import AboutError, AskingAbout, QuotedMessage
from bot.threads.outbox import Outbox
from bot.words import say

logger = logging.getLogger(__name__)

MY_APPROVALS = "countersign:my_approvals"
ASK_ABOUT = "countersign:ask_about"
CALLBACKS: Mapping[str, str] = {MY_APPROVALS: "global", ASK_ABOUT: "message"}
"""Shortcuts and their types, as in manifest.yml."""
_TS = re.compile(r"\d{1,12}\.\d{1,9}")
_UNKNOWN_PLACE = ("channel_not_found", "not_in_channel")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortcutServices:
    """Use cases for shortcuts."""

    responder: Responder
    client: AsyncWebClient
    composer: Composer
    inbox: ThreadInbox
    threads: ThreadWorker
    notices: Notices
    outbox: Outbox
    team_id: str
    spawn: Spawn


def register(app: AsyncApp, services: ShortcutServices) -> None:
    """Register one listener per shortcut."""

    @app.shortcut({"type": "shortcut", "callback_id": MY_APPROVALS})
    async def on_list(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        window = Window(services.client, str(body.get("trigger_id")))
        view = await services.responder.in_time(
            services.composer.waiting_form(actor_of(context, body))
        )
        await services.responder.in_time(window.show(view))
        await ack()

    @app.shortcut({"type": "message_action", "callback_id": ASK_ABOUT})
    async def on_ask(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        await services.responder.run(actor.user_id, _ask(services, body, context))
        await ack()


async def _ask(
    services: ShortcutServices, body: Mapping[str, Any], context: AsyncBoltContext
) -> None:
    """Ask an agent about a message, visibly in its thread.

    Raises:
        UserFacingError: It was not done, with the reason.
    """
    quoted, actor = quoted_from(body, services.team_id), actor_of(context, body)
    about, bot_user_id = AskingAbout(services.inbox), context.bot_user_id or ""
    try:
        await about.check(quoted, actor, bot_user_id=bot_user_id)
    except DirectoryError as error:
        if error.detail.endswith(_UNKNOWN_PLACE):
            raise AboutError(say("refuse.about_elsewhere")) from error
        raise
    ts = _asked_ts(body)
    thread_id = await about.ask(quoted, actor, ts=ts, bot_user_id=bot_user_id)
    if thread_id is not None:
        services.spawn(
            services.responder.speak_to(
                actor.user_id, _begin(services, quoted, actor, ts, address_of(body))
            )
        )


async def _begin(
    services: ShortcutServices, quoted: QuotedMessage, actor: Actor, ts: str, address: str
) -> None:
    """Show who asked, then start the agent; the question is stored."""
    try:
        await services.notices.show_asker(
            channel_id=quoted.channel_id, thread_ts=quoted.thread_ts, by=actor.user_id, key=ts
        )
    except DeliveryError as error:
        logger.warning(
            "could not show who asked an agent about a message: %s",
            error,
            extra={"action": "asker_not_shown"},
        )
        if error.is_lost_place:
            await services.outbox.send_ephemeral(
                channel_id=quoted.channel_id,
                thread_ts=quoted.thread_ts,
                user_id=actor.user_id,
                text=say("refuse.about_elsewhere"),
                key=ts,
                address=address,
            )
    await services.threads.work(quoted.thread_id)


def _asked_ts(body: Mapping[str, Any]) -> str:
    """Return the time of the click in the form of a message's `ts`, as the id of the question.

    Raises:
        InvalidInputError: Slack does not send such a payload.
    """
    ts = body.get("action_ts")
    if not isinstance(ts, str) or _TS.fullmatch(ts) is None:
        raise InvalidInputError("this shortcut")
    return ts


def quoted_from(body: Mapping[str, Any], team_id: str) -> QuotedMessage:
    """Parse the selected message, in the app's workspace.

    Raises:
        InvalidInputError: Slack does not send such a payload.
    """
    channel, message = body.get("channel"), body.get("message")
    if not isinstance(channel, dict) or not isinstance(message, dict):
        raise InvalidInputError("this shortcut")
    channel_id, ts = channel.get("id"), message.get("ts")
    if not (isinstance(channel_id, str) and channel_id and isinstance(ts, str) and ts):
        raise InvalidInputError("this shortcut")
    thread_ts, text, user = (message.get(name) for name in ("thread_ts", "text", "user"))
    is_app = bool(message.get("bot_id") or message.get("app_id") or message.get("bot_profile"))
    return QuotedMessage(
        team_id=team_id,
        channel_id=channel_id,
        ts=ts,
        thread_ts=thread_ts if isinstance(thread_ts, str) and thread_ts else ts,
        author_id=user if isinstance(user, str) and not is_app else "",
        text=text if isinstance(text, str) else "",
        markup=markup_of(message),
    )
