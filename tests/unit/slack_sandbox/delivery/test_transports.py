"""A real Bolt app on both transports."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from slack_sandbox import ADA, BEN, BOT_USER, MIA, OPS, RANDOM, ROSA, TEAM, RefusedError, Sandbox
from tests.unit.slack_sandbox.conftest import a_card, a_modal


@dataclass
class Office:
    """An app that posts a card when mentioned, and opens a modal when its button is used."""

    sandbox: Sandbox
    app: AsyncApp
    heard: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of everything that came, in the order of arrival."""
    answer: dict[str, Any] = field(default_factory=dict)
    """How to acknowledge a submission."""

    def bodies(self, kind: str) -> list[dict[str, Any]]:
        return [
            body for body in self.heard if kind in (body["type"], body.get("event", {}).get("type"))
        ]


def an_office(sandbox: Sandbox) -> Office:
    client = AsyncWebClient(token=sandbox.bot_token, base_url=sandbox.api_url)
    app = AsyncApp(client=client, signing_secret=sandbox.signing_secret)
    office = Office(sandbox=sandbox, app=app)

    @app.middleware
    async def note(body: dict[str, Any], next_: Any) -> None:
        office.heard.append({"type": "slash_commands", **body})
        await next_()

    @app.event("app_mention")
    async def mentioned(event: dict[str, Any], say: Any) -> None:
        await say(text="Deploy?", blocks=a_card(), thread_ts=event["ts"])

    @app.event("message")
    async def message() -> None:
        return

    @app.action("approve")
    async def approve(ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=a_modal(notify_on_close=True))

    @app.view("edit")
    async def submitted(ack: Any) -> None:
        await ack(**office.answer)

    @app.view_closed("edit")
    async def closed(ack: Any) -> None:
        await ack()

    @app.command("/countersign")
    async def command(ack: Any, command: dict[str, Any]) -> None:
        await ack(f"You said {command['text']}.")

    return office


@asynccontextmanager
async def over_http(sandbox: Sandbox, app: AsyncApp) -> AsyncIterator[None]:
    runner = web.AppRunner(app.web_app("/slack/events", 0), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sandbox.events_url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    yield
    await runner.cleanup()


@asynccontextmanager
async def over_socket(sandbox: Sandbox, app: AsyncApp) -> AsyncIterator[None]:
    handler: Any = AsyncSocketModeHandler(app, sandbox.app_token, web_client=app.client)
    await handler.connect_async()
    await sandbox.until(lambda: sandbox.is_connected)
    yield
    await handler.close_async()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=time.time, retry_delays=(0, 0, 0)) as opened:
        opened.scopes.add("commands")
        yield opened


