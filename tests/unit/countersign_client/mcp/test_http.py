"""The proxy over HTTP: what reaches the server, and what is known when a connection breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from countersign_client.mcp import http
from countersign_client.mcp.http import Relay, checked_hosts
from tests.support.programs.stage import CALL, DEPLOY, Stage

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
EVENTS = {"content-type": "text/event-stream"}
DONE: dict[str, Any] = {"content": [{"type": "text", "text": "deployed"}]}
Reply = Callable[[httpx2.Request], httpx2.Response]


class Web(Stage):
    """A stage whose client and server speak HTTP."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, **options)
        self.replies: list[Reply] = []
        """The answers to the next requests of a held call."""
        self.got: list[httpx2.Request] = []
        """Requests that the server got."""
        server = httpx2.AsyncClient(
            transport=httpx2.MockTransport(self._serve), headers={"x-token": "secret"}
        )
        self.relay = Relay("http://server.test/mcp", server, self.proxy)
        self.app = self.relay.app(checked_hosts("127.0.0.1", 8092, ["proxy.example.com"]))
        self.http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app), base_url="http://127.0.0.1:8092"
        )

    def _serve(self, request: httpx2.Request) -> httpx2.Response:
        self.got.append(request)
        if self.replies:
            return self.replies.pop(0)(request)
        message = json.loads(request.content or b"{}")
        if "id" not in message:
            return httpx2.Response(202)
        result = {"tools": [DEPLOY]} if message.get("method") == "tools/list" else DONE
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def post(self, message: Any, **headers: str) -> httpx2.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(
            "/mcp", content=content, headers={"content-type": "application/json", **named}
        )

    async def called(self, *, meta: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
        """Call the tool, and give the answer."""
        response = await self.post(call(meta=meta), **headers)
        events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        answer: dict[str, Any] = json.loads(events[-1])
        assert answer["id"] == 1
        return answer

    @property
    def state(self) -> str:
        """Of the newest execution."""
        record = list(self.countersign.records.values())[-1]
        return str(record.shown["execution"]["state"])


def call(message_id: Any = 1, meta: dict[str, Any] | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "deploy", "arguments": CALL}
    params |= {"_meta": meta} if meta else {}
    return {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}


def text_of(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return str(answer["error"]["message"])
    return " ".join(block["text"] for block in answer["result"]["content"])


def broken(error: type[httpx2.TransportError]) -> Reply:
    def reply(request: httpx2.Request) -> httpx2.Response:
        raise error("broken", request=request)

    return reply


def answered(status: int = 200, **answer: Any) -> Reply:
    def reply(request: httpx2.Request) -> httpx2.Response:
        message_id = json.loads(request.content)["id"]
        return httpx2.Response(status, json={"jsonrpc": "2.0", "id": message_id, **answer})

    return reply


def plain(status: int, text: str = "") -> Reply:
    return lambda _: httpx2.Response(status, text=text)


def streamed(*lines: str) -> Reply:
    return lambda _: httpx2.Response(200, headers=EVENTS, text="\n".join(lines) + "\n\n")


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with Web(tmp_path) as made:
        made.countersign.policy = "allow"
        yield made


@pytest.mark.parametrize(
    ("replies", "words", "state"),
    [
        ([broken(httpx2.ConnectError)], "the server cannot be reached", "not_run"),
        ([broken(httpx2.ConnectTimeout)], "the server cannot be reached", "not_run"),
        ([broken(httpx2.ReadError)], "Its outcome is unknown", "unknown"),
        ([broken(httpx2.WriteError)], "Its outcome is unknown", "unknown"),
        ([plain(502, "<html>")], "Its outcome is unknown", "unknown"),
        ([plain(200)], "Its outcome is unknown", "unknown"),
        ([plain(202)], "Its outcome is unknown", "unknown"),
        ([streamed("data:")], "Its outcome is unknown", "unknown"),
        ([plain(404, "Session not found")], "the server refuses this with HTTP 404", "failed"),
        ([plain(307)], "the server refuses this with HTTP 307", "failed"),
        (
            [answered(400, error={"code": -32602, "message": "no such cluster"})],
            "no such cluster",
            "failed",
        ),
        ([answered(result=DONE)], "deployed", "ran"),
    ],
)
async def test_70_an_outcome_is_known_only_if_the_server_said_it(
    web: Web, replies: list[Reply], words: str, state: str
) -> None:
    web.replies = replies
    assert words in text_of(await web.called())
    await web.until(lambda: web.state == state)
    assert len(web.got) == 1


async def test_a_stream_that_breaks_off_is_taken_up_where_it_broke(web: Web) -> None:
    def rest(request: httpx2.Request) -> httpx2.Response:
        assert (request.method, request.headers["last-event-id"]) == ("GET", "7")
        own_id = json.loads(web.got[0].content)["id"]
        answer = {"jsonrpc": "2.0", "id": own_id, "result": DONE}
        return httpx2.Response(200, headers=EVENTS, text=f"data: {json.dumps(answer)}\n\n")

    web.replies = [streamed("id: 7", "retry: 0", "data:"), broken(httpx2.ReadError), rest]
    assert text_of(await web.called(mcp_session_id="s1")) == "deployed"
    assert [request.headers["mcp-session-id"] for request in web.got] == ["s1"] * 3
    await web.until(lambda: web.state == "ran")


async def test_a_stream_that_says_nothing_is_not_taken_up_for_ever(web: Web) -> None:
    web.replies = [streamed("id: 7", "retry: 0", "data:"), *(streamed(":") for _ in range(50))]
    assert "Its outcome is unknown" in text_of(await web.called(mcp_session_id="s1"))
    assert len(web.got) < 10


async def test_a_server_cannot_make_a_call_wait_for_ever(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONGEST_PAUSE", 0)
    web.replies = [streamed("id: 7", f"retry: {10**9}", "data:"), broken(httpx2.ReadError)]
    async with asyncio.timeout(60):
        assert "Its outcome is unknown" in text_of(await web.called(mcp_session_id="s1"))


@pytest.mark.parametrize("method", ["tools/call", "ping"])
async def test_an_answer_without_end_is_none(
    web: Web, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(http, "LARGEST_ANSWER", 1_000)
    web.replies = [answered(result={"content": [{"type": "text", "text": "x" * 2_000}]})]
    if method == "ping":
        response = await web.post({"jsonrpc": "2.0", "id": 1, "method": method})
        assert (response.status_code, "xxx" in response.text) == (502, False)
    else:
        assert "Its outcome is unknown" in text_of(await web.called())
        await web.until(lambda: web.state == "unknown")


async def test_the_log_has_no_secret_of_the_address(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    web.relay.url = "http://server.test/mcp?key=hunter2"
    web.replies = [broken(httpx2.ConnectError)]
    response = await web.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert response.status_code == 502
    assert "http://server.test/mcp does not answer" in caplog.text
    assert "hunter2" not in caplog.text + response.text


async def test_the_server_gets_its_own_credentials_and_nothing_else_of_the_client(
    web: Web,
) -> None:
    foreign = {"authorization": "Bearer csk_x", "cookie": "a=b", "mcp_name": "other"}
    await web.called(meta=MODERN, mcp_protocol_version="2026-07-28", **foreign)
    headers = web.got[-1].headers
    assert headers["x-token"] == "secret"
    assert not {"authorization", "cookie"} & {*headers}
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "deploy")


async def test_26_headers_that_mirror_arguments_are_those_of_the_decided_ones(web: Web) -> None:
    """A server may route by them, or believe them."""
    mirrored = json.loads(json.dumps(DEPLOY))
    mirrored["inputSchema"]["properties"]["env"]["x-mcp-header"] = "Env"
    await web.list_tools(mirrored)
    web.countersign.policy = "ask"
    calling = asyncio.create_task(web.called(meta=MODERN, mcp_param_env="harmless"))
    record = await web.asked()
    await web.do(lambda: web.countersign.approve(record))
    assert text_of(await calling) == "deployed"
    assert web.got[-1].headers["mcp-param-env"] == "production"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:8092.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"content_type": "text/plain"}, 400),
        ({"host": "localhost:8092"}, 200),
        ({"host": "proxy.example.com"}, 200),
        ({"host": "[::1]:8092"}, 421),
    ],
)
async def test_25_no_page_and_no_other_name_reaches_the_server(
    web: Web, headers: dict[str, str], status: int
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    response = await web.post(asked, **headers)
    assert response.status_code == status
    assert len(web.got) == (1 if status == 200 else 0)
    assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"Method":"tools/call"}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"deploy"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call"}',
        b"{",
        b"",
    ],
)
async def test_26_what_parsers_may_read_differently_is_never_passed(
    web: Web, content: bytes
) -> None:
    response = await web.post(content)
    assert response.status_code == 400
    assert "Nothing was passed on" in response.json()["error"]["message"]
    assert web.got == []


