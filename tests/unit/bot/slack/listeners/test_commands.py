"""The slash command, as Slack sends it: what is done, and what people read."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.layout.action_ids import ActionId
from bot.records.people import DelegationRecord
from bot.slack.listeners.commands import COMMAND
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import MIA, TOM, TWO, asked
from tests.unit.bot.counter_stage import Counter, a_press, signed
from tests.unit.bot.office import CHANNEL, GUS, ROSA, THREAD_ID


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    office = await asked(storage, TWO)
    office.directory.add(MIA, timezone="America/New_York")
    return Counter.on(office)


async def send(counter: Counter, text: str, *, by: str = MIA, **changes: str) -> BoltResponse:
    fields = {
        "token": "x",
        "team_id": "T1",
        "team_domain": "acme",
        "channel_id": CHANNEL,
        "channel_name": "ops",
        "user_id": by,
        "user_name": "x",
        "command": COMMAND,
        "text": text,
        "api_app_id": "A1",
        "is_enterprise_install": "false",
        "response_url": "https://hooks.slack.com/x",
        "trigger_id": "1.2.3",
        **changes,
    }
    body = urlencode(fields)
    kind = "application/x-www-form-urlencoded"
    answer = await counter.bolt.async_dispatch(
        AsyncBoltRequest(body=body, headers=signed(body, kind))
    )
    await counter.office.queue.run()
    return answer


async def reply_to(counter: Counter, text: str, *, by: str = MIA) -> str:
    answer = await send(counter, text, by=by)
    body: dict[str, Any] = json.loads(answer.body)
    assert (answer.status, body["response_type"]) == (200, "ephemeral")
    return str(body["text"])


async def current(counter: Counter) -> list[DelegationRecord]:
    store = counter.office.storage.delegations
    return list(await store.current("T1", now_ms=counter.office.clock()))


async def test_one_group_can_be_handed_on(counter: Counter) -> None:
    words = await reply_to(counter, f"delegate <@{TOM}> until fri 18:00 for security")
    assert "for you on requests for “security”" in words
    (made,) = await current(counter)
    assert made.group_name == "security"


async def test_a_command_without_a_workspace_does_nothing(counter: Counter) -> None:
    answer = await send(counter, "away until tomorrow", team_id="")
    assert "isn't one I made" in answer.body
    assert await current(counter) == []


async def stop_rows(counter: Counter, by: str) -> list[dict[str, Any]]:
    body = json.loads((await send(counter, "stop", by=by)).body)
    return [block for block in body["blocks"] if block["type"] == "section"]


async def test_stop_lists_ones_own_threads_each_with_a_button(counter: Counter) -> None:
    (row,) = await stop_rows(counter, ROSA)
    assert row["text"]["text"].endswith("Waiting for people · #c1")
    assert row["accessory"]["action_id"] == ActionId.STOP_AGENT
    assert row["accessory"]["value"] == THREAD_ID
    assert "No agent is working for you" in await reply_to(counter, "stop")
    assert "don't know “stop now”" in await reply_to(counter, "stop now")
    assert "Guests" in await reply_to(counter, "stop", by=GUS)


async def test_a_thread_that_works_now_is_listed_too(counter: Counter) -> None:
    store, clock = counter.office.storage.threads, counter.office.clock
    await store.wake(THREAD_ID, now_ms=clock())
    await store.claim(THREAD_ID, owner="other", now_ms=clock(), until_ms=clock() + 9_000)
    (row,) = await stop_rows(counter, ROSA)
    assert row["accessory"]["value"] == THREAD_ID


def a_stop_click(value: object = THREAD_ID, by: str = ROSA, **changes: Any) -> dict[str, Any]:
    """A click in a private answer to a command, as Slack sends it: there is no message."""
    container = {"message_ts": "1800000100.000100", "channel_id": CHANNEL, "is_ephemeral": True}
    return {
        **a_press(ActionId.STOP_AGENT, value, by, **changes),
        "container": {"type": "message", **container},
        "state": {"values": {}},
        "response_url": "https://hooks.slack.com/actions/x",
    }


async def test_the_button_of_somebody_else_stops_nothing(counter: Counter) -> None:
    await counter.send(a_stop_click(by=GUS))
    assert "can stop this" in counter.private_text(GUS)
    assert len(await counter.office.open_approvals()) == 1


async def test_a_button_of_what_has_ended_says_so(counter: Counter) -> None:
    await counter.send(a_stop_click())
    await counter.send(a_stop_click(action_ts="1800000101.000200"))
    assert "nothing to stop" in counter.private_text(ROSA)


@pytest.mark.parametrize(
    "changes", [{"value": "T2:C1:1.1"}, {"value": None}, {"value": "apr_1"}, {"action_ts": None}]
)
async def test_a_forged_stop_is_refused(counter: Counter, changes: dict[str, Any]) -> None:
    assert (await counter.send(a_stop_click(**changes))).status == 200
    assert len(await counter.office.open_approvals()) == 1