@pytest.fixture(params=[over_http, over_socket])
async def office(sandbox: Sandbox, request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    logging.getLogger("slack_bolt").setLevel(logging.WARNING)
    opened = an_office(sandbox)
    async with request.param(sandbox, opened.app):
        yield opened


async def a_posted_card(office: Office, text: str = "@countersign deploy") -> dict[str, Any]:
    sandbox = office.sandbox
    ts = await sandbox.say(ROSA, OPS, text)
    await sandbox.until(lambda: len(sandbox.messages(OPS, thread_ts=ts)) == 2)
    return sandbox.messages(OPS, thread_ts=ts)[1]


async def an_open_modal(office: Office) -> dict[str, Any]:
    card = await a_posted_card(office)
    await office.sandbox.click(ADA, OPS, card["ts"], "approve")
    (view,) = await office.sandbox.until(lambda: office.sandbox.open_views(ADA))
    return view


async def test_mention_comes_twice_with_different_event_ids(office: Office) -> None:
    await a_posted_card(office)
    await office.sandbox.until(lambda: len(office.bodies("message")) >= 1)
    (mention,) = office.bodies("app_mention")
    message = office.bodies("message")[0]
    assert mention["event"]["ts"] == message["event"]["ts"]
    assert mention["event_id"] != message["event_id"]
    assert mention["event"]["text"] == f"<@{BOT_USER}> deploy"
    assert mention["authorizations"][0]["user_id"] == BOT_USER
    assert message["event"]["channel_type"] == "channel"
    assert office.sandbox.lost_events == []


async def test_click_modal_errors_then_ok(office: Office, sandbox: Sandbox) -> None:
    view = await an_open_modal(office)
    office.answer = {"response_action": "errors", "errors": {"version": "No such version."}}
    wrong = await sandbox.submit(ADA, view, {"version": "9"})
    assert wrong["errors"] == {"version": "No such version."}
    assert len(sandbox.open_views(ADA)) == 1
    office.answer = {}
    assert await sandbox.submit(ADA, view, {"version": "1.4.2"}) == {"ok": True}
    assert sandbox.open_views(ADA) == []
    sent = office.bodies("view_submission")[-1]
    assert sent["view"]["state"]["values"] == {
        "version": {"input": {"type": "plain_text_input", "value": "1.4.2"}},
        "replicas": {"input": {"type": "plain_text_input", "value": None}},
    }
    assert sent["view"]["private_metadata"] == "apr_1"
    assert "channel" not in sent
    assert sandbox.bad_answers == []


async def test_click_payload_has_what_slack_sends(office: Office) -> None:
    card = await a_posted_card(office)
    await office.sandbox.click(ADA, OPS, card["ts"], "approve")
    (sent,) = office.bodies("block_actions")
    assert sent["user"] == {"id": ADA, "username": "ada", "name": "ada", "team_id": TEAM}
    assert sent["container"] == {
        "type": "message",
        "message_ts": card["ts"],
        "channel_id": OPS,
        "is_ephemeral": False,
        "thread_ts": card["thread_ts"],
    }
    assert sent["message"]["blocks"] == card["blocks"]
    action = sent["actions"][0]
    assert (action["block_id"], action["value"], action["type"]) == ("buttons", "apr_1", "button")


@pytest.mark.parametrize(
    ("answer", "views"),
    [
        ({"response_action": "update", "view": a_modal(callback_id="done")}, ["done"]),
        ({"response_action": "push", "view": a_modal(callback_id="more")}, ["edit", "more"]),
        ({"response_action": "clear"}, []),
    ],
)
async def test_submission_answers(office: Office, answer: dict[str, Any], views: list[str]) -> None:
    view = await an_open_modal(office)
    office.answer = answer
    outcome = await office.sandbox.submit(ADA, view, {"version": "1"})
    assert outcome["response_action"] == answer["response_action"]
    assert [open_view["callback_id"] for open_view in office.sandbox.open_views(ADA)] == views


@pytest.mark.parametrize(
    "answer",
    [
        {"response_action": "errors", "errors": {"nowhere": "wrong"}},
        {"response_action": "update", "view": {"type": "modal", "blocks": []}},
    ],
)
async def test_useless_submission_answer_is_a_fault(office: Office, answer: dict[str, Any]) -> None:
    view = await an_open_modal(office)
    office.answer = answer
    with pytest.raises(RefusedError, match="app_error"):
        await office.sandbox.submit(ADA, view, {"version": "1"})
    assert len(office.sandbox.bad_answers) == 1
    assert office.sandbox.open_views(ADA)[0]["callback_id"] == "edit"


async def test_required_input_does_not_reach_the_app(office: Office) -> None:
    view = await an_open_modal(office)
    outcome = await office.sandbox.submit(ADA, view, {"version": ""})
    assert list(outcome["errors"]) == ["version"]
    assert office.bodies("view_submission") == []


async def test_modal_belongs_to_its_person(office: Office) -> None:
    view = await an_open_modal(office)
    with pytest.raises(RefusedError, match="view_not_found"):
        await office.sandbox.submit(BEN, view, {"version": "1"})


async def test_closing_is_told_when_asked_for(office: Office) -> None:
    view = await an_open_modal(office)
    await office.sandbox.close_view(ADA, view, everything=True)
    (closed,) = office.bodies("view_closed")
    assert closed["is_cleared"] is True


async def test_command_answers_privately(office: Office) -> None:
    await office.sandbox.command(ADA, OPS, "/countersign", "hello <b>")
    assert [message["text"] for message in office.sandbox.ephemerals(ADA)] == [
        "You said hello &lt;b&gt;."
    ]
    assert office.sandbox.ephemerals(ROSA) == []
    with pytest.raises(RefusedError, match="unknown_command"):
        await office.sandbox.command(ADA, OPS, "/other")


async def test_direct_message_has_no_mention_event(office: Office, sandbox: Sandbox) -> None:
    await sandbox.say(ROSA, sandbox.dm_id(ROSA), "@countersign hello")
    await sandbox.until(lambda: office.bodies("message"))
    assert office.bodies("message")[0]["event"]["channel_type"] == "im"
    assert office.bodies("app_mention") == []


async def test_channel_without_the_bot_is_silent(office: Office) -> None:
    await office.sandbox.say(ROSA, RANDOM, "@countersign hello")
    await a_posted_card(office)
    assert {body["event"]["channel"] for body in office.bodies("app_mention")} == {OPS}


async def test_edit_and_deletion_are_told(office: Office, sandbox: Sandbox) -> None:
    ts = await sandbox.say(ROSA, OPS, "helo")
    await sandbox.edit(ROSA, OPS, ts, "hello")
    await sandbox.remove(OPS, ts)

    def subtypes() -> dict[str, dict[str, Any]]:
        events = [body["event"] for body in office.bodies("message")]
        return {event["subtype"]: event for event in events if "subtype" in event}

    await sandbox.until(lambda: len(subtypes()) == 2)
    changed, deleted = subtypes()["message_changed"], subtypes()["message_deleted"]
    assert changed["message"]["text"] == "hello"
    assert changed["previous_message"]["text"] == "helo"
    assert deleted["deleted_ts"] == ts


async def test_response_url_works_five_times(office: Office, sandbox: Sandbox) -> None:
    card = await a_posted_card(office)
    url = sandbox.payload_of_click(ADA, OPS, card["ts"], "approve")["response_url"]
    webhook = AsyncWebhookClient(url)
    await webhook.send(text="psst")
    assert sandbox.ephemerals(ADA)[0]["thread_ts"] == card["thread_ts"]
    await webhook.send(text="Done", replace_original=True)
    assert "blocks" not in sandbox.messages(OPS)[1]
    in_thread = {"response_type": "in_channel", "thread_ts": card["thread_ts"]}
    await webhook.send_dict({"text": "all", **in_thread})
    assert sandbox.messages(OPS, thread_ts=card["thread_ts"])[-1]["text"] == "all"
    wrong = await webhook.send_dict({"delete_original": True, "text": "x"})
    assert "invalid_payload" in wrong.body
    await webhook.send(delete_original=True)
    late = await webhook.send(text="x")
    assert (late.status_code, "used_url" in late.body) == (404, True)


async def test_ephemeral_button_has_no_message(office: Office, sandbox: Sandbox) -> None:
    ts = (
        await office.app.client.chat_postEphemeral(
            channel=OPS, user=ADA, text="psst", blocks=a_card()
        )
    )["message_ts"]
    sent = sandbox.payload_of_click(ADA, OPS, ts, "approve")
    assert sent["container"]["is_ephemeral"] is True
    assert "message" not in sent
    with pytest.raises(RefusedError, match="message_not_found"):
        sandbox.payload_of_click(ROSA, OPS, ts, "approve")


async def test_outsiders_and_unknown_buttons_are_refused(office: Office) -> None:
    card = await a_posted_card(office)
    stranger = office.sandbox.add_person("zoe")
    with pytest.raises(RefusedError, match="not_in_channel"):
        await office.sandbox.click(stranger.id, OPS, card["ts"], "approve")
    with pytest.raises(RefusedError, match="action_not_found"):
        await office.sandbox.click(MIA, OPS, card["ts"], "wonder")
