"""Signed requests with anything in them, through the whole bot over HTTP.

Never a traceback in an answer or in a private one, never an effect, and always an answer in time.
Whoever sends these knows the signing secret: they are what a fault of Slack's, a new kind of
payload, or a person with a debugger makes.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from bot.sandbox.people import ADA, GUS, OPS, ROSA, TEAM
from bot.sandbox.records import Person
from storage.base import Storage
from storage.records import Approval, Status
from tests.chaos.agent import EFFECTS, effects
from tests.property.mutations import spoiled, spoiled_at
from tests.stage import SECRET, Stage, a_stage

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
APPROVE, REJECT, EDIT = "countersign:approve", "countersign:reject", "countersign:edit"
IN_TIME_S = 3.0
ANSWERS = frozenset({200, 400, 401, 404})
"""What an answer may be while the database is there."""
EVE = "U9EVEOTHER"
"""Of another company, in a channel that is shared with it."""
SIS = "W8SISTER01"
"""Of another workspace of the same organisation."""
LEAKS = re.compile(r"Traceback|File \"|\b[A-Z][A-Za-z]+(Error|Exception)\b|site-packages")
"""What nobody outside may see."""
FEW = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@dataclass
class Edge:
    """The bot as Slack sees it, with one card that waits.

    Attributes:
        stage: The bot, and what stands for Slack.
        session: Sends.
        file: What tools did.
        approval: The record of the card.
        payloads: By kind: what Slack would send now.
        is_strict: Whether even an event that is none is acknowledged; see the expected failure.
    """

    stage: Stage
    session: aiohttp.ClientSession
    file: Path
    approval: Approval
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_strict: bool = False

    @property
    def storage(self) -> Storage:
        assert self.stage.bot is not None
        return self.stage.bot.desk.storage

    async def send(self, payload: Any, kind: str = "") -> str:
        """Send a payload as Slack would send one of that kind; check the answer, and return it."""
        if kind in {"command", "ssl_check"} and isinstance(payload, dict):
            flat = {str(key): _flat(value) for key, value in payload.items()}
            return await self.post(urlencode(flat, errors="replace").encode(), FORM)
        text = json.dumps(payload)
        more = {503} if has_no_type(payload) and not self.is_strict else set()
        if kind.startswith("event"):
            return await self.post(text.encode(), JSON, allowed=ANSWERS | more)
        body = urlencode({"payload": text}).encode()
        return await self.post(body, FORM, allowed=ANSWERS | more)

    async def post(
        self, body: bytes, content_type: str, *, allowed: frozenset[int] = ANSWERS
    ) -> str:
        """Send anything, signed; check the answer, and return it."""
        url = self.stage.sandbox.events_url
        assert url is not None
        begin = time.monotonic()
        headers = {**signed(body), "Content-Type": content_type}
        async with self.session.post(url, data=body, headers=headers) as answer:
            text = await answer.text()
        assert answer.status in allowed, (answer.status, text)
        assert time.monotonic() - begin < IN_TIME_S
        assert not LEAKS.search(text), text
        return text

    async def is_untouched(self) -> None:
        """Nothing was decided, and nothing happened."""
        now = await self.storage.approvals.get(self.approval.approval_id)
        assert (now.status, now.decision) == (Status.PENDING, None)
        assert effects(self.file) == []

    async def whispers(self) -> list[str]:
        """All private answers: those that were told, and those that wait for their turn."""
        told = [
            str(one.args.get("text"))
            for one in self.stage.sandbox.calls
            if one.method == "chat.postEphemeral"
        ]
        waiting = await self.storage.whispers.due(now_ms=10**15, limit=10_000)
        return told + [one.text for one in waiting]

    async def nothing_leaked(self) -> None:
        """Nobody was told what only a log may say."""
        for text in [*await self.whispers(), *self.stage.texts()]:
            assert not LEAKS.search(text), text


def has_no_type(payload: Any) -> bool:
    """Whether it holds an event of which nobody can say what it is."""
    if not isinstance(payload, dict) or payload.get("type") != "event_callback":
        return False
    event = payload.get("event")
    return not isinstance(event, dict) or not isinstance(event.get("type"), str)


def _flat(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def signed(body: bytes) -> dict[str, str]:
    stamp = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


@pytest.fixture
async def edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Edge]:
    monkeypatch.setenv(EFFECTS, str(tmp_path / "effects"))
    agent = {"COUNTERSIGN_AGENT": "tests.chaos.agent:build"}
    async with a_stage(tmp_path, "http", **agent) as stage, aiohttp.ClientSession() as session:
        for id_, team, is_stranger in ((EVE, "T9OTHERCOR", True), (SIS, "T8SISTER00", False)):
            stage.sandbox.workspace.people[id_] = Person(
                id=id_, name=id_.lower(), real_name=id_, team_id=team, is_stranger=is_stranger
            )
            stage.sandbox.workspace.channels[OPS].members.append(id_)
        await stage.say("Rosa", "@countersign please do job 1")  # a refund, which can be edited
        card = await stage.card(word=EDIT)
        assert stage.bot is not None
        approvals = stage.bot.desk.storage.approvals
        approval = await approvals.get(card["metadata"]["event_payload"]["id"])
        made = Edge(stage, session, tmp_path / "effects", approval)
        made.payloads = await payloads_of(stage, card)
        yield made
        await made.is_untouched()
        await made.nothing_leaked()


# ---- what Slack sends ---------------------------------------------------------------------------


async def payloads_of(stage: Stage, card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One payload of each kind; those of the card are Ada's, and are given to others later."""
    sandbox = stage.sandbox
    click = sandbox.payload_of_click(ADA, OPS, card["ts"], APPROVE)
    actor = {key: click[key] for key in ("user", "team", "enterprise", "api_app_id", "token")}
    more = {**actor, "is_enterprise_install": False, "trigger_id": click["trigger_id"]}
    found: dict[str, dict[str, Any]] = {"click": click}
    for name in (REJECT, EDIT):
        await stage.click("Ada", card, name)
        view = await stage.modal("Ada")
        submission = {"type": "view_submission", **more, "view": view, "response_urls": []}
        found[f"submission {name}"] = submission
        await sandbox.close_view(ADA, view, everything=True)
    view = copy.deepcopy(found[f"submission {EDIT}"]["view"])
    action = click["actions"][0]
    found |= {
        "closed": {"type": "view_closed", **more, "view": view, "is_cleared": True},
        "click in modal": {
            "type": "block_actions",
            **more,
            "view": view,
            "actions": [action],
            "container": {"type": "view", "view_id": view["id"]},
        },
        "click in home": {
            "type": "block_actions",
            **more,
            "actions": [action],
            "view": {**view, "type": "home", "callback_id": "", "state": {"values": {}}},
            "container": {"type": "view", "view_id": view["id"]},
        },
        "options": {
            "type": "block_suggestion",
            **more,
            "action_id": APPROVE,
            "block_id": "b",
            "value": "x",
            "container": click["container"],
            "channel": click["channel"],
        },
        "shortcut": {"type": "shortcut", **more, "callback_id": APPROVE, "action_ts": "1.1"},
        "message shortcut": {
            "type": "message_action",
            **more,
            "callback_id": REJECT,
            **{key: click[key] for key in ("channel", "message", "response_url")},
        },
    }
    return found | events_of(stage) | commands_of(stage)


