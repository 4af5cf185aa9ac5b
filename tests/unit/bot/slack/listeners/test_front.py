"""The short way of a click: the same checks and the same answers as on Bolt's way."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.layout.action_ids import ActionId
from bot.slack.http import SLACK_PATH, serve, web_app
from bot.slack.listeners import FrontApp, actions
from bot.slack.listeners.reading import PayloadRequest, payload_in
from storage.records import Status
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    a_request,
    is_untouched,
    signed,
)
from tests.unit.bot.office import ADA, GUS, ROSA

FORM = "application/x-www-form-urlencoded"


async def by_bolt(counter: Counter, payload: object) -> BoltResponse:
    """Send a payload on Bolt's own way."""
    answer = await AsyncApp.async_dispatch(counter.bolt, a_request(payload))
    await counter.office.queue.run()
    return answer


def told(counter: Counter) -> list[tuple[str, str]]:
    return list(counter.office.notifier.whispers)


@pytest.fixture
def walked(counter: Counter) -> list[str]:
    """What came as far as Bolt's listeners, by the type of its payload."""
    found: list[str] = []

    @counter.bolt.middleware
    async def note(body: dict[str, Any], next_: Callable[[], Awaitable[None]]) -> None:
        found.append(str(body.get("type")))
        await next_()

    return found


async def test_a_click_does_not_walk_through_bolt(counter: Counter, walked: list[str]) -> None:
    approval = await counter.office.the_approval()
    answer = await counter.send(a_click(approval, ActionId.APPROVE))
    assert (answer.status, answer.body) == (200, "")
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]
    assert walked == []


@pytest.mark.parametrize(
    ("user_id", "changes"),
    [
        (ADA, {}),
        (ADA, {"team": {"id": "T2"}, "user": {"id": ADA, "team_id": "T2"}}),
        (ADA, {"team": None, "enterprise": {"id": "E1"}, "user": {"id": ADA}}),
        ("USTRANGER", {"user": {"id": "USTRANGER", "team_id": "T1"}}),
        (GUS, {"user": {"id": GUS, "team_id": "T1"}}),
        (ROSA, {"user": {"id": ROSA, "team_id": "T1"}}),
        (ADA, {"user": {}}),
        (ADA, {"user": None}),
        (ADA, {"team": "T1"}),
        (ADA, {"container": None, "channel": None}),
    ],
)
@pytest.mark.parametrize("action_id", [ActionId.APPROVE, ActionId.DETAILS, ActionId.ANSWER])
async def test_both_ways_answer_the_same(
    counter: Counter, user_id: str, changes: dict[str, Any], action_id: ActionId
) -> None:
    """First on the short way where it must refuse; so both see the same record."""
    click = a_click(await counter.office.the_approval(), action_id, user_id) | changes
    short, told_short = await _tried(counter.send(click), counter)
    ran, opened = list(counter.office.ran), len(counter.views.opened)
    if ran:  # decided: when it is clicked again, both ways say by whom
        short, told_short = await _tried(counter.send(click | {"trigger_id": "2"}), counter)
    long, told_long = await _tried(by_bolt(counter, click | {"trigger_id": "3"}), counter)
    assert short == long
    assert told_short == told_long
    assert counter.office.ran == ran
    assert len(counter.views.opened) == 2 * opened


async def _tried(sending: Any, counter: Counter) -> tuple[object, list[tuple[str, str]]]:
    """The answer (or what it raised), and what was told beside it."""
    before = len(told(counter))
    answer: object
    try:
        found = await sending
        answer = (found.status, found.body, found.headers)
    except (TypeError, AttributeError) as error:
        answer = type(error)
    return answer, told(counter)[before:]


async def test_what_is_not_such_a_click_walks_through_bolt(
    counter: Counter, walked: list[str]
) -> None:
    """The proof that `walked` would tell."""
    click = a_click(await counter.office.the_approval(), "countersign:no_such")
    assert (await counter.send(click)).status == 200
    assert walked == ["block_actions"]