def test_the_name_of_an_address_of_ipv6_has_brackets() -> None:
    assert checked_hosts("::1", 8092, []).allowed_hosts == ["[::1]:8092", "localhost:8092"]


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_client_that_reads_nothing_can_still_give_up(web: Web, is_cancelled: bool) -> None:
    """Its first message of progress is not written yet."""
    web.countersign.policy = "ask"
    gone = asyncio.Event()
    message = call(meta={"progressToken": "p"})
    answering = asyncio.create_task(disconnected(web, message, gone, reads=False))
    record = await web.asked()
    if is_cancelled:
        stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await web.post(stop, mcp_session_id="s1")).status_code == 202
    gone.set()
    await answering
    assert record.shown["status"] == "pending"


async def test_other_messages_and_sessions_pass(web: Web) -> None:
    web.replies = [
        lambda request: httpx2.Response(
            200, headers={"mcp-session-id": "s1"}, json={"jsonrpc": "2.0", "id": 0, "result": {}}
        ),
        plain(202),
        plain(405, "no"),
        plain(204),
        broken(httpx2.ConnectError),
    ]
    began = await web.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    assert (began.headers["mcp-session-id"], began.json()["result"]) == ("s1", {})
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await web.post(note, mcp_session_id="s1")).status_code == 202
    headers = {"mcp-session-id": "s1", "last-event-id": "4"}
    assert (await web.http.get("/mcp", headers=headers)).status_code == 405
    assert (await web.http.delete("/mcp", headers=headers)).status_code == 204
    away = await web.post({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    assert (away.status_code, away.json()["id"]) == (502, 9)
    assert [request.method for request in web.got] == ["POST", "POST", "GET", "DELETE", "POST"]
    assert [request.headers.get("last-event-id") for request in web.got][2] == "4"


async def test_an_answer_of_a_user_to_the_server_passes(web: Web) -> None:
    """The server behind the proxy may ask the client's user; Countersign never does."""
    answer = {"jsonrpc": "2.0", "id": "e1", "result": {"action": "accept", "content": {"n": 1}}}
    web.replies = [plain(202)]
    assert (await web.post(answer, mcp_session_id="s1")).status_code == 202
    assert json.loads(web.got[0].content) == answer


async def test_what_the_server_asks_during_a_call_reaches_its_client(web: Web) -> None:
    asks = {"jsonrpc": "2.0", "id": "e1", "method": "elicitation/create", "params": {}}

    def reply(request: httpx2.Request) -> httpx2.Response:
        done = {"jsonrpc": "2.0", "id": json.loads(request.content)["id"], "result": DONE}
        text = f"data: {json.dumps(asks)}\n\ndata: {json.dumps(done)}\n\n"
        return httpx2.Response(200, headers=EVENTS, text=text)

    web.replies = [reply]
    response = await web.post(call())
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line[:5] == "data:"]
    assert events[0] == asks
    assert (events[1]["id"], text_of(events[1])) == (1, "deployed")


async def test_lists_keep_their_events_and_say_that_people_may_be_asked(web: Web) -> None:
    listed = {"jsonrpc": "2.0", "id": 3, "result": {"tools": [DEPLOY]}}
    web.replies = [streamed("id: 5", "retry: 9", "data:", "", f"data: {json.dumps(listed)}")]
    response = await web.post({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
    assert "id: 5" in response.text
    assert "retry: 9" in response.text
    assert "People may be asked first" in response.text
    assert "outputSchema" not in response.text


async def test_a_message_of_its_session_ends_the_wait_and_that_of_another_does_not(
    web: Web,
) -> None:
    web.countersign.policy = "ask"
    stop = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    calling = asyncio.create_task(web.post(call(meta={"progressToken": "p"}), mcp_session_id="s1"))
    await web.asked()
    assert (await web.post(stop, mcp_session_id="s2")).status_code == 202
    assert len(web.got) == 1  # the server knows whose that is
    assert (await web.post(stop, mcp_session_id="s1")).status_code == 202
    assert len(web.got) == 1
    lines = [line for line in (await calling).text.splitlines() if line.startswith("data: ")]
    assert [json.loads(line[6:])["method"] for line in lines] == ["notifications/progress"]
    record = await web.asked()
    assert record.shown["status"] == "pending"


async def test_two_clients_may_use_the_same_ids(web: Web) -> None:
    web.countersign.policy = "ask"
    calls = [asyncio.create_task(web.post(call())) for _ in range(2)]
    record = await web.asked()
    await web.do(lambda: web.countersign.approve(record))
    answers = [(await each).text for each in calls]
    assert all("deployed" in answer for answer in answers)
    assert len(web.got) == 1


@pytest.mark.parametrize(
    ("meta", "withdraws", "status"),
    [
        (None, True, "pending"),
        (MODERN, False, "pending"),
        (MODERN, True, "cancelled"),
    ],
)
async def test_a_client_that_goes_away_leaves_the_request(
    tmp_path: Path, meta: dict[str, Any] | None, withdraws: bool, status: str
) -> None:
    """To close the stream is to cancel the call from 2026-07-28 on; before, it may be a fault."""
    async with Web(tmp_path, withdraws=withdraws) as web:
        gone = asyncio.Event()
        answering = asyncio.create_task(disconnected(web, call(meta=meta), gone))
        record = await web.asked()
        gone.set()
        await answering
        await web.until(lambda: record.shown["status"] == status)
        if status == "pending":
            await web.do(lambda: web.countersign.approve(record))
            assert web.got == []  # nobody waits for it
            assert text_of(await web.called()) == "deployed"
            assert len(web.countersign.records) == 1


async def test_68_a_client_that_goes_away_during_the_run_gets_the_result_with_the_same_call(
    web: Web,
) -> None:
    gone, runs = asyncio.Event(), asyncio.Event()

    async def slow(request: httpx2.Request) -> httpx2.Response:
        web.got.append(request)
        gone.set()
        await runs.wait()
        return answered(result=DONE)(request)

    web.relay.http = httpx2.AsyncClient(transport=httpx2.MockTransport(slow))
    await disconnected(web, call(), gone)
    runs.set()
    await web.until(lambda: web.state == "ran")
    again = text_of(await web.called())
    assert "it ran once, and not again" in again
    assert again.endswith("deployed")
    assert len(web.got) == 1


async def disconnected(
    web: Web, message: dict[str, Any], gone: asyncio.Event, *, reads: bool = True
) -> None:
    """Send a message, and go away when an event comes."""
    body = [{"type": "http.request", "body": json.dumps(message).encode()}]

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        if not reads:
            await asyncio.Event().wait()

    headers = {"host": "127.0.0.1:8092", "content-type": "application/json"}
    headers |= {} if reads else {"mcp-session-id": "s1"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await web.app(scope, receive, send)