def events_of(stage: Stage) -> dict[str, dict[str, Any]]:
    """Events; the messages are a guest's and a stranger's."""
    ts = "1800000000.000100"
    message = {
        "type": "message",
        "user": GUS,
        "text": "<@U0COUNTERS> do job 1",
        "ts": ts,
        "team": TEAM,
        "channel": OPS,
        "channel_type": "channel",
        "event_ts": ts,
        "blocks": [{"type": "rich_text", "block_id": "b", "elements": []}],
    }
    shared = {"user": EVE, "user_team": "T9OTHERCOR", "source_team": "T9OTHERCOR"}
    events: dict[str, dict[str, Any]] = {
        "message": message,
        "mention": {**message, **shared, "type": "app_mention"},
        "reply": {**message, "thread_ts": stage.messages()[0]["ts"], "text": "approve"},
        "changed": {
            "type": "message",
            "subtype": "message_changed",
            "channel": OPS,
            "ts": ts,
            "message": message,
            "previous_message": message,
            "hidden": True,
        },
        "home": {"type": "app_home_opened", "user": GUS, "channel": "D0GUSGUEST", "tab": "home"},
        "joined": {"type": "member_joined_channel", "user": GUS, "channel": OPS, "team": TEAM},
        "revoked": {"type": "tokens_revoked", "tokens": {"oauth": [GUS], "bot": []}},
    }
    outer = {
        "type": "event_callback",
        "token": "x",
        "team_id": TEAM,
        "api_app_id": "A0COUNTERS",
        "event_id": "Ev0",
        "event_time": 1,
        "is_ext_shared_channel": True,
        "authorizations": [
            {"enterprise_id": None, "team_id": TEAM, "user_id": "U0COUNTERS", "is_bot": True}
        ],
    }
    found = {f"event {name}": {**outer, "event": event} for name, event in events.items()}
    return found | {
        "event limited": {"type": "app_rate_limited", "team_id": TEAM, "minute_rate_limited": 1},
        "event address": {"type": "url_verification", "challenge": "proof", "token": "x"},
    }


def commands_of(stage: Stage) -> dict[str, dict[str, Any]]:
    """What comes as a plain form."""
    command = {
        "token": "x",
        "team_id": TEAM,
        "team_domain": "acme",
        "channel_id": OPS,
        "channel_name": "ops",
        "user_id": GUS,
        "user_name": "gus",
        "command": "/countersign",
        "text": "approve all",
        "api_app_id": "A0COUNTERS",
        "trigger_id": "1.2.3",
        "is_enterprise_install": "false",
        "response_url": f"{stage.sandbox.url}/actions/T/x",
    }
    return {"command": command, "ssl_check": {"ssl_check": "1", "token": "x"}}


