"""The page's side door: what one person sees, live news, and that strangers stay out."""

from __future__ import annotations

import logging
from typing import Any

import aiohttp
import pytest
from aiohttp.web import WebSocketResponse

from slack_sandbox import ADA, BOT_USER, FINANCE, MIA, OPS, RANDOM, ROSA, Sandbox
from tests.unit.slack_sandbox.conftest import Slack, a_modal


async def get(web: aiohttp.ClientSession, path: str, **query: str) -> dict[str, Any]:
    async with web.get(path, params=query) as response:
        return dict(await response.json())


async def post(web: aiohttp.ClientSession, path: str, **body: Any) -> dict[str, Any]:
    async with web.post(path, json=body) as response:
        return dict(await response.json())


async def test_page_is_served_with_a_strict_policy(web: aiohttp.ClientSession) -> None:
    async with web.get("/") as response:
        assert response.content_type == "text/html"
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
    async with web.get("/page/app.js") as response:
        assert "javascript" in response.content_type


@pytest.mark.parametrize("name", ["..%2fserver.py", "server.py", "none.js", "%2e%2e/ids.py"])
async def test_only_page_files_are_served(web: aiohttp.ClientSession, name: str) -> None:
    async with web.get(f"/page/{name}") as response:
        assert response.status == 404


async def test_state_as_one_person(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    state = await get(web, "/sandbox/state", **{"as": ROSA})
    assert state["me"] == ROSA
    members = {channel["name"]: channel["member"] for channel in state["channels"]}
    assert (members["ops"], members["finance"]) == (True, False)
    assert [channel["with"] for channel in state["channels"] if channel["kind"] == "im"] == [
        BOT_USER
    ]
    assert state["bot"] == {"user_id": BOT_USER, "name": "countersign", "connected": False}
    assert next(person for person in state["people"] if person["id"] == ADA)["initials"] == "AL"


async def test_post_then_read(web: aiohttp.ClientSession) -> None:
    sent = await post(web, "/sandbox/post", **{"as": ROSA}, channel=OPS, text="hey @ada")
    assert sent["ok"]
    unread = (await get(web, "/sandbox/state", **{"as": ADA}))["channels"][0]["unread"]
    (message,) = (await get(web, "/sandbox/messages", **{"as": ADA}, channel=OPS))["messages"]
    seen = (await get(web, "/sandbox/state", **{"as": ADA}))["channels"][0]["unread"]
    assert (unread, seen) == (1, 0)
    assert (message["ts"], message["user"], message["bot"]) == (sent["ts"], ROSA, False)
    assert message["reactions"] == []


WRONG_POSTS: list[tuple[dict[str, Any], str]] = [
    ({"as": ROSA, "channel": FINANCE, "text": "x"}, "not_in_channel"),
    ({"as": "U0NOBODY01", "channel": OPS, "text": "x"}, "user_not_found"),
    ({"as": ROSA, "channel": OPS, "text": ""}, "no_text"),
    ({"as": ROSA, "channel": OPS, "text": "x" * 12_001}, "msg_too_long"),
    ({"as": ROSA, "channel": OPS, "text": "x", "values": {"a": 1}}, "invalid_arguments"),
]


@pytest.mark.parametrize(("body", "error"), WRONG_POSTS)
async def test_post_is_refused(
    web: aiohttp.ClientSession, body: dict[str, Any], error: str
) -> None:
    assert await post(web, "/sandbox/post", **body) == {"ok": False, "error": error}


async def test_others_do_not_read_ephemerals_or_closed_rooms(
    web: aiohttp.ClientSession, slack: Slack
) -> None:
    await slack.ok("chat.postEphemeral", channel=OPS, user=ADA, text="psst")
    mine = await get(web, "/sandbox/messages", **{"as": ADA}, channel=OPS)
    theirs = await get(web, "/sandbox/messages", **{"as": ROSA}, channel=OPS)
    assert [message["ephemeral"] for message in mine["messages"]] == [True]
    assert theirs["messages"] == []
    closed = await get(web, "/sandbox/messages", **{"as": ROSA}, channel=FINANCE)
    assert closed["error"] == "not_in_channel"


async def test_news_reach_those_who_may_see_them(
    web: aiohttp.ClientSession, slack: Slack, sandbox: Sandbox
) -> None:
    async with (
        web.ws_connect("/sandbox/ws", params={"as": ADA}) as ada,
        web.ws_connect("/sandbox/ws", params={"as": MIA}) as mia,
    ):
        await slack.ok("chat.postEphemeral", channel=OPS, user=ADA, text="psst")
        ts = await sandbox.say(ROSA, OPS, "hello")
        assert (await ada.receive_json())["message"]["ephemeral"] is True
        assert (await ada.receive_json())["message"]["ts"] == ts
        assert (await mia.receive_json())["message"]["ts"] == ts
        await slack.ok(
            "assistant.threads.setStatus", channel_id=OPS, thread_ts=ts, status="is thinking"
        )
        assert (await mia.receive_json())["text"] == "is thinking"
        await sandbox.remove(OPS, ts)
        assert (await mia.receive_json()) == {"type": "message_deleted", "channel": OPS, "ts": ts}


async def test_a_page_that_is_left_while_it_opens_is_no_fault(
    web: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(*_: object) -> None:
        raise aiohttp.ClientConnectionResetError

    monkeypatch.setattr(WebSocketResponse, "prepare", gone)
    async with web.get("/sandbox/ws", params={"as": ADA}) as answer:
        assert answer.status == 410
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_open_modal_is_shown_to_a_new_window(
    web: aiohttp.ClientSession, slack: Slack, sandbox: Sandbox
) -> None:
    trigger_id = sandbox.workspace.triggers.issue(ADA)
    view = (await slack.ok("views.open", trigger_id=trigger_id, view=a_modal()))["view"]
    async with web.ws_connect("/sandbox/ws", params={"as": ADA}) as ada:
        assert (await ada.receive_json())["view"]["id"] == view["id"]
        closed = await post(web, "/sandbox/close", **{"as": ADA}, view_id=view["id"], all=True)
        assert closed == {"ok": True}
        assert (await ada.receive_json()) == {
            "type": "view_closed",
            "view_id": view["id"],
            "all": True,
        }


async def test_permalink_leads_to_the_thread(web: aiohttp.ClientSession) -> None:
    async with web.get(f"/archives/{OPS}/p1800000000000001", allow_redirects=False) as response:
        assert response.status == 302
        assert response.headers["Location"] == f"/?channel={OPS}&thread=1800000000.000001"


FOREIGN: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("path", ["/sandbox/state", "/sandbox/ws?as=" + ADA, "/sandbox/post"])
async def test_foreign_pages_stay_out(
    web: aiohttp.ClientSession, sandbox: Sandbox, path: str, headers: dict[str, str]
) -> None:
    method = "POST" if path.endswith("post") else "GET"
    body = {"as": ROSA, "channel": RANDOM, "text": "x"} if method == "POST" else None
    async with web.request(method, path, json=body, headers=headers) as response:
        assert response.status == 403
    assert sandbox.messages(RANDOM) == []


async def test_form_posts_stay_out(web: aiohttp.ClientSession) -> None:
    async with web.post("/sandbox/post", data='{"as": "x"}') as response:
        assert response.status == 415
