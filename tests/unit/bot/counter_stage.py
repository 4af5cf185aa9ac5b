"""Payloads as Slack signs them, and the listeners on top of an office."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlencode

from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from agents.models import Turn, call, say
from bot.approvals.overview import HomeDataReader
from bot.layout.action_ids import ActionId, encode, encode_page
from bot.ports.people import Person
from bot.records.approval import Approval, Status
from bot.slack.agent_view import SuggestedPrompts
from bot.slack.app import bolt_app, register
from bot.slack.connect import Identity, Slack
from bot.slack.decisions import CheckCall
from bot.slack.home.homes import Composer, HomeViews
from bot.slack.listeners.views import Judge
from bot.stores import Stores
from bot.threads.agents import AgentFacts, Catalog
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, CHANNEL, ROOT, ROSA, Office

SECRET = "listener-signing-secret"

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")

ASK = "<@UBOT> pay Mia"


@dataclass
class Views:
    """Opens modals; fails when told to."""

    opened: list[dict[str, Any]] = field(default_factory=list)
    updated: list[dict[str, Any]] = field(default_factory=list)
    published: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failing: bool = False
    ways: list[str] = field(default_factory=list)

    async def views_open(self, *, trigger_id: str, view: dict[str, Any]) -> dict[str, Any]:
        return self._show("open", view)

    async def views_push(self, *, trigger_id: str, view: dict[str, Any]) -> dict[str, Any]:
        return self._show("push", view)

    def _show(self, how: str, view: dict[str, Any]) -> dict[str, Any]:
        if self.failing:
            raise TimeoutError
        self.ways.append(how)
        self.opened.append(view)
        return {"ok": True, "view": {"id": "V1"}}

    async def views_update(self, **update: Any) -> dict[str, Any]:
        answer = self._show("update", update["view"])
        self.updated.append(update)
        return answer

    async def views_publish(self, *, user_id: str, view: dict[str, Any]) -> None:
        if self.failing:
            raise TimeoutError
        self.published.append((user_id, view))


@dataclass
class Proxy:
    """A storage some of whose parts are replaced."""

    storage: Stores
    changes: dict[str, object]

    def __getattr__(self, name: str) -> object:
        return self.changes.get(name) or getattr(self.storage, name)


async def _an_agent(_: str) -> AgentFacts:
    return AgentFacts(name="A")


def homes_of(office: Office, client: AsyncWebClient) -> HomeViews:
    """Homes without a cache: what a test changes shows at once."""

    async def channel_name(channel_id: str) -> str:
        return "" if channel_id.startswith("D") else channel_id.lower()

    async def admins() -> Sequence[Person]:
        return ()

    async def name_of(slack_id: str) -> str:
        return slack_id.lower()

    overviews = HomeDataReader(
        storage=office.storage, directory=office.directory, policy=office.cards, clock=office.clock
    )
    composer = Composer(
        overviews=overviews,
        channel_name=channel_name,
        name_of=name_of,
        admins=admins,
        team_id="T1",
        has_slack=lambda: True,
        freezes=office.freezes.in_force,
    )
    return HomeViews(composer, client, office.queue.spawn)


@dataclass
class Counter:
    """The listeners on top of an office."""

    office: Office
    bolt: AsyncApp
    views: Views

    @classmethod
    def on(
        cls,
        office: Office,
        check_call: CheckCall | None = None,
        judge: Judge | None = None,
        prompts: SuggestedPrompts | None = None,
        *,
        patience: timedelta = timedelta(minutes=1),  # a busy machine needs more than 2.5 s
    ) -> Counter:
        views = Views()
        office.slack.client = views
        office.process = replace(office.process, patience=patience)
        office.homes = homes_of(office, cast(AsyncWebClient, views))
        if prompts is not None:
            office.prompts = prompts
        changes: dict[str, object] = {"facts": _an_agent, "check_call": check_call, "judge": judge}
        office.catalog = cast(Catalog, Proxy(cast(Any, office.catalog), changes))
        bolt = bolt_app(
            Slack(
                token="xoxb-listener-test",
                signing_secret=SECRET,
                api_url="http://127.0.0.1:9/api/",
                identity=Identity(team_id="T1", bot_user_id="UBOT", bot_id="B1"),
            )
        )
        register(bolt, office)
        return cls(office, bolt, views)

    async def send(self, payload: object) -> BoltResponse:
        """Send a payload as Slack does; the work that follows is done."""
        answer = await self.bolt.async_dispatch(a_request(payload))
        await self.office.queue.run()
        return answer

    def private_text(self, user_id: str) -> str:
        """The newest private answer."""
        return [text for who, text in self.office.notifier.whispers if who == user_id][-1]


def a_request(payload: object) -> AsyncBoltRequest:
    is_event = isinstance(payload, dict) and payload.get("type") == "event_callback"
    text = json.dumps(payload)
    body = text if is_event else urlencode({"payload": text})
    kind = "application/json" if is_event else "application/x-www-form-urlencoded"
    return AsyncBoltRequest(body=body, headers=signed(body, kind))


def signed(body: str, kind: str) -> dict[str, str | Sequence[str]]:
    stamp = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {
        "content-type": kind,
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": f"v0={digest}",
    }


def sent_by(user_id: str) -> dict[str, Any]:
    """What Slack says in each click, form and shortcut of whom it is from, and where."""
    return {
        "user": {"id": user_id, "username": "x", "name": "x", "team_id": "T1"},
        "team": {"id": "T1", "domain": "acme"},
        "enterprise": {"id": "E1", "name": "Acme"},
        "is_enterprise_install": False,
        "api_app_id": "A1",
        "token": "x",
        "trigger_id": "1.2.3",
    }


def a_press(action_id: str, value: object, user_id: str, **changes: object) -> dict[str, Any]:
    """A click on a button of any message."""
    button = {"type": "button", "action_id": action_id, "block_id": "b", "value": value}
    return {
        "type": "block_actions",
        **sent_by(user_id),
        "channel": {"id": CHANNEL, "name": "ops"},
        "actions": [{**button, "action_ts": "1.1", **changes}],
    }


def a_click(approval: Approval, action_id: str, user_id: str = ADA) -> dict[str, Any]:
    ts = approval.thread_card.ts or "9.1"
    return {
        **a_press(action_id, encode(approval.approval_id, approval.digest), user_id),
        "enterprise": None,
        "container": {"type": "message", "message_ts": ts, "thread_ts": ROOT},
        "message": {"ts": ts, "thread_ts": ROOT, "text": "x"},
    }


def a_submission(
    approval: Approval,
    modal: str,
    values: dict[str, Any],
    user_id: str = ADA,
    *,
    page: str = "request",
) -> dict[str, Any]:
    about = encode(approval.approval_id, approval.digest)
    if modal == ActionId.REVIEW_MODAL:
        about = encode_page(page, approval.approval_id, approval.digest)
    return a_form(modal, values, user_id, kept=about)


def a_form(
    callback_id: str, values: dict[str, Any], user_id: str, *, kept: str = ""
) -> dict[str, Any]:
    """A form about no approval."""
    view = {
        "id": "V1",
        "team_id": "T1",
        "app_installed_team_id": "T1",
        "type": "modal",
        "callback_id": callback_id,
        "private_metadata": kept,
        "state": {"values": values},
        "blocks": [],
    }
    return {"type": "view_submission", **sent_by(user_id), "view": view}


def typed(block_id: str, text: object) -> dict[str, Any]:
    return {block_id: {"countersign:value": {"type": "plain_text_input", "value": text}}}


def picked(block_id: str, value: object) -> dict[str, Any]:
    """The option that somebody chose in an input."""
    return {block_id: {"countersign:value": {"selected_option": {"value": value}}}}


def a_click_inside(
    approval: Approval, action_id: str, view: dict[str, Any], user_id: str = ADA, **more: object
) -> dict[str, Any]:
    """A click in a form, as Slack sends it: there is no channel and no message."""
    click = a_click(approval, action_id, user_id)
    for name in ("channel", "message"):
        del click[name]
    state = {"values": more.pop("values", {})}
    click["container"] = {"type": "view", "view_id": "V1"}
    ours = {"id": "V1", "type": "modal", "app_installed_team_id": "T1"}
    click["view"] = {**ours, "state": state, **view}
    click["actions"][0].update(more)
    return click


def an_event(**changes: object) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "message",
        "channel": CHANNEL,
        "channel_type": "channel",
        "user": ROSA,
        "text": ASK,
        "ts": ROOT,
        **changes,
    }
    return {
        "type": "event_callback",
        "team_id": "T1",
        "api_app_id": "A1",
        "event_id": "Ev1",
        "event_time": 1,
        "authorizations": [{"team_id": "T1", "enterprise_id": None, "user_id": "UBOT"}],
        "event": event,
    }


async def a_counter(storage: SqliteStores, *turns: Turn) -> Counter:
    office = Office(storage, turns or [PAY, say("Paid.")])
    made = Counter.on(office)
    await made.send(an_event())
    return made


async def is_untouched(counter: Counter) -> None:
    assert counter.office.ran == []
    assert (await counter.office.the_approval()).status is Status.PENDING
