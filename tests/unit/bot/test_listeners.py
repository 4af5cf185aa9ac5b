"""Signed payloads, right and wrong: an effect only for what our cards and modals send."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import hmac
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from agents.models import Turn, call, say
from bot.action_ids import ActionId, encode
from bot.app import Identity, Slack, _bolt
from bot.listeners import Desk, desk as desk_module, register
from storage.base import ApprovalStore, InboxStore, Storage
from storage.errors import StoreUnavailableError
from storage.records import Approval, Status
from storage.sqlite import SqliteStorage
from tests.unit.bot.office import ADA, BEN, CHANNEL, GUS, ROOT, ROSA, Office

SECRET = "listener-signing-secret"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"


@dataclass
class Views:
    """Opens modals; fails when told to."""

    opened: list[dict[str, Any]] = field(default_factory=list)
    failing: bool = False

    async def views_open(self, *, trigger_id: str, view: dict[str, Any]) -> None:
        if self.failing:
            raise TimeoutError
        self.opened.append(view)


@dataclass
class Proxy:
    """A storage some of whose parts are replaced."""

    storage: Storage
    changes: dict[str, object]

    def __getattr__(self, name: str) -> object:
        return self.changes.get(name) or getattr(self.storage, name)


@dataclass
class Counter:
    """The listeners on top of an office."""

    office: Office
    bolt: AsyncApp
    views: Views

    @classmethod
    def on(cls, office: Office) -> Counter:
        views = Views()
        desk = Desk(
            storage=office.storage,
            approvals=office.approvals,
            inbox=office.inbox,
            threads=office.threads,
            check_call=lambda _, arguments: arguments,
            notifier=office.notifier,
            client=cast(AsyncWebClient, views),
            clock=office.clock,
            spawn=office.queue.spawn,
        )
        bolt = _bolt(
            Slack(
                token="xoxb-listener-test",
                signing_secret=SECRET,
                api_url="http://127.0.0.1:9/api/",
                identity=Identity(team_id="T1", bot_user_id="UBOT", bot_id="B1"),
            )
        )
        register(bolt, desk)
        return cls(office, bolt, views)

    async def send(self, payload: object) -> BoltResponse:
        """Send a payload as Slack does; the work that follows is done."""
        answer = await self.bolt.async_dispatch(a_request(payload))
        await self.office.queue.run()
        return answer

    def told(self, user_id: str) -> str:
        """The newest private answer."""
        return [text for who, text in self.office.notifier.whispers if who == user_id][-1]


def a_request(payload: object) -> AsyncBoltRequest:
    is_event = isinstance(payload, dict) and payload.get("type") == "event_callback"
    text = json.dumps(payload)
    body = text if is_event else urlencode({"payload": text})
    kind = "application/json" if is_event else "application/x-www-form-urlencoded"
    return AsyncBoltRequest(body=body, headers=signed(body, kind))


def signed(body: str, kind: str) -> dict[str, str | Sequence[str]]:
    stamp = str(int(time.time()))
    digest = hmac.new(SECRET.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {
        "content-type": kind,
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": f"v0={digest}",
    }


def a_click(approval: Approval, action_id: str, user_id: str = ADA) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "user": {"id": user_id, "team_id": "T1", "name": "x"},
        "team": {"id": "T1", "domain": "acme"},
        "enterprise": None,
        "is_enterprise_install": False,
        "api_app_id": "A1",
        "trigger_id": "1.2.3",
        "channel": {"id": CHANNEL, "name": "ops"},
        "container": {"type": "message", "message_ts": "9.1", "thread_ts": ROOT},
        "message": {"ts": "9.1", "thread_ts": ROOT, "text": "x"},
        "actions": [
            {
                "type": "button",
                "action_id": action_id,
                "block_id": "b",
                "value": encode(approval.approval_id, approval.digest),
                "action_ts": "1.1",
            }
        ],
    }


def a_submission(
    approval: Approval, modal: str, values: dict[str, Any], user_id: str = ADA
) -> dict[str, Any]:
    click = a_click(approval, "x", user_id)
    kept = {key: click[key] for key in ("user", "team", "api_app_id", "trigger_id")}
    return {
        "type": "view_submission",
        **kept,
        "view": {
            "id": "V1",
            "team_id": "T1",
            "type": "modal",
            "callback_id": modal,
            "private_metadata": encode(approval.approval_id, approval.digest),
            "state": {"values": values},
            "blocks": [],
        },
    }


def typed(block_id: str, text: object) -> dict[str, Any]:
    return {block_id: {"countersign:value": {"type": "plain_text_input", "value": text}}}


def an_event(**changes: object) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "message",
        "channel": CHANNEL,
        "channel_type": "channel",
        "user": ROSA,
        "text": ASK,
        "ts": ROOT,
        **changes,
    }
    return {
        "type": "event_callback",
        "team_id": "T1",
        "api_app_id": "A1",
        "event_id": "Ev1",
        "event_time": 1,
        "authorizations": [{"team_id": "T1", "enterprise_id": None, "user_id": "UBOT"}],
        "event": event,
    }


async def a_counter(storage: SqliteStorage, *turns: Turn) -> Counter:
    office = Office(storage, turns or [PAY, say("Paid.")])
    made = Counter.on(office)
    await made.send(an_event())
    return made


@pytest.fixture
async def counter(storage: SqliteStorage) -> Counter:
    made = await a_counter(storage)
    assert made.office.ran == []
    return made


async def test_a_mention_then_a_click(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    answer = await counter.send(a_click(approval, ActionId.APPROVE))
    assert answer.status == 200
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]


async def test_a_rejection_with_its_reason(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    await counter.send(a_click(approval, ActionId.REJECT))
    assert counter.views.opened[0]["callback_id"] == ActionId.REJECT_MODAL
    answer = await counter.send(
        a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "too much"))
    )
    assert (answer.status, answer.body) == (200, "")
    decided = await counter.office.storage.approvals.get(approval.approval_id)
    assert decided.status is Status.REJECTED
    assert decided.decision is not None
    assert decided.decision.reason == "too much"


async def test_a_button_opens_its_modal(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    for action in (ActionId.EDIT, ActionId.DETAILS):
        assert (await counter.send(a_click(approval, action))).status == 200
    modals = [view["callback_id"] for view in counter.views.opened]
    assert modals == [ActionId.EDIT_MODAL, ActionId.DETAILS_MODAL]


async def test_a_modal_that_slack_does_not_open(counter: Counter) -> None:
    counter.views.failing = True
    answer = await counter.send(a_click(await counter.office.the_approval(), ActionId.REJECT))
    assert answer.status == 200
    assert "try again" in counter.told(ADA)
    await is_untouched(counter)


async def is_untouched(counter: Counter) -> None:
    assert counter.office.ran == []
    assert (await counter.office.the_approval()).status is Status.PENDING


@pytest.mark.parametrize("value", [None, "", "x", 5, {"a": 1}, "apr_" + "0" * 32, "\x00"])
async def test_a_value_that_is_not_ours(counter: Counter, value: object) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    click["actions"][0]["value"] = value
    assert (await counter.send(click)).status == 200
    assert "Nothing was done" in counter.told(ADA)
    await is_untouched(counter)


async def test_another_digest(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    forged = replace(approval, digest="0" * 64)
    assert (await counter.send(a_click(forged, ActionId.APPROVE))).status == 200
    assert "has changed since" in counter.told(ADA)
    await is_untouched(counter)


async def test_an_approval_that_is_not_known(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    forged = replace(approval, approval_id="apr_" + "0" * 32)
    for action in (ActionId.APPROVE, ActionId.DETAILS):
        assert (await counter.send(a_click(forged, action))).status == 200
        assert "Nothing was done" in counter.told(ADA)
    await is_untouched(counter)


@pytest.mark.parametrize(
    "action",
    ["countersign:", "countersign:value", "countersign:approve ", "countersign:edit_modal"],
)
async def test_a_button_that_is_not_ours(counter: Counter, action: str) -> None:
    click = a_click(await counter.office.the_approval(), action)
    assert (await counter.send(click)).status == 200
    assert "not one that I made" in counter.told(ADA)
    await is_untouched(counter)


@pytest.mark.parametrize(
    "action", [ActionId.ANSWER, ActionId.RAN, ActionId.AGAIN, ActionId.GIVE_UP]
)
async def test_a_button_of_another_card(counter: Counter, action: ActionId) -> None:
    click = a_click(await counter.office.the_approval(), action)
    assert (await counter.send(click)).status == 200
    assert "not one that I made" in counter.told(ADA)
    await is_untouched(counter)


@pytest.mark.parametrize(
    ("changes", "user_id"),
    [
        ({"team": {"id": "T2"}, "user": {"id": ADA, "team_id": "T2"}}, ADA),
        ({"user": {"id": "USTRANGER", "team_id": "T1"}}, "USTRANGER"),
        ({"user": {"id": GUS, "team_id": "T1"}}, GUS),
        ({"user": {"id": ROSA, "team_id": "T1"}}, ROSA),
    ],
)
async def test_a_stranger(counter: Counter, changes: dict[str, Any], user_id: str) -> None:
    approval = await counter.office.the_approval()
    assert (await counter.send(a_click(approval, ActionId.APPROVE) | changes)).status == 200
    assert "Nothing was done" in counter.told(user_id)
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x")) | changes
    answer = await counter.send(form)
    assert answer.status == 200
    assert json.loads(answer.body)["response_action"] == "update"
    assert "Nothing was done" in answer.body
    await is_untouched(counter)


async def test_on_enterprise_grid_team_may_be_null(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    click = a_click(approval, ActionId.APPROVE)
    click |= {"team": None, "enterprise": {"id": "E1"}, "user": {"id": ADA}}
    assert (await counter.send(click)).status == 200
    assert counter.office.ran == [("pay", ("Mia", 5, "card"))]


@pytest.mark.parametrize(
    "changes",
    [
        {"callback_id": ActionId.ANSWER_MODAL},
        {"callback_id": ActionId.RAN_MODAL},
        {"callback_id": ActionId.DETAILS_MODAL},
        {"callback_id": ActionId.NOTICE_MODAL},
        {"callback_id": "countersign:no_such_modal"},
        {"state": None},
        {"state": {}},
        {"state": {"values": []}},
        {"private_metadata": ""},
        {"private_metadata": None},
        {"private_metadata": "apr_x.y"},
    ],
)
async def test_a_modal_that_is_not_ours(counter: Counter, changes: dict[str, Any]) -> None:
    approval = await counter.office.the_approval()
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
    form["view"] |= changes
    answer = await counter.send(form)
    assert answer.status == 200
    assert json.loads(answer.body)["response_action"] == "update"
    assert "not one that I made" in answer.body
    await is_untouched(counter)


async def test_a_modal_without_state(counter: Counter) -> None:
    form = a_submission(await counter.office.the_approval(), ActionId.EDIT_MODAL, {})
    del form["view"]["state"]
    assert "not one that I made" in (await counter.send(form)).body
    await is_untouched(counter)


async def test_an_edit_without_its_fields(counter: Counter) -> None:
    form = a_submission(await counter.office.the_approval(), ActionId.EDIT_MODAL, {})
    answer = await counter.send(form)
    assert answer.status == 200
    assert "response_action" in answer.body
    await is_untouched(counter)


class Slow:
    """A store that never answers."""

    async def get(self, _: str) -> None:
        await asyncio.Event().wait()


class Down:
    """A store that is not there."""

    async def get(self, _: str) -> None:
        raise StoreUnavailableError("refused")

    async def receive(self, _: object) -> None:
        raise StoreUnavailableError("refused")


def with_store(counter: Counter, **changes: object) -> Counter:
    """The same counter over a storage some of whose parts are replaced."""
    office = copy.copy(counter.office)
    proxy = cast(Storage, Proxy(counter.office.storage, changes))
    office.approvals = replace(office.approvals, storage=proxy)
    office.inbox = replace(office.inbox, storage=proxy, approvals=office.approvals)
    return Counter.on(office)


async def test_a_store_that_is_too_slow(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "PATIENCE", desk_module.PATIENCE / 200)
    approval = await counter.office.the_approval()
    slow = with_store(counter, approvals=cast(ApprovalStore, Slow()))
    assert (await slow.send(a_click(approval, ActionId.APPROVE))).status == 200
    assert "could not record this in time" in slow.told(ADA)
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
    assert "could not record this in time" in (await slow.send(form)).body
    await is_untouched(counter)


async def test_a_store_that_is_down(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    down = with_store(counter, approvals=cast(ApprovalStore, Down()))
    assert (await down.send(a_click(approval, ActionId.APPROVE))).status == 200
    assert "cannot reach my database" in down.told(ADA)
    form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
    answer = await down.send(form)
    assert "cannot reach my database" in answer.body
    assert "refused" not in answer.body
    await is_untouched(counter)


class FullInbox:
    async def add(self, _: object) -> bool:
        raise StoreUnavailableError("refused")


async def test_an_event_that_is_not_stored_is_asked_for_again(counter: Counter) -> None:
    down = with_store(counter, inbox=cast(InboxStore, FullInbox()))
    again = an_event(ts="1800000000.000009", thread_ts=ROOT)
    assert (await down.send(again)).status == 500
    assert (await counter.send(again)).status == 200
    await is_untouched(counter)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "reaction_added", "user": ADA, "item": {}},
        {"type": "team_join", "user": {"id": ADA}},
        {"type": "something_new"},
        {"type": "message", "subtype": "message_changed", "message": {}},
        {"type": "message", "subtype": "message_deleted", "previous_message": None},
        {"type": "message", "bot_id": "B9", "text": ASK, "channel": CHANNEL, "ts": "1.1"},
        {"type": "message", "user": None, "text": ASK, "channel": CHANNEL, "ts": "1.1"},
        {"type": "message", "user": ADA, "text": ASK, "channel": CHANNEL, "ts": None},
        {"type": "message", "user": ADA, "text": None, "channel": CHANNEL, "ts": "1.1"},
        {"type": "app_mention"},
    ],
)
async def test_an_event_that_is_not_for_us(counter: Counter, event: dict[str, Any]) -> None:
    before = len(counter.office.shown())
    assert (await counter.send(an_event() | {"event": event})).status == 200
    assert len(counter.office.shown()) == before
    await is_untouched(counter)


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "shortcut", "callback_id": "x", "user": {"id": ADA}, "team": {"id": "T1"}},
        {"type": "view_closed", "view": {"callback_id": "x"}, "user": {"id": ADA}},
        {"type": "block_suggestion", "action_id": "x", "user": {"id": ADA}},
        {"type": "no_such_type", "user": {"id": ADA}},
        {"user": {"id": ADA}},
        {},
    ],
)
async def test_other_payloads_are_acknowledged(
    counter: Counter, payload: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert (await counter.send(payload)).status == 200
    assert "Traceback" not in caplog.text
    await is_untouched(counter)


async def test_a_replayed_click_decides_once(counter: Counter) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    for _ in range(3):
        assert (await counter.send(click)).status == 200
    assert len(counter.office.ran) == 1
    assert ADA in counter.told(ADA)


async def test_a_question_is_not_answered_by_nothing(storage: SqliteStorage) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    counter = await a_counter(storage, asks, say("Thanks."))
    question = await counter.office.the_approval()
    empty = await counter.send(a_submission(question, ActionId.ANSWER_MODAL, typed("answer_0", "")))
    assert json.loads(empty.body)["response_action"] == "errors"
    odd = await counter.send(a_submission(question, ActionId.ANSWER_MODAL, typed("answer_0", 5)))
    assert "response_action" in odd.body
    assert (await counter.office.the_approval()).status is Status.PENDING
    await counter.send(a_click(question, ActionId.ANSWER, BEN))
    assert counter.views.opened[-1]["callback_id"] == ActionId.ANSWER_MODAL


# ---- anything at all ----------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "x", ADA, "T1", "<!here>"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "type", "value"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def paths(value: object, found: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything inside a value."""
    inside = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inside = enumerate(value)  # type: ignore[assignment]
    return [path for key, one in inside for path in ((*found, key), *paths(one, (*found, key)))]