def by(payload: Mapping[str, Any], user_id: str, team_id: str = TEAM) -> dict[str, Any]:
    """The same by somebody else."""
    if "user" not in payload:
        return dict(payload)
    return {**payload, "user": {"id": user_id, "team_id": team_id, "name": "x", "username": "x"}}


# ---- anything in it -----------------------------------------------------------------------------


@FEW
@given(data=st.data())
async def test_i1_spoiled_payloads_of_people_who_decide_nothing(
    edge: Edge, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(sorted(edge.payloads)))
    who = data.draw(st.sampled_from([ROSA, GUS, EVE, "U0NOBODY00", ""]))
    team = "T9OTHERCOR" if who == EVE else TEAM
    payload = data.draw(spoiled(by(edge.payloads[kind], who, team)))
    await edge.send(payload, data.draw(st.sampled_from([kind, kind, kind, "event", "click"])))
    await edge.is_untouched()


WHO = (("user", "id"), ("user",))
ABOUT_CLICK = (("actions",), ("actions", 0), ("actions", 0, "value"), ("actions", 0, "action_id"))
ABOUT_FORM = (("type",), ("view",), *(("view", name) for name in ("callback_id", "state")))


@FEW
@given(data=st.data())
async def test_i1_i2_what_counts_is_spoiled_in_payloads_of_somebody_who_decides(
    edge: Edge, data: st.DataObject
) -> None:
    kinds = ["click", "click in modal", f"submission {REJECT}", f"submission {EDIT}"]
    kind = data.draw(st.sampled_from(kinds))
    ways = (("view", "private_metadata"), *ABOUT_FORM) if "submission" in kind else ABOUT_CLICK
    payload = data.draw(spoiled_at(edge.payloads[kind], *WHO, *ways))
    await edge.send(payload, kind)
    await edge.is_untouched()


@FEW
@given(data=st.data())
async def test_bodies_that_are_no_payloads(edge: Edge, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(edge.payloads)))
    whole = json.dumps(by(edge.payloads[name], GUS)).encode()
    kind = data.draw(st.sampled_from([JSON, FORM, "text/plain", "multipart/form-data", ""]))
    at, body = data.draw(st.integers(0, len(whole))), whole
    match data.draw(st.sampled_from(["cut", "bytes", "form", "twice", "noise"])):
        case "cut":
            body = whole[:at]
        case "bytes":
            body = whole[:at] + data.draw(st.binary(min_size=1, max_size=4)) + whole[at:]
        case "form":
            body = b"payload=" + whole[:at]  # not quoted
        case "twice":
            body = whole + whole
        case _:
            body = data.draw(st.binary(max_size=200))
    await edge.post(body, kind)
    await edge.is_untouched()


# ---- organisations, shared channels, guests -----------------------------------------------------

NOT_OURS = "only for people of this workspace"
GRID = {"team": None, "enterprise": {"id": "E9GRID", "name": "Grid"}, "is_enterprise_install": True}
CROWD = [
    ("guest", GUS, TEAM, {}, "guests cannot do this"),
    ("guest on grid", GUS, TEAM, GRID, "guests cannot do this"),
    ("requester", ROSA, TEAM, {}, "you asked for this"),
    ("requester on grid", ROSA, TEAM, GRID, "you asked for this"),
    ("shared channel", EVE, "T9OTHERCOR", {}, NOT_OURS),
    ("shared channel, with our team", EVE, TEAM, {}, NOT_OURS),
    ("shared channel on grid", EVE, "T9OTHERCOR", GRID, NOT_OURS),
    ("another workspace of the grid", SIS, "T8SISTER00", GRID, NOT_OURS),
    ("another workspace, with our team", SIS, TEAM, GRID, NOT_OURS),
]


@pytest.mark.parametrize(("who", "team", "more", "told"), [one[1:] for one in CROWD])
async def test_i7_people_of_elsewhere_are_told_why_not(
    edge: Edge, who: str, team: str, more: dict[str, Any], told: str
) -> None:
    await edge.send({**by(edge.payloads["click"], who, team), **more}, "click")
    assert told in "".join(await edge.whispers())
    form = {**by(edge.payloads[f"submission {REJECT}"], who, team), **more}
    assert told in await edge.send(form, "submission")


@pytest.mark.xfail(
    strict=True,
    reason="bot/listeners/errors.py, _answer_event: an event that Bolt itself cannot match is "
    "answered with 503, as if the database were away, and Slack sends it three times more",
)
@pytest.mark.parametrize("event", ["text", [], ["text"], {"type": ["message"]}, {"type": None}])
async def test_an_event_that_is_none_is_acknowledged(edge: Edge, event: object) -> None:
    edge.is_strict = True
    await edge.send({**edge.payloads["event message"], "event": event}, "event")
