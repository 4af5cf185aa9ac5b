"""The stop button: sends *stop* to the agent's thread."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.leases import ThreadWorker
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.slack.payloads import action_of, actor_of, address_of
from bot.slack.responding import Responder
from bot.slack.slash_commands.words import ShownLists
from bot.threads.cancellation import STOP
from bot.threads.inbox import ThreadInbox
from bot.threads.message_event import Incoming

_THREAD = re.compile(r"(?P<team>[TE][A-Z0-9]+):(?P<channel>[CDG][A-Z0-9]+):(?P<ts>\d+\.\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StopServices:
    """Use cases for the stop button."""

    responder: Responder
    inbox: ThreadInbox
    threads: ThreadWorker
    shown_lists: ShownLists
    team_id: str
    spawn: Spawn


def register(app: AsyncApp, services: StopServices) -> None:
    """Register the button."""

    @app.action(str(ActionId.STOP_AGENT))
    async def on_stop(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        stop = stop_of(body, context, services.team_id)
        services.shown_lists.clicked(stop.user_id, action_of(body), address_of(body))
        work = _stop(services, stop, actor_of(context, body), address_of(body))
        await services.responder.run(context.user_id or "", work)
        await ack()


async def _stop(services: StopServices, stop: Incoming, actor: Actor, address: str) -> None:
    thread_id = await services.inbox.stop_thread(stop, address=address)
    if thread_id is not None:
        services.spawn(_follow_up(services, thread_id, actor))


async def _follow_up(services: StopServices, thread_id: str, actor: Actor) -> None:
    """Stop the agent, and update the list with the button."""
    await services.threads.work(thread_id)
    await services.shown_lists.acted(actor)


def stop_of(body: Mapping[str, Any], context: AsyncBoltContext, team_id: str) -> Incoming:
    """Parse a click as a stop message in the button's thread.

    Raises:
        InvalidInputError: Our button does not send such a payload.
    """
    action = action_of(body)
    place = _THREAD.fullmatch(str(action.get("value")))
    ts, user_id = action.get("action_ts"), context.user_id
    if place is None or place["team"] != team_id or not user_id or not ts:
        raise InvalidInputError("this button")
    return Incoming(
        team_id=place["team"],
        channel_id=place["channel"],
        ts=str(ts),
        thread_ts=place["ts"],
        user_id=user_id,
        text=STOP,
        is_direct=place["channel"].startswith("D"),
        bot_user_id=context.bot_user_id or "",
    )
