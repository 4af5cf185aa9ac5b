"""The control API and the panel's switches, over HTTP as other processes use them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.web import RouteDef

from slack_sandbox import ADA, BEN, BOT_USER, FINANCE, MIA, ONCALL, OPS, ROSA, Sandbox
from slack_sandbox.web.control import Control
from slack_sandbox.web.panel import SWITCHES
from tests.unit.slack_sandbox.conftest import Slack


async def get(web: aiohttp.ClientSession, path: str) -> dict[str, Any]:
    async with web.get(f"/control/{path}") as response:
        return dict(await response.json())


async def post(web: aiohttp.ClientSession, path: str, **body: Any) -> dict[str, Any]:
    async with web.post(f"/control/{path}", json=body) as response:
        return dict(await response.json())


async def delete(web: aiohttp.ClientSession, path: str) -> dict[str, Any]:
    async with web.delete(f"/control/{path}") as response:
        return dict(await response.json())


async def test_rule_is_added_shown_and_removed(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack
) -> None:
    added = await post(web, "faults", effect="error", match="chat.*", error="fatal_error")
    assert added["ok"]
    assert await slack.error("chat.postMessage", channel=OPS, text="x") == "fatal_error"
    shown = await get(web, "faults")
    assert shown["faults"][0]["match"] == "chat.*"
    assert shown["hits"] == {added["id"]: 1}
    assert (await delete(web, f"faults/{added['id']}"))["ok"]
    assert (await delete(web, f"faults/{added['id']}"))["error"] == "no_such_fault"
    await slack.ok("chat.postMessage", channel=OPS, text="x")


async def test_all_rules_are_removed(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    await post(web, "faults", effect="drop", on="event", times=3)
    assert (await delete(web, "faults"))["ok"]
    assert len(sandbox.faults) == 0


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("faults", {"effect": "nonsense"}, "invalid_fault"),
        ("faults", {}, "invalid_fault"),
        ("faults", {"effect": "cut", "no_such_field": 1}, "invalid_fault"),
        ("faults", {"effect": "cut", "every": "two"}, "invalid_fault"),
        ("faults", {"effect": ["cut"]}, "invalid_fault"),
        ("switch", {"key": "nonsense", "on": True}, "no_such_switch"),
        ("switch", {"key": "slow", "on": "yes"}, "invalid_arguments"),
        ("switch", {"on": True}, "invalid_arguments"),
        ("disconnect", {"reason": "boredom"}, "invalid_arguments"),
        ("disconnect", {"grace": -1}, "invalid_arguments"),
        ("channel", {"channel": "C0NOWHERE1", "archived": True}, "channel_not_found"),
        ("token", {"error": "nonsense"}, "invalid_arguments"),
        ("token", {"of": "user", "error": None}, "invalid_arguments"),
        ("delete", {"channel": OPS, "ts": "1.1"}, "message_not_found"),
        ("channel", {"channel": OPS, "user": ADA}, "invalid_arguments"),
        ("channel", {"channel": OPS, "user": "U0NOBODY01", "member": True}, "user_not_found"),
        (
            "channel",
            {"channel": "D0ADALINDQ", "user": ADA, "member": False},
            "method_not_supported_for_channel_type",
        ),
        ("group", {"group": "nobody", "user": ADA, "member": True}, "no_such_subteam"),
        ("group", {"group": "nobody", "user": ADA, "member": False}, "no_such_subteam"),
        ("group", {"group": "oncall", "user": "U0NOBODY01", "member": True}, "user_not_found"),
        ("group", {"group": "oncall", "user": ADA, "member": "yes"}, "invalid_arguments"),
        ("group", {"user": ADA, "member": True}, "invalid_arguments"),
        ("time", {"seconds": 60}, "no_time_skip"),
        ("time", {"seconds": -1}, "invalid_arguments"),
        ("time", {"seconds": float("nan")}, "invalid_json"),
        ("time", {"seconds": float("inf")}, "invalid_json"),
        ("time", {"seconds": float("-inf")}, "invalid_json"),
        ("time", {"seconds": 10**400}, "invalid_arguments"),
        ("cut", {"number": float("inf")}, "invalid_json"),
        ("spread", {"seed": float("nan")}, "invalid_json"),
        ("disconnect", {"grace": float("inf")}, "invalid_json"),
        ("disconnect", {"grace": 10**400}, "invalid_arguments"),
        ("limits", {"method": "chat.update", "most": 1, "seconds": 10**30}, "invalid_arguments"),
        ("faults", {"effect": "cut", "after": float("nan")}, "invalid_json"),
        ("person", {"user": "U0NOBODY01", "deactivated": True}, "user_not_found"),
        ("limits", {"method": "chat.update", "most": True}, "invalid_arguments"),
    ],
)
async def test_nonsense_is_refused(
    web: aiohttp.ClientSession, sandbox: Sandbox, path: str, body: dict[str, Any], error: str
) -> None:
    assert (await post(web, path, **body))["error"] == error
    assert sandbox.troubles == 0


ODD_BODIES = [
    ("{", "invalid_json"),
    ("[]", "json_not_object"),
    ('{"seconds": 1e999}', "invalid_json"),
    ("[" * 100_000, "invalid_json"),
]


@pytest.mark.parametrize(("text", "error"), ODD_BODIES)
async def test_odd_bodies_are_refused(web: aiohttp.ClientSession, text: str, error: str) -> None:
    headers = {"Content-Type": "application/json"}
    async with web.post("/control/calm", data=text, headers=headers) as response:
        assert (await response.json())["error"] == error


async def test_other_sites_are_kept_out(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    foreign = {"Origin": "https://evil.example"}
    async with web.post("/control/calm", json={}, headers=foreign) as response:
        assert response.status == 403
    async with web.delete("/control/faults", headers={"Sec-Fetch-Site": "cross-site"}) as response:
        assert response.status == 403
    async with web.get("/control/stats", headers={"Host": "evil.example"}) as response:
        assert response.status == 403
    async with web.post("/control/calm", data="{}") as response:
        assert response.status == 415


async def test_world_is_changed(web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack) -> None:
    ts = (await slack.ok("chat.postMessage", channel=OPS, text="x"))["ts"]
    await post(web, "channel", channel=OPS, archived=True)
    assert await slack.error("chat.postMessage", channel=OPS, text="x") == "is_archived"
    for _ in range(2):
        assert (await post(web, "channel", channel=OPS, archived=False, bot=False))["ok"]
    assert await slack.error("chat.postMessage", channel=OPS, text="x") == "not_in_channel"
    await post(web, "channel", channel=OPS, bot=True)
    await post(web, "delete", channel=OPS, ts=ts)
    assert await slack.error("chat.update", channel=OPS, ts=ts, text="x") == "message_not_found"
    await post(web, "token", error="account_inactive")
    assert await slack.error("auth.test") == "account_inactive"
    await post(web, "token", error=None)
    await post(web, "person", user=ADA, deactivated=True)
    assert (await slack.ok("users.info", user=ADA))["user"]["deleted"] is True
    await post(web, "person", user=ADA, zone=None)
    assert (await slack.ok("users.info", user=ADA))["user"]["tz"] is None
    assert (await post(web, "person", user=ADA, zone="Moon"))["error"] == "invalid_arguments"


@pytest.mark.parametrize("name", ["oncall", ONCALL])
async def test_group_gets_and_loses_members(
    web: aiohttp.ClientSession, slack: Slack, name: str
) -> None:
    for _ in range(2):
        assert (await post(web, "group", group=name, user=MIA, member=True))["ok"]
        assert (await slack.ok("usergroups.users.list", usergroup=ONCALL))["users"] == [
            ADA,
            BEN,
            MIA,
        ]
    for _ in range(2):
        assert (await post(web, "group", group=name, user=ADA, member=False))["ok"]
        assert (await slack.ok("usergroups.users.list", usergroup=ONCALL))["users"] == [BEN, MIA]


async def test_channel_gets_and_loses_members(web: aiohttp.ClientSession, slack: Slack) -> None:
    for _ in range(2):
        assert (await post(web, "channel", channel=FINANCE, user=ROSA, member=True))["ok"]
        members = await slack.ok("conversations.members", channel=FINANCE)
        assert members["members"] == [ADA, MIA, BOT_USER, ROSA]
    for _ in range(2):
        assert (await post(web, "channel", channel=FINANCE, user=ADA, member=False))["ok"]
        members = await slack.ok("conversations.members", channel=FINANCE)
        assert members["members"] == [MIA, BOT_USER, ROSA]


class FakeTime:
    """A clock that can be put forward while nobody is busy."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        self.due_ms: int | None = None
        self.is_busy = False

    def __call__(self) -> int:
        return 1_800_000_000_000 + self.ahead_ms

    async def skip_to(self, at_ms: int) -> bool:
        if not self.is_busy:
            self.ahead_ms += at_ms - self()
        return not self.is_busy

    async def next_due_ms(self) -> int | None:
        return self.due_ms


