"""One attempt: signed, to a judged address, and no redirect is followed (checks 41 and 42)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from standardwebhooks import Webhook, WebhookVerificationError
from yarl import URL

from bot.records.webhooks import new_secret
from bot.webhooks.addresses import AddressRefusedError, AddressRules
from bot.webhooks.sending import HttpPoster, WebhookAnswer, signed_headers
from countersign_client import WebhookInvalid, verify_webhook

BODY = '{"type":"request.decided","timestamp":"2026-11-23T10:04:10.512Z","data":{"sequence":5}}'
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def headers_of(*secrets: str, event_id: str = "evt_a_5") -> dict[str, str]:
    now_ms = int(datetime.now(UTC).timestamp() * 1_000)
    return signed_headers(secrets, event_id, BODY, now_ms=now_ms)


@asynccontextmanager
async def receiver(handler: Handler) -> AsyncIterator[int]:
    """A receiver on this machine; its port."""
    app = web.Application()
    app.router.add_post("/hook", handler)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


LOOPBACK = AddressRules(private=[ip_network("127.0.0.0/8"), ip_network("::1/128")])


async def posted(handler: Handler, rules: AddressRules = LOOPBACK) -> WebhookAnswer:
    async with receiver(handler) as port:
        poster = HttpPoster(rules=rules, version="1.2.3")
        url = URL(f"http://localhost:{port}/hook")
        return await poster.post(url, BODY, headers_of(new_secret().text))


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature", ""])
def test_41_what_is_altered_is_refused(name: str) -> None:
    secret = new_secret().text
    headers, body = headers_of(secret), BODY
    if name == "webhook-timestamp":
        headers[name] = str(int(headers[name]) + 1)
    elif name == "webhook-signature":
        headers[name] = headers_of(new_secret().text)[name]
    elif name:
        headers[name] = "evt_a_6"
    else:
        body = BODY.replace("5}", "6}")
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)
    with pytest.raises(WebhookInvalid):
        verify_webhook(body.encode(), headers, secret)


async def test_an_event_is_posted_with_its_headers() -> None:
    seen: list[tuple[str, str]] = []

    async def take(request: web.Request) -> web.Response:
        seen.append((request.headers["User-Agent"], request.headers["Content-Type"]))
        assert await request.text() == BODY
        assert "Cookie" not in request.headers
        return web.Response(status=204)

    answer = await posted(take)
    assert (answer.is_taken, answer.status, answer.error) == (True, 204, "")
    assert seen == [("Countersign/1.2.3", "application/json")]


async def test_an_answer_that_takes_the_event_does_not_have_to_end() -> None:
    async def take(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=200)
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    answer = await posted(take)
    assert (answer.is_taken, answer.status) == (True, 200)


async def test_42_a_redirect_is_a_failure_and_not_followed() -> None:
    calls: list[str] = []

    async def lead_on(request: web.Request) -> web.Response:
        calls.append(request.path)
        return web.Response(status=301, headers={"Location": "/hook?again"})

    answer = await posted(lead_on)
    assert (answer.is_taken, answer.status, calls) == (False, 301, ["/hook"])


@pytest.mark.parametrize(
    ("status", "wish", "seconds"),
    [(429, "30", 30), (503, "999999", 3_600), (429, "soon", None), (500, "30", None)],
)
async def test_42_a_receiver_may_ask_for_time(status: int, wish: str, seconds: int | None) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Retry-After": wish})

    answer = await posted(refuse)
    assert (answer.status, answer.retry_after_s) == (status, seconds)


async def test_little_of_an_answer_is_read_and_kept() -> None:
    async def babble(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        try:
            while True:
                await response.write(b"\x1b[31mno\n" * 1_000)
        except ConnectionError:
            pass
        return response

    answer = await posted(babble)
    assert answer.error.startswith("HTTP 500 \\u001b[31mno\\u000a")
    assert len(answer.error) < 700


async def test_45_the_socket_is_judged_whatever_the_name_says() -> None:
    async def take(_: web.Request) -> web.Response:
        raise AssertionError("nothing may arrive")

    answer = await posted(take, AddressRules())
    assert not answer.is_taken
    assert answer.error == "not allowed: its host has an address that is not public"
    async with receiver(take) as port:
        poster = HttpPoster(rules=AddressRules(), version="1")
        for host in ("127.0.0.1", "[::1]"):  # the HTTP client looks no literal up
            answer = await poster.post(URL(f"http://{host}:{port}/hook"), BODY, {})
            assert answer.error.startswith("not allowed")


async def test_a_proxy_gets_the_name_of_the_host_and_judges_its_addresses() -> None:
    asked: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().partition("\r\n")[0])
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        rules = AddressRules(proxy=f"http://127.0.0.1:{port}", resolver=NoResolver())
        url = "https://inside.example.com/hook"
        await rules.check(url, hosts=["inside.example.com"])  # nothing is looked up here
        answer = await HttpPoster(rules=rules, version="1").post(URL(url), BODY, {})
    assert answer == WebhookAnswer(error="the proxy refused: HTTP 403")
    assert asked == ["CONNECT inside.example.com:443 HTTP/1.1"]


@pytest.mark.parametrize(
    "url", ["http://inside.example.com/", "https://127.0.0.1/", "https://other.example.com/"]
)
async def test_a_proxy_allows_no_address_that_is_refused_by_its_text(url: str) -> None:
    rules = AddressRules(proxy="http://127.0.0.1:1", private=[ip_network("127.0.0.0/8")])
    with pytest.raises(AddressRefusedError):
        await rules.check(url, hosts=["inside.example.com", "127.0.0.1"])


class NoResolver(AbstractResolver):
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        raise AssertionError(f"{host} may not be looked up")

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_receiver_that_is_away_is_a_failure() -> None:
    async def take(_: web.Request) -> web.Response:
        return web.Response()

    async with receiver(take) as port:
        pass
    poster = HttpPoster(rules=LOOPBACK, version="1")
    answer = await poster.post(URL(f"http://localhost:{port}/hook"), BODY, {})
    assert answer.error.startswith("no connection")
