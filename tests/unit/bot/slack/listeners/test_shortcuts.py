"""Shortcuts as Slack sends them: one's approvals, and an agent that is asked about a message."""

from __future__ import annotations

from typing import Any

import pytest
from slack_bolt.response import BoltResponse

from agents.models import say
from bot.errors import DirectoryError
from bot.records.approval_queries import count_pending
from bot.slack.home.state import PAGE
from bot.slack.listeners.shortcuts import ASK_ABOUT, MY_APPROVALS
from slack_sandbox.blockkit.rules import view_errors
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import PAY, an_office, asked
from tests.unit.bot.counter_stage import Counter, sent_by
from tests.unit.bot.office import ADA, CHANNEL, GUS, ROOT, ROSA, Office
from tests.unit.bot.slack.listeners.test_home import MIA, ONE, rows, with_many

THREAD = f"T1:{CHANNEL}:{ROOT}"


def chosen(by: str = ADA, **changes: Any) -> dict[str, Any]:
    message = {
        "type": "message",
        "user": ROSA,
        "ts": ROOT,
        "text": "pay Mia, please",
        "team": "T1",
        **changes,
    }
    return {
        "type": "message_action",
        "callback_id": ASK_ABOUT,
        **sent_by(by),
        "action_ts": "1800000009.000001",
        "channel": {"id": CHANNEL, "name": "ops"},
        "message_ts": message["ts"],
        "message": message,
        "response_url": "https://hooks.slack.com/x",
    }


def everywhere(by: str = MIA) -> dict[str, Any]:
    shown = {"type": "shortcut", "callback_id": MY_APPROVALS, "action_ts": "1800000009.000001"}
    return {**shown, **sent_by(by)}


@pytest.fixture
async def counter(storage: SqliteStores) -> Counter:
    office = an_office(storage, ONE, turns_of_model=[PAY, say("Paid.")])
    office.directory.add(MIA)
    return Counter.on(office)


def private_text(counter: Counter) -> str:
    notifier = counter.office.notifier
    return " ".join(text for _, text in [*notifier.whispers, *notifier.responses])


async def test_ones_approvals_open_as_a_form(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    office.directory.add(MIA, timezone="America/New_York")
    counter = Counter.on(office)
    assert (await counter.send(everywhere())).status == 200
    (view,) = counter.views.opened
    assert view_errors(view) == []
    assert view["title"]["text"] == "My approvals"
    assert rows(view["blocks"])[1].startswith("Pay 5 to Mia\nExpires today 11:00 AM")
    assert view["blocks"][1]["accessory"]["text"]["text"] == "Review"


async def test_of_more_than_a_page_the_form_says_how_many_there_are(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    office.directory.add(MIA)
    counter = Counter.on(office)
    await with_many(counter, PAGE + 2)
    await counter.send(everywhere())
    (view,) = counter.views.opened
    assert view_errors(view) == []
    assert (len(view["blocks"]), view["blocks"][-1]["type"]) == (2 * PAGE + 2, "context")
    assert view["blocks"][-1]["elements"][0]["text"].endswith(f"{PAGE} of {PAGE + 3}")


async def test_without_approvals_the_form_says_so(counter: Counter) -> None:
    await counter.send(everywhere(ADA))
    assert counter.views.opened[-1]["blocks"][0]["text"]["text"] == "Nothing is waiting for you"


async def test_a_guest_sees_why_there_is_nothing(counter: Counter) -> None:
    await counter.send(everywhere(GUS))
    (view,) = counter.views.opened
    assert "Guests" in view["blocks"][0]["text"]["text"]
    assert view_errors(view) == []


async def requesters(office: Office) -> set[str]:
    approval = await office.the_approval()
    return {approval.requester_id, *approval.requesters}


async def test_the_agent_reads_the_message(counter: Counter) -> None:
    await counter.send(chosen())
    read = await counter.office.storage.inbox.of_turn(THREAD, 1)
    assert [message.user_id for message in read] == [ROSA, ADA]
    assert counter.office.notices.askers == [(CHANNEL, ROOT, ADA, "1800000009.000001")]
    assert read[0].text == "Please handle this message: “pay Mia, please”"


@pytest.mark.parametrize(
    "changes", [{"user": ADA}, {"user": GUS}, {"bot_id": "B9"}, {"user": None, "bot_id": "B9"}]
)
async def test_other_words_are_those_of_who_asks(counter: Counter, changes: dict[str, Any]) -> None:
    await counter.send(chosen(**changes))
    (read,) = await counter.office.storage.inbox.of_turn(THREAD, 1)
    assert read.user_id == ADA
    assert "pay Mia, please" in read.text
    assert await requesters(counter.office) == {ADA}


async def test_a_reply_is_seen_to_in_its_thread(counter: Counter) -> None:
    await counter.send(chosen(ts="1800000005.000001", thread_ts=ROOT))
    assert (await counter.office.the_approval()).thread_id == THREAD


async def nothing_began(counter: Counter) -> bool:
    new = await counter.office.storage.inbox.new(THREAD, limit=9)
    return await count_pending(counter.office.storage.approvals) == 0 and not new


async def test_a_conversation_that_the_bot_cannot_see_is_such_a_place(counter: Counter) -> None:
    async def unknown(_: str) -> frozenset[str]:
        raise DirectoryError("conversations.members: channel_not_found")

    counter.office.directory.channel_members = unknown  # type: ignore[assignment]
    await counter.send(chosen())
    assert "Invite me" in private_text(counter)
    assert await nothing_began(counter)


async def test_a_look_up_that_fails_begins_nothing(counter: Counter) -> None:
    counter.office.directory.is_down = True
    await counter.send(chosen())
    assert "check" in private_text(counter)
    assert await nothing_began(counter)


@pytest.mark.parametrize(
    "changes",
    [
        {"channel": None},
        {"message": None},
        {"message": {}},
        {"channel": {"id": 5}},
        {"message": "x"},
        {"action_ts": "now"},
    ],
)
async def test_odd_payloads_begin_nothing(counter: Counter, changes: dict[str, Any]) -> None:
    answer: BoltResponse = await counter.send({**chosen(), **changes})
    assert answer.status == 200
    assert counter.office.notices.askers == []