@st.composite
def spoiled(draw: st.DrawFn, payload: dict[str, Any]) -> dict[str, Any]:
    """A payload in which something is missing, or something else."""
    made = copy.deepcopy(payload)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(paths(made) or [("type",)]))
        inside: Any = made
        for key in way:
            inside = inside[key]
        if draw(st.booleans()) and isinstance(inside, dict):
            inside.pop(last, None)
        else:
            inside[last] = draw(JSON)
    return made


ANYTHING = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def survives(counter: Counter, payload: dict[str, Any]) -> BoltResponse | None:
    """Send it; None when Bolt itself cannot read it, which ends in an HTTP error."""
    try:
        answer = await counter.send(payload)
    except (ValueError, TypeError, AttributeError, LookupError):
        answer = None
    assert counter.office.ran == []
    if answer is None:
        return None
    assert answer.status in ({200, 500} if payload.get("type") == "event_callback" else {200})
    assert "Traceback" not in answer.body
    assert "Error" not in answer.body
    return answer


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_click_of_a_stranger_has_an_effect(counter: Counter, data: Any) -> None:
    approval = await counter.office.the_approval()
    click = a_click(approval, ActionId.APPROVE, "USTRANGER")
    await survives(counter, data.draw(spoiled(click).filter(lambda p: ADA not in str(p))))
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_value_has_an_effect(counter: Counter, data: Any) -> None:
    click = a_click(await counter.office.the_approval(), ActionId.APPROVE)
    click["actions"] = data.draw(
        JSON | spoiled({"x": click["actions"]}).map(lambda made: made.get("x"))
    )
    actions = click["actions"]
    first = actions[0] if isinstance(actions, list) and actions else None
    if isinstance(first, dict) and len(str(first.get("value"))) > 60 and "action_id" in first:
        return  # only something that does not count was changed
    await survives(counter, click)
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_submission_runs_anything(counter: Counter, data: Any) -> None:
    approval = await counter.office.the_approval()
    form = a_submission(approval, ActionId.EDIT_MODAL, typed("x", "y"), "USTRANGER")
    await survives(counter, data.draw(spoiled(form).filter(lambda p: ADA not in str(p))))
    await is_untouched(counter)


@ANYTHING
@given(data=st.data())
async def test_no_spoiled_event_runs_anything(counter: Counter, data: Any) -> None:
    event = an_event(ts="1800000000.000009", user="USTRANGER")
    await survives(counter, data.draw(spoiled(event)))
    await is_untouched(counter)
