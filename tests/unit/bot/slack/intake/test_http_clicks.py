"""Clicks over HTTP: what is signed and readable is decided, and all else moves nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from contextlib import AsyncExitStack
from typing import cast
from urllib.parse import urlencode, urlsplit

import aiohttp
import pytest
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.http.server import serve
from bot.layout.action_ids import ActionId
from bot.observability.events import nobody
from bot.slack.app import answering
from bot.slack.intake.http import SLACK_PATH, web_app
from bot.tasks import Tasks
from tests.unit.bot.counter_stage import Counter, a_click, is_untouched, signed
from tests.unit.bot.slack.intake.test_http import nothing_missing

FORM = "application/x-www-form-urlencoded"


def a_form(payload: object) -> str:
    return urlencode({"payload": json.dumps(payload)})


def proof_of(body: str, kind: str = FORM) -> dict[str, str]:
    """The headers of a request as Slack writes them."""
    headers = signed(body, kind)
    return {
        "Content-Type": str(headers["content-type"]),
        "X-Slack-Request-Timestamp": str(headers["x-slack-request-timestamp"]),
        "X-Slack-Signature": str(headers["x-slack-signature"]),
    }


@pytest.fixture
async def url(counter: Counter, stack: AsyncExitStack) -> str:
    app = web_app(counter.bolt, nothing_missing)
    port = await serve(app, host="127.0.0.1", port=0, stack=stack)
    return f"http://127.0.0.1:{port}{SLACK_PATH}"


async def test_a_click_that_was_signed_for_another_body_is_refused(
    counter: Counter, url: str, session: aiohttp.ClientSession
) -> None:
    body = a_form(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    async with session.post(url, data=body, headers=proof_of(body + " ")) as answer:
        assert answer.status == 401
    await is_untouched(counter)


async def test_a_look_at_the_certificate_is_answered(
    url: str, session: aiohttp.ClientSession
) -> None:
    """Slack does not sign it."""
    async with session.post(url, data={"token": "x", "ssl_check": "1"}) as answer:
        assert (answer.status, await answer.text()) == (200, "")
    for other in ({"token": "x"}, {"ssl_check": "0"}, {"payload": "ssl_check=1"}):
        async with session.post(url, data=other) as answer:
            assert answer.status == 401


async def test_a_query_in_the_address_changes_nothing(
    counter: Counter, url: str, session: aiohttp.ClientSession
) -> None:
    """It is not signed."""
    body = a_form(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    async with session.post(f"{url}?a=b", data=body, headers=proof_of(body)) as answer:
        assert answer.status == 200
    await counter.office.queue.run()
    assert len(counter.office.ran) == 1


async def test_a_proof_that_cannot_be_compared_moves_nothing(
    counter: Counter, url: str, session: aiohttp.ClientSession, subtests: pytest.Subtests
) -> None:
    """Not even a private answer: nobody knows who sent it."""
    kinds = ("block_actions", "view_submission", "event_callback", "other")
    proofs: list[tuple[str, list[str]]] = [
        ("X-Slack-Signature", ["v0=\xe9"]),
        ("X-Slack-Signature", ["v0=0", "v0=\xe9"]),
        ("X-Slack-Signature", []),
        ("X-Slack-Request-Timestamp", ["9" * 5_000]),
        ("X-Slack-Request-Timestamp", ["1", "x"]),
        ("X-Slack-Request-Timestamp", ["\u0661" * 10]),
        ("X-Slack-Request-Timestamp", []),
    ]
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    for kind, (name, values) in itertools.product(kinds, proofs):
        with subtests.test(kind=kind, header=name, values=values):
            body = a_form(click | {"type": kind})
            proof = [pair for pair in proof_of("x").items() if pair[0] != name]
            headers = [*proof, *((name, value) for value in values)]
            async with session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 401
            await counter.office.queue.run()
            assert counter.office.notifier.whispers == []
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
    counter: Counter, url: str, session: aiohttp.ClientSession, charset: str, body: str
) -> None:
    """It is nobody's yet, and the charset is never signed."""
    kind = "application/json" if body.startswith("{") else FORM
    headers = proof_of(body, kind) | {"Content-Type": f"{kind}; charset={charset}"}
    async with session.post(url, data=body.encode(), headers=headers) as answer:
        assert answer.status == 400
    await counter.office.queue.run()
    assert counter.office.notifier.whispers == []


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8"])
async def test_utf8_may_be_named(
    counter: Counter, url: str, session: aiohttp.ClientSession, charset: str
) -> None:
    body = a_form(a_click(await counter.office.the_approval(), ActionId.APPROVE))
    headers = proof_of(body) | {"Content-Type": f"{FORM}; charset={charset}"}
    async with session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 200
    await counter.office.queue.run()
    assert len(counter.office.ran) == 1


class Spawning:
    """Stands in for Bolt: starts work, and waits for the database before it answers."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.events: list[str] = []
        self.has_come = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.has_worked = asyncio.Event()

    async def async_dispatch(self, _: AsyncBoltRequest) -> BoltResponse:
        self.tasks.spawn(self._work())
        self.has_come.set()
        await self.may_answer.wait()
        return BoltResponse(status=200)

    async def _work(self) -> None:
        self.events.append("work")
        self.has_worked.set()

    async def serve(self, stack: AsyncExitStack) -> str:
        app = web_app(
            cast(AsyncApp, self), nothing_missing, answering=lambda: answering(self.tasks, nobody)
        )

        async def on_prepare(*_: object) -> None:
            self.events.append("answer")

        app.on_response_prepare.append(on_prepare)
        port = await serve(app, host="127.0.0.1", port=0, stack=stack)
        return f"http://127.0.0.1:{port}{SLACK_PATH}"


async def test_work_begins_when_the_answer_has_left(
    stack: AsyncExitStack, session: aiohttp.ClientSession
) -> None:
    spawning = Spawning(Tasks())
    url = await spawning.serve(stack)
    posting = asyncio.create_task(session.post(url, data="{}", headers=proof_of("{}")))
    await spawning.has_come.wait()
    assert len(spawning.tasks) == 0
    spawning.may_answer.set()
    assert (await posting).status == 200
    await spawning.tasks.idle()
    assert spawning.events == ["answer", "work"]


async def test_work_begins_though_nobody_takes_the_answer(stack: AsyncExitStack) -> None:
    """It is on record and the scheduler would find it; but nobody has to wait for that."""
    spawning = Spawning(Tasks())
    address = urlsplit(await spawning.serve(stack))
    assert address.hostname is not None
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    headers = "".join(f"{name}: {value}\r\n" for name, value in proof_of("{}").items())
    head = f"POST {SLACK_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{headers}\r\n"
    writer.write(head.encode() + b"{}")
    await spawning.has_come.wait()
    own: socket.socket = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # leaves by a reset
    writer.transport.abort()
    spawning.may_answer.set()
    async with asyncio.timeout(60):
        await spawning.has_worked.wait()