async def test_a_click_with_a_wrong_signature_is_refused_by_bolt(
    counter: Counter, walked: list[str]
) -> None:
    request = a_request(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    request.headers["x-slack-signature"] = ["v0=" + "0" * 64]
    assert (await counter.bolt.async_dispatch(request)).status == 401
    assert walked == []
    await is_untouched(counter)


@pytest.mark.parametrize("header", ["x-slack-signature", "x-slack-request-timestamp"])
async def test_a_click_without_a_signature_is_refused_by_bolt(
    counter: Counter, header: str
) -> None:
    request = a_request(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    del request.headers[header]
    assert (await counter.bolt.async_dispatch(request)).status == 401
    await is_untouched(counter)


async def test_an_old_click_is_refused_by_bolt(counter: Counter) -> None:
    request = a_request(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    request.headers["x-slack-request-timestamp"] = [str(int(time.time()) - 600)]
    assert (await counter.bolt.async_dispatch(request)).status == 401
    await is_untouched(counter)


async def test_without_a_secret_no_signature_is_right(counter: Counter) -> None:
    """In Socket Mode there is none; then nothing that came by HTTP is taken."""
    bolt = FrontApp(signing_secret="", token="xoxb-front-test")
    request = a_request(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    assert not bolt._is_from_slack(request)


async def test_over_a_socket_there_is_no_signature(counter: Counter, walked: list[str]) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    request = AsyncBoltRequest(mode="socket_mode", body=click)
    assert (await counter.bolt.async_dispatch(request)).status == 200
    await counter.office.queue.run()
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]
    assert walked == []


BUTTON = {"type": "button", "action_id": "countersign:approve", "value": "x"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"type": "view_submission", "actions": [BUTTON]},
        {"type": "block_actions"},
        {"type": "block_actions", "actions": []},
        {"type": "block_actions", "actions": {"0": BUTTON}},
        {"type": "block_actions", "actions": ["countersign:approve"]},
        {"type": "block_actions", "actions": [BUTTON, BUTTON]},
        {"type": "block_actions", "actions": [{**BUTTON, "action_id": "countersign:no_such"}]},
        {"type": "block_actions", "actions": [{**BUTTON, "action_id": ["countersign:approve"]}]},
        {"type": "block_actions", "actions": [BUTTON], "ssl_check": "1"},
        {"type": "block_actions", "actions": [BUTTON], "event": {}},
    ],
)
def test_what_is_not_beyond_doubt_is_left_to_bolt(body: dict[str, Any]) -> None:
    assert not actions.is_ours(body)


def test_ours() -> None:
    assert actions.is_ours({"type": "block_actions", "actions": [BUTTON]})


TEXTS = ["", "plain", "5 € & more = a+b%20c", "“Mia”\n\t\\n", "\x00", "日本", "%zz", "</x>"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_form_is_read_as_bolt_reads_it(text: str) -> None:
    payload = {"type": "block_actions", "message": {"text": text}, "actions": [BUTTON]}
    body = urlencode({"payload": json.dumps(payload, ensure_ascii=False)})
    mine = payload_in(body)
    assert mine is not None
    theirs = AsyncBoltRequest(body=body, headers=signed(body, FORM))
    request = PayloadRequest(raw_body=body, body=mine, headers=_plain(signed(body, FORM)))
    for name in ("raw_body", "body", "query", "headers", "content_type", "mode", "lazy_only"):
        assert getattr(request, name) == getattr(theirs, name), name
    assert dict(request.context) == dict(theirs.context)


@pytest.mark.parametrize("tail", ["%zz", "%", "%2", "%ff%fe", "%C3", ";a=b", "=", "%2541"])
def test_odd_escapes_are_read_as_bolt_reads_them(tail: str) -> None:
    body = f"payload=%7B%22a%22:%22{tail}%22%7D"
    assert payload_in(body) == AsyncBoltRequest(body=body, headers={"content-type": FORM}).body


@pytest.mark.parametrize(
    "body", ["", "payload", "a=b", "payload=null", "payload=[1]", 'payload={}&payload={"a":1}']
)
def test_other_forms_are_left_to_bolt(body: str) -> None:
    assert payload_in(body) is None


@pytest.mark.parametrize("body", ["payload=", "payload=%7Bbroken", "payload=" + "[" * 100_000])
def test_a_payload_that_cannot_be_read(body: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        payload_in(body)


def _plain(headers: dict[str, Any]) -> dict[str, str]:
    return {
        "Content-Type": headers["content-type"],
        "X-Slack-Request-Timestamp": headers["x-slack-request-timestamp"],
        "X-Slack-Signature": headers["x-slack-signature"],
    }


@pytest.fixture
async def url(counter: Counter) -> AsyncIterator[str]:
    async def is_ready() -> str:
        return ""

    async with AsyncExitStack() as stack:
        app = web_app(counter.bolt, is_ready)
        port = await serve(app, host="127.0.0.1", port=0, stack=stack)
        yield f"http://127.0.0.1:{port}{SLACK_PATH}"


@pytest.mark.parametrize("is_signed", [True, False])
async def test_a_click_over_http(
    counter: Counter, url: str, walked: list[str], *, is_signed: bool
) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    body = urlencode({"payload": json.dumps(click)})
    headers = _plain(signed(body if is_signed else body + " ", FORM))
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as answer,
    ):
        assert answer.status == (200 if is_signed else 401)
        if is_signed:
            assert await answer.text() == ""
            assert answer.content_type == "text/plain"
    await counter.office.queue.run()
    status = (await counter.office.the_approval()).status if not is_signed else Status.APPROVED
    assert status is (Status.APPROVED if is_signed else Status.PENDING)
    assert walked == []
    assert len(counter.office.ran) == (1 if is_signed else 0)


async def test_a_query_in_the_address_changes_nothing(counter: Counter, url: str) -> None:
    """It is not signed."""
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    body = urlencode({"payload": json.dumps(click)})
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}?a=b", data=body, headers=_plain(signed(body, FORM))) as answer,
    ):
        assert answer.status == 200
    await counter.office.queue.run()
    assert len(counter.office.ran) == 1


