"""The button of a held trigger: lets it run again."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.ports.people import Actor
from bot.ports.process import Spawn
from bot.slack.payloads import action_of, actor_of
from bot.slack.responding import Responder
from bot.triggers.holds import TriggerHolds
from storage.errors import RecordNotFoundError

_HOLD = re.compile(r"hld_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldServices:
    """Use cases for the button."""

    responder: Responder
    holds: TriggerHolds
    work: Callable[[str], Coroutine[Any, Any, None]]
    spawn: Spawn


def register(app: AsyncApp, services: HoldServices) -> None:
    """Register the button."""

    @app.action(str(ActionId.LET_RUN))
    async def on_let_run(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor, hold_id = actor_of(context, body), str(action_of(body).get("value"))
        await services.responder.run(actor.user_id, _lift(services, hold_id, actor))
        await ack()


async def _lift(services: HoldServices, hold_id: str, actor: Actor) -> None:
    """Lift the hold, and update its message.

    Raises:
        InvalidInputError: Our button does not send such a payload.
    """
    if not _HOLD.fullmatch(hold_id):
        raise InvalidInputError("this button")
    try:
        await services.holds.lift(hold_id, actor)
    except RecordNotFoundError as error:
        raise InvalidInputError("this button") from error
    services.spawn(services.work(hold_id))
