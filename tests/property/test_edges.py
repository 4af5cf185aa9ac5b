"""Signed requests with anything in them, through the whole bot over HTTP.

Never a traceback in an answer or in a private one, never an effect, and always an answer in time.
Whoever sends these knows the signing secret: they are what a fault of Slack's, a new kind of
payload, or a person with a debugger makes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st

from bot.records.approval import Approval, Status
from bot.stores import Stores
from slack_sandbox.workspace.people import GUS, OPS, ROSA, TEAM
from slack_sandbox.workspace.records import SlackUser
from tests.chaos.agent import EFFECTS, effects
from tests.property.worlds.mutations import spoiled, spoiled_at
from tests.property.worlds.payloads import EDIT, EVE, REJECT, by, payloads_of
from tests.support.stage import SECRET, Stage, a_stage

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
IN_TIME_S = 30.0
"""Slack waits for 3 s; a busy machine has ten times as long."""
ANSWERS = frozenset({200, 400, 401, 404})
"""What an answer may be while the database is there."""
SIS = "W8SISTER01"
"""Of another workspace of the same organisation."""
LEAKS = re.compile(r"Traceback|File \"|\b[A-Z][A-Za-z]+(Error|Exception)\b|site-packages")
"""What nobody outside may see."""
FEW = settings(
    deadline=None,
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
    """

    stage: Stage
    session: aiohttp.ClientSession
    file: Path
    approval: Approval
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def storage(self) -> Stores:
        assert self.stage.bot is not None
        return self.stage.bot.storage

    async def send(self, payload: Any, kind: str = "") -> str:
        """Send a payload as Slack would send one of that kind; check the answer, and return it."""
        if kind in {"command", "ssl_check"} and isinstance(payload, dict):
            flat = {str(key): _flat(value) for key, value in payload.items()}
            return await self.post(urlencode(flat, errors="replace").encode(), FORM)
        text = json.dumps(payload)
        if kind.startswith("event"):
            return await self.post(text.encode(), JSON)
        body = urlencode({"payload": text}).encode()
        return await self.post(body, FORM)

    async def post(self, body: bytes, content_type: str) -> str:
        """Send anything, signed; check the answer, and return it."""
        url = self.stage.sandbox.events_url
        assert url is not None
        begin = time.monotonic()
        headers = {**signed(body), "Content-Type": content_type}
        async with self.session.post(url, data=body, headers=headers) as answer:
            text = await answer.text()
        assert answer.status in ANSWERS, (answer.status, text)
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
        texts = [
            str(call.args.get("text"))
            for call in self.stage.sandbox.calls
            if call.method == "chat.postEphemeral"
        ]
        waiting = await self.storage.ephemeral_messages.due(now_ms=10**15, limit=10_000)
        return texts + [message.text for message in waiting]

    async def nothing_leaked(self) -> None:
        """Nobody was told what only a log may say."""
        for text in [*await self.whispers(), *self.stage.texts()]:
            assert not LEAKS.search(text), text


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
            stage.sandbox.workspace.people[id_] = SlackUser(
                id=id_, name=id_.lower(), real_name=id_, team_id=team, is_stranger=is_stranger
            )
            stage.sandbox.workspace.channels[OPS].members.append(id_)
        await stage.say("Rosa", "@countersign please do job 1")  # a refund, which can be edited
        card = await stage.card(word=EDIT)
        assert stage.bot is not None
        approvals = stage.bot.storage.approvals
        approval = await approvals.get(card["metadata"]["event_payload"]["id"])
        made = Edge(stage, session, tmp_path / "effects", approval)
        made.payloads = await payloads_of(stage, card)
        yield made
        await made.is_untouched()
        await made.nothing_leaked()


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
    user = payload.get("user")
    is_requester = isinstance(user, dict) and user.get("id") == ROSA
    assume(not (is_requester and kind == f"submission {REJECT}"))  # takes her own request back
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

NOT_OURS = "Only people in this workspace"
GRID = {"team": None, "enterprise": {"id": "E9GRID", "name": "Grid"}, "is_enterprise_install": True}
CROWD = [
    ("guest", GUS, TEAM, {}, "Guests can't"),
    ("guest on grid", GUS, TEAM, GRID, "Guests can't"),
    ("requester", ROSA, TEAM, {}, "approve your own request"),
    ("requester on grid", ROSA, TEAM, GRID, "approve your own request"),
    ("shared channel", EVE, "T9OTHERCOR", {}, NOT_OURS),
    ("shared channel, with our team", EVE, TEAM, {}, NOT_OURS),
    ("shared channel on grid", EVE, "T9OTHERCOR", GRID, NOT_OURS),
    ("another workspace of the grid", SIS, "T8SISTER00", GRID, NOT_OURS),
    ("another workspace, with our team", SIS, TEAM, GRID, NOT_OURS),
]


@pytest.mark.parametrize(("who", "team", "more", "refusal"), [row[1:] for row in CROWD])
async def test_i7_people_of_elsewhere_are_told_why_not(
    edge: Edge, who: str, team: str, more: dict[str, Any], refusal: str
) -> None:
    await edge.send({**by(edge.payloads["click"], who, team), **more}, "click")
    assert refusal in "".join(await edge.whispers())
    if who == ROSA:  # what she sends with the form to reject takes her request back
        return
    form = {**by(edge.payloads[f"submission {REJECT}"], who, team), **more}
    assert refusal in await edge.send(form, "submission")


NO_EVENTS: tuple[object, ...] = (
    "text",
    ["text"],
    {"type": ["message"]},
    {"type": {}},
    {"type": "message", "subtype": ["message_changed"]},
)


@pytest.mark.parametrize("event", NO_EVENTS)
async def test_an_event_that_is_none_is_acknowledged(edge: Edge, event: object) -> None:
    payload = {**edge.payloads["event message"], "is_ext_shared_channel": False, "event": event}
    await edge.send(payload, "event")