@pytest.mark.parametrize("kind", ["block_actions", "view_submission", "event_callback", "other"])
@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("X-Slack-Signature", ["v0=\xe9"]),
        ("X-Slack-Signature", ["v0=0", "v0=\xe9"]),
        ("X-Slack-Request-Timestamp", ["9" * 5_000]),
        ("X-Slack-Request-Timestamp", ["1", "x"]),
        ("X-Slack-Request-Timestamp", ["\u0661" * 10]),
    ],
)
async def test_a_proof_that_cannot_be_compared_moves_nothing(
    counter: Counter, url: str, kind: str, header: str, values: list[str]
) -> None:
    """Not even a private answer: nobody knows who sent it."""
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE) | {"type": kind}
    body = urlencode({"payload": json.dumps(click)})
    proof = [pair for pair in _plain(signed("x", FORM)).items() if pair[0] != header]
    headers = [*proof, *((header, value) for value in values)]
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as answer,
    ):
        assert answer.status == 401
    await counter.office.queue.run()
    assert told(counter) == []
    await is_untouched(counter)


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        ("punycode", "a" * 200_000 + "-" + "ba" * 100_000),  # quadratic: many seconds
        ("utf-7", '{"type": "x", "user": {"id": "UADA"}, "channel": {"id": "C1"}, "y": "+2AA-"}'),
        ("utf-16-le", "payload=%7B%7D"),
    ],
)
async def test_a_charset_that_slack_does_not_write_is_not_decoded(
    counter: Counter, url: str, charset: str, body: str
) -> None:
    """It is nobody's yet, and the charset is never signed."""
    kind = "application/json" if body.startswith("{") else FORM
    headers = _plain(signed(body, kind)) | {"Content-Type": f"{kind}; charset={charset}"}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session,
        session.post(url, data=body.encode(), headers=headers) as answer,
    ):
        assert answer.status == 400
    await counter.office.queue.run()
    assert told(counter) == []


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8"])
async def test_utf8_may_be_named(counter: Counter, url: str, charset: str) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    body = urlencode({"payload": json.dumps(click)})
    headers = _plain(signed(body, FORM)) | {"Content-Type": f"{FORM}; charset={charset}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as answer,
    ):
        assert answer.status == 200
    await counter.office.queue.run()
    assert len(counter.office.ran) == 1