async def test_time_is_skipped(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    assert (await get(web, "time"))["error"] == "no_time_skip"
    sandbox.time = clock = FakeTime()
    begin = {"ok": True, "now": 1_800_000_000.0, "ahead": 0.0, "next": None}
    assert await get(web, "time") == begin
    later = await post(web, "time", seconds=90)
    assert later == {**begin, "now": 1_800_000_090.0, "ahead": 90.0}
    clock.due_ms = clock() + 10_000
    assert (await post(web, "time"))["ahead"] == 100.0
    assert (await post(web, "time", seconds=1e12))["ahead"] == 100.0 + 30 * 86_400


async def test_time_stands_when_nothing_is_due_or_somebody_is_at_work(
    web: aiohttp.ClientSession, sandbox: Sandbox
) -> None:
    sandbox.time = clock = FakeTime()
    assert (await post(web, "time"))["error"] == "nothing_due"
    clock.is_busy = True
    assert (await post(web, "time", seconds=90))["error"] == "app_busy"
    assert clock.ahead_ms == 0


async def test_limits_triggers_and_calm(
    web: aiohttp.ClientSession, sandbox: Sandbox, slack: Slack
) -> None:
    await post(web, "limits", method="auth.test", most=1, seconds=60)
    await slack.ok("auth.test")
    assert await slack.error("auth.test") == "ratelimited"
    await post(web, "limits", on=False)
    await slack.ok("auth.test")
    trigger = sandbox.workspace.triggers.issue(ADA)
    await post(web, "triggers")
    view = {"type": "modal"}
    assert await slack.error("views.open", trigger_id=trigger, view=view) != "ok"
    await post(web, "spread", seed=4)
    await post(web, "limits", on=True)
    assert (await post(web, "calm"))["ok"]
    assert sandbox.troubles == 0


async def test_connections_are_ended(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    answer = await Slack(sandbox).client.apps_connections_open(app_token=sandbox.app_token)
    async with web.ws_connect(answer["url"]) as socket:
        await socket.receive_json()
        assert (await get(web, "panel"))["connections"] == 1
        await post(web, "disconnect", reason="warning", grace=600)
        assert (await socket.receive_json())["reason"] == "warning"
        await post(web, "cut", number=0)
        assert (await socket.receive()).type is not aiohttp.WSMsgType.TEXT
        await sandbox.until(lambda: sandbox.connections == 0)


async def test_numbers_can_be_read_and_reset(web: aiohttp.ClientSession, slack: Slack) -> None:
    await slack.ok("auth.test")
    stats = await get(web, "stats")
    assert stats["calls"] == {"auth.test": 1}
    assert (stats["doubles"], stats["lost_events"], stats["bad_answers"]) == ({}, [], [])
    assert stats["is_idle"] is True
    await delete(web, "stats")
    assert (await get(web, "stats"))["calls"] == {}


@pytest.mark.parametrize("key", [switch.key for switch in SWITCHES])
async def test_each_switch_goes_on_and_off(
    web: aiohttp.ClientSession, sandbox: Sandbox, key: str
) -> None:
    for wanted in (True, True, False, False):
        shown = await post(web, "switch", key=key, on=wanted)
        assert {switch["key"] for switch in shown["switches"] if switch["on"]} == (
            {key} if wanted else set()
        )
        assert sandbox.troubles == int(wanted)


async def test_panel_tells_of_rules_from_elsewhere(
    web: aiohttp.ClientSession, sandbox: Sandbox
) -> None:
    sandbox.faults.add("cut", times=1)
    await post(web, "switch", key="duplicates", on=True)
    assert (await get(web, "panel"))["others"] == 1
    async with web.get("/sandbox/state") as response:
        assert (await response.json())["troubles"] == 2


PAGE = Path(__file__).parents[4] / "docs" / "reference" / "sandbox.md"
ROW = re.compile(r"^\| `(GET|POST|DELETE) /control/(\w+)` \| (?:`(\{.*?\})` )?\|", re.MULTILINE)


async def test_each_request_of_the_page_works(web: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    sandbox.time = FakeTime()
    rows = ROW.findall(PAGE.read_text("utf-8"))
    control = Control(sandbox, list)
    assert {(method, f"/control/{name}") for method, name, _ in rows} == {
        (route.method, route.path)
        for route in control.routes()
        if isinstance(route, RouteDef) and "{" not in route.path
    }
    for method, name, body in rows:
        given = json.loads(body or "{}")
        if name == "delete":
            given = {"channel": OPS, "ts": await sandbox.say(ROSA, OPS, "x")}
        async with web.request(method, f"/control/{name}", json=given) as response:
            assert (await response.json())["ok"], (method, name)
