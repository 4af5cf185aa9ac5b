"""The form that lifts a freeze: open it by the button of an alert, and submit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import InvalidInputError
from bot.freezes.requests import FreezeRequests
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Errors
from bot.layout.modals import notice_modal
from bot.ports.people import Actor
from bot.slack.handlers import FormNotice
from bot.slack.modals import Window, window_of
from bot.slack.payloads import action_of, actor_of
from bot.slack.responding import Responder
from bot.slack.side_messages.freezes import FREEZE_ID, WHY, lift_form, lifted_text, read_lift
from bot.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeServices:
    """Use cases for the form that lifts a freeze."""

    responder: Responder
    client: AsyncWebClient
    freezing: FreezeRequests
    changed: Callable[[], None]


def register(app: AsyncApp, services: FreezeServices) -> None:
    """Register the button and the form."""

    @app.action(str(ActionId.LIFT))
    async def on_lift(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor, window = actor_of(context, body), window_of(services.client, body)
        context["window"] = window
        work = window.while_doing(_open(services, actor, window, action_of(body)))
        await services.responder.run(actor.user_id, work)
        await ack()

    @app.view(str(ActionId.LIFT_MODAL))
    async def on_form(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        answer = await services.responder.run(actor.user_id, _submit(services, body, actor))
        if isinstance(answer, FormNotice):
            view = notice_modal(answer.title, answer.words)
            await ack(response_action="update", view=view)
        else:
            await ack(response_action="errors", errors=answer)


async def _open(
    services: FreezeServices, actor: Actor, window: Window, action: Mapping[str, Any]
) -> None:
    """Open the form for a person who may lift.

    Raises:
        InvalidInputError: Our button does not send such a payload.
    """
    freeze_id = str(action.get("value"))
    if not FREEZE_ID.fullmatch(freeze_id):
        raise InvalidInputError("this button")
    liftable = await services.freezing.liftable(actor, freeze_id)
    await window.show(lift_form(liftable, freeze_id))


async def _submit(
    services: FreezeServices, body: Mapping[str, Any], actor: Actor
) -> FormNotice | Errors:
    """Lift the freeze, or confirm its lifting.

    Raises:
        InvalidInputError: Our form does not send such a payload.
    """
    view = body.get("view")
    state = view.get("state") if isinstance(view, Mapping) else None
    values = state.get("values") if isinstance(state, Mapping) else None
    if not isinstance(view, Mapping) or not isinstance(values, Mapping):
        raise InvalidInputError("this form")
    freeze_id, why = read_lift(values, view.get("private_metadata"))
    if not freeze_id:
        raise InvalidInputError("this form")
    if not why:
        return {WHY: say("refuse.reason")}
    answer = await services.freezing.lift(actor, freeze_id, why=why)
    services.changed()
    return FormNotice(title=say("form.lift"), words=lifted_text(answer))
