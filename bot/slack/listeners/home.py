"""Home: open, change page or filter, settings."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.context.async_context import AsyncBoltContext
from slack_sdk.web.async_client import AsyncWebClient

from bot.approvals.delegation import Delegating
from bot.errors import InvalidInputError, UserFacingError
from bot.layout.blocks import Values
from bot.maintenance.program_keys import USUAL_PERSONAL_KEY, PersonalKeys
from bot.notifications.preferences import NotificationPreferences
from bot.ports.people import Actor
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Spawn
from bot.slack.agent_view import SuggestedPrompts
from bot.slack.home import view
from bot.slack.home.homes import HomeViews
from bot.slack.home.items import REVOKE_KEY
from bot.slack.home.settings import (
    AWAY_FORM,
    AWAY_UNTIL,
    CONNECT_FORM,
    MESSAGES_FORM,
    NAME,
    TEST_NO,
    TEST_YES,
    away_form,
    connect_form,
    connected_view,
    messages_form,
    read_away,
    read_connect,
    read_messages,
    test_card,
)
from bot.slack.home.state import PAGE, HomeState, Shown, state_of
from bot.slack.home.times import zone_for
from bot.slack.modals import Window
from bot.slack.payloads import HOME, HOME_OPENED, action_of, actor_of, address_of
from bot.slack.responding import Responder
from bot.threads.outbox import Outbox
from bot.words import say

_OURS = re.compile(f"^{HOME}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeServices:
    """Use cases for Home."""

    responder: Responder
    client: AsyncWebClient
    policy: CurrentPolicy
    homes: HomeViews
    delegating: Delegating
    preferences: NotificationPreferences
    prompts: SuggestedPrompts
    outbox: Outbox
    team_id: str
    spawn: Spawn
    keys: PersonalKeys | None
    """None unless members make keys of their own."""


def register(app: AsyncApp, services: HomeServices) -> None:
    """Register listeners: the event, all Home actions, each modal."""

    @app.event(HOME_OPENED)
    async def on_opened(
        body: dict[str, Any], event: dict[str, Any], context: AsyncBoltContext
    ) -> None:
        actor, view_data = actor_of(context, body), event.get("view")
        if event.get("tab") != "home" or not actor.user_id:
            _offer_prompts(services, event, actor)
            return
        state = state_of(view_data) if isinstance(view_data, dict) else HomeState()
        services.spawn(services.homes.opened(actor, state))

    @app.action(_OURS)
    async def on_click(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        await services.responder.run(actor.user_id, _click(services, body, actor))
        await ack()

    for name, submit in {AWAY_FORM: _go_away, MESSAGES_FORM: _set_messages}.items():
        app.view(name)(_on_form(services, submit))

    @app.view(CONNECT_FORM)
    async def on_connect(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        answer = await services.responder.run(actor.user_id, _connect(services, body, actor))
        await ack(**answer)


_Submit = Callable[[HomeServices, Mapping[str, Any], Actor], Awaitable[dict[str, str]]]


def _on_form(services: HomeServices, submit: _Submit) -> Callable[..., Awaitable[None]]:
    """Return a listener of a Home modal that shows input errors there."""

    async def on_form(body: dict[str, Any], ack: AsyncAck, context: AsyncBoltContext) -> None:
        actor = actor_of(context, body)
        errors = await services.responder.run(actor.user_id, submit(services, body, actor))
        await (ack(response_action="errors", errors=errors) if errors else ack())

    return on_form


def _offer_prompts(services: HomeServices, event: Mapping[str, Any], actor: Actor) -> None:
    """Offer suggested prompts to a person who opened the direct message."""
    channel_id = event.get("channel")
    is_opened = event.get("tab") == "messages" and isinstance(channel_id, str) and channel_id
    if is_opened:
        services.spawn(
            services.responder.speak_to(actor.user_id, services.prompts.offer(str(channel_id)))
        )


async def _click(services: HomeServices, body: Mapping[str, Any], actor: Actor) -> None:
    action, view_data = action_of(body), body.get("view")
    name = action.get("action_id")
    match name:
        case view.TEST:
            await _send_test(services, actor, str(action.get("action_ts")))
        case _ if name in {TEST_YES, TEST_NO}:
            services.spawn(_respond(services, address_of(body)))
        case view.AWAY:
            await _window(services, body).show(away_form())
        case view.MESSAGES:
            team_id = services.team_id
            person = await services.preferences.of(actor.user_id, team_id=team_id)
            await _window(services, body).show(messages_form(person))
        case view.BACK_HERE:
            await _come_back(services, actor)
        case view.CONNECT:
            _keys(services)
            await _window(services, body).show(connect_form())
        case _ if name == REVOKE_KEY:
            await _keys(services).revoke(actor.user_id, str(action.get("value")))
            services.homes.changed()
        case _:
            state = state_of(view_data) if isinstance(view_data, dict) else HomeState()
            services.spawn(services.homes.show(actor, _turned(state, action)))


def _window(services: HomeServices, body: Mapping[str, Any]) -> Window:
    return Window(services.client, str(body.get("trigger_id")))


def _turned(state: HomeState, action: Mapping[str, Any]) -> HomeState:
    """Return the selection after a click.

    Raises:
        InvalidInputError: Our Home does not send such a value.
    """
    option = action.get("selected_option")
    value = option.get("value") if isinstance(option, dict) else None
    match action.get("action_id"):
        case view.SHOW:
            return state.chosen("show", value)
        case view.ONLY:
            return state.chosen("only", value)
        case view.NEXT:
            return state.turned(PAGE)
        case view.BACK:
            return state.turned(-PAGE)
        case view.ALL_MINE:
            return HomeState(show=Shown.MINE)
        case view.ALL_ENDED:
            return HomeState(show=Shown.DECIDED)
        case _:
            raise InvalidInputError("this button")


async def _send_test(services: HomeServices, actor: Actor, key: str) -> None:
    """Send a sample card in a direct message, once for each click."""
    await services.homes.composer.check(actor)
    card = test_card()
    await services.outbox.send_ephemeral(
        channel_id=actor.user_id,
        thread_ts="",
        user_id=actor.user_id,
        text=card.text,
        key=key,
        blocks=card.blocks,
    )


async def _respond(services: HomeServices, address: str) -> None:
    await services.outbox.respond(address, say("message.tested"))


async def _go_away(services: HomeServices, body: Mapping[str, Any], actor: Actor) -> dict[str, str]:
    """Store an absence with its delegation; return input errors."""
    person = await services.homes.composer.check(actor)
    zone = zone_for(person, services.policy.timezone)
    chosen = read_away(_values(body), zone)
    if isinstance(chosen, dict):
        return chosen
    team_id, delegating = services.team_id, services.delegating
    try:
        if chosen.delegate_id:
            await delegating.hand_over(
                actor, team_id=team_id, delegate_id=chosen.delegate_id, until_ms=chosen.until_ms
            )
        await delegating.go_away(actor, team_id=team_id, until_ms=chosen.until_ms)
    except UserFacingError as error:
        return {chosen.block if chosen.delegate_id else AWAY_UNTIL: str(error)[:300]}
    services.homes.changed()
    return {}


async def _set_messages(
    services: HomeServices, body: Mapping[str, Any], actor: Actor
) -> dict[str, str]:
    """Store notification preferences; return input errors."""
    chosen = read_messages(_values(body))
    if isinstance(chosen, dict):
        return chosen
    await services.preferences.set(
        actor,
        team_id=services.team_id,
        quiet=chosen.quiet,
        has_copies=chosen.has_copies,
    )
    services.homes.changed()
    return {}


async def _connect(services: HomeServices, body: Mapping[str, Any], actor: Actor) -> dict[str, Any]:
    """Make a key; return the answer to the form, which shows the key once."""
    keys = _keys(services)
    await services.homes.composer.check(actor)
    name, channels = read_connect(_values(body))
    try:
        opened = await services.client.conversations_open(users=actor.user_id)
        direct = str(opened["channel"]["id"])
        _, key = await keys.connect(actor.user_id, name, channels, direct=direct)
    except UserFacingError as error:
        return {"response_action": "errors", "errors": {NAME: str(error)[:300]}}
    services.homes.changed()
    shown = connected_view(key, keys.url, days=USUAL_PERSONAL_KEY.days)
    return {"response_action": "update", "view": shown}


def _keys(services: HomeServices) -> PersonalKeys:
    if services.keys is None:
        raise InvalidInputError("this button")
    return services.keys


async def _come_back(services: HomeServices, actor: Actor) -> None:
    team_id, delegating = services.team_id, services.delegating
    await delegating.end(actor, team_id=team_id)
    await delegating.come_back(actor, team_id=team_id)
    services.homes.changed()


def _values(body: Mapping[str, Any]) -> Values:
    view_data = body.get("view")
    state = view_data.get("state") if isinstance(view_data, dict) else None
    values = state.get("values") if isinstance(state, dict) else None
    if not isinstance(values, dict):
        raise InvalidInputError("this form")
    return values
