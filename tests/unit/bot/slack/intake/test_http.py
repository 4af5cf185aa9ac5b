"""The HTTP server: probes, the path for Slack, and requests that are not from Slack."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import json
import logging
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import aiohttp
import pytest
from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp

from bot.errors import SettingsError
from bot.http.server import serve
from bot.slack.app import bolt_app
from bot.slack.connect import Identity, Slack
from bot.slack.intake.http import SLACK_PATH, web_app

SECRET = "server-signing-secret"


async def nothing_missing() -> str:
    return ""


def a_bolt() -> AsyncApp:
    slack = Slack(
        token="xoxb-server-test",
        signing_secret=SECRET,
        api_url="http://127.0.0.1:9/api/",
        identity=Identity(team_id="T1", bot_user_id="UBOT", bot_id="B1"),
    )
    return bolt_app(slack)


async def test_alive_whatever_is_missing(
    stack: AsyncExitStack, session: aiohttp.ClientSession
) -> None:
    async def is_ready() -> str:
        return "the database does not answer"

    port = await serve(web_app(None, is_ready), host="127.0.0.1", port=0, stack=stack)
    async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"ok": True})
    async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
        assert answer.status == 503
        assert await answer.json() == {"ok": False, "missing": "the database does not answer"}


async def test_socket_mode_has_no_path_for_slack(
    stack: AsyncExitStack, session: aiohttp.ClientSession
) -> None:
    port = await serve(web_app(None, nothing_missing), host="127.0.0.1", port=0, stack=stack)
    async with session.post(f"http://127.0.0.1:{port}{SLACK_PATH}", data="{}") as answer:
        assert answer.status == 404


async def test_a_port_in_use_is_a_sentence(stack: AsyncExitStack) -> None:
    port = await serve(web_app(None, nothing_missing), host="127.0.0.1", port=0, stack=stack)
    with pytest.raises(SettingsError, match=f"cannot listen on 127.0.0.1:{port}") as raised:
        await serve(web_app(None, nothing_missing), host="127.0.0.1", port=port, stack=stack)
    assert raised.value.variable == "COUNTERSIGN_PORT"


@pytest.fixture
async def url(stack: AsyncExitStack) -> str:
    app = web_app(a_bolt(), nothing_missing)
    port = await serve(app, host="127.0.0.1", port=0, stack=stack)
    return f"http://127.0.0.1:{port}{SLACK_PATH}"


def signed(body: bytes, *, at: int | None = None) -> dict[str, str]:
    stamp = str(int(time.time()) if at is None else at)
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
        "Content-Type": "application/json",
    }


CHALLENGE = json.dumps({"type": "url_verification", "challenge": "proof"}).encode()


async def test_slack_verifies_the_address(url: str, session: aiohttp.ClientSession) -> None:
    async with session.post(url, data=CHALLENGE, headers=signed(CHALLENGE)) as answer:
        assert answer.status == 200
        assert "proof" in await answer.text()


@pytest.mark.parametrize("seconds", [-330, 330])
async def test_a_signature_of_another_time_is_refused(
    url: str, session: aiohttp.ClientSession, seconds: int
) -> None:
    other = signed(CHALLENGE, at=int(time.time()) + seconds)
    async with session.post(url, data=CHALLENGE, headers=other) as answer:
        assert answer.status == 401


ODD = [
    b"{broken",
    b"[]",
    b'"text"',
    b"null",
    b"payload=%7Bbroken",
    b"payload=null",
    b"payload=[1]",
    b'{"user": 5, "team": 7}',
    b'{"authorizations": 5}',
    b'{"type":"x","response_urls":"x"}',
    b"{" + b'"a":{' * 3000,
    b"\xff\xfe{",
]


@pytest.mark.parametrize("body", ODD, ids=lambda body: str(body[:30]))
@pytest.mark.parametrize("is_signed", [True, False])
async def test_an_odd_body_is_refused_quietly(
    url: str,
    session: aiohttp.ClientSession,
    body: bytes,
    is_signed: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    headers = signed(body) if is_signed else {"Content-Type": "application/json"}
    async with session.post(url, data=body, headers=headers) as answer:
        text = await answer.text()
        assert answer.status in ({200, 400, 404} if is_signed else {400, 401})
    assert "Traceback" not in text
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_an_unknown_charset_is_refused(url: str, session: aiohttp.ClientSession) -> None:
    headers = {**signed(CHALLENGE), "Content-Type": "application/json; charset=klingon"}
    async with session.post(url, data=CHALLENGE, headers=headers) as answer:
        assert answer.status == 400


async def test_a_body_that_is_too_long_is_refused(url: str, session: aiohttp.ClientSession) -> None:
    body = b"{" + b" " * 2_000_000 + b"}"
    async with session.post(url, data=io.BytesIO(body), headers=signed(body)) as answer:
        assert answer.status == 413


async def test_who_has_hung_up_before_the_answer_is_no_fault_of_ours(
    stack: AsyncExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    bolt, is_here, is_gone = a_bolt(), asyncio.Event(), asyncio.Event()
    answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @bolt.middleware
    async def slow() -> BoltResponse:
        is_here.set()
        await is_gone.wait()
        return BoltResponse(status=200)

    @contextmanager
    def answering() -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            answered.set_exception(error)
            raise
        answered.set_result(None)

    app = web_app(bolt, nothing_missing, answering=answering)
    port = await serve(app, host="127.0.0.1", port=0, stack=stack)
    body = json.dumps({"type": "event_callback", "team_id": "T1", "event": {"type": "x"}}).encode()
    head = [f"POST {SLACK_PATH} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
    head += [f"{name}: {value}" for name, value in signed(body).items()]
    _, slack = await asyncio.open_connection("127.0.0.1", port)
    slack.write("\r\n".join([*head, "", ""]).encode() + body)
    await is_here.wait()
    slack.transport.abort()
    for _ in range(10):  # until the other end has seen it
        await asyncio.sleep(0)
    is_gone.set()
    await answered
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "hung_up" in [getattr(record, "action", "") for record in caplog.records]
