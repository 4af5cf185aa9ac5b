"""The slash command, as Slack sends it: what is done, and what people read."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.slack.listeners.commands import COMMAND
from storage.records import DelegationRecord
from storage.sqlite import SqliteStorage
from tests.unit.bot.core.decisions.test_votes import MIA, TOM, TWO, asked
from tests.unit.bot.counter_stage import Counter, signed
from tests.unit.bot.office import CHANNEL, GUS


@pytest.fixture
async def counter(storage: SqliteStorage) -> Counter:
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


async def told(counter: Counter, text: str, *, by: str = MIA) -> str:
    answer = await send(counter, text, by=by)
    body: dict[str, Any] = json.loads(answer.body)
    assert (answer.status, body["response_type"]) == (200, "ephemeral")
    return str(body["text"])


async def current(counter: Counter) -> list[DelegationRecord]:
    store = counter.office.storage.delegations
    return list(await store.current("T1", now_ms=counter.office.clock()))


async def test_a_right_is_handed_on_listed_and_ended(counter: Counter) -> None:
    assert "may use your right." in await told(
        counter, f"delegate <@{TOM}|tom> until tomorrow 9:00"
    )
    (made,) = await current(counter)
    assert (made.owner_id, made.delegate_id, made.group_name) == (MIA, TOM, "")
    assert f"<@{TOM}> may use your right until" in await told(counter, "delegate")
    assert f"You may use the right of <@{MIA}>" in await told(counter, "delegate", by=TOM)
    assert "can't use your right any more" in await told(counter, "delegate off")
    assert await current(counter) == []
    assert await told(counter, "DELEGATE OFF") == "You have handed nothing on."
    assert "Nothing is handed on" in await told(counter, "delegate")


async def test_one_group_can_be_handed_on(counter: Counter) -> None:
    words = await told(counter, f"delegate <@{TOM}> until fri 18:00 for security")
    assert "your right in the group “security”" in words
    (made,) = await current(counter)
    assert made.group_name == "security"


async def test_times_are_those_of_the_person(counter: Counter) -> None:
    await told(counter, f"delegate <@{TOM}> until tomorrow 0:00")
    await told(counter, f"delegate <@{MIA}> until tomorrow 0:00", by=TOM)  # a ring, refused
    await told(counter, "away until tomorrow 0:00", by=TOM)
    first, second = sorted(await current(counter), key=lambda one: one.owner_id)
    assert (first.until_ms - second.until_ms) % 86_400_000 in {4 * 3_600_000, 5 * 3_600_000}


async def test_who_is_away_can_come_back(counter: Counter) -> None:
    assert "You aren't mentioned until" in await told(counter, "away until tomorrow")
    (made,) = await current(counter)
    assert (made.owner_id, made.delegate_id) == (MIA, "")
    assert "mentioned again" in await told(counter, "away off")
    assert await told(counter, "away off") == "You are not away."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("help", "asks people before an AI agent acts"),
        ("approve everything", "I don't know “approve”"),
        ("<!channel>", "I don't know “&lt;!channel&gt;”"),
        ("delegate @tom until fri 18:00", "I don't know @tom. Mention a person"),
        ("delegate off now", "I don't know off. Mention a person"),
        (f"delegate <@{TOM}>", "Say until when"),
        (f"delegate <@{TOM}> fri 18:00", "Say until when"),
        (f"delegate <@{TOM}> until", "I couldn't read “until”"),
        (f"delegate <@{TOM}> until someday", "I couldn't read “until someday”"),
        (f"delegate <@{TOM}> until fri 18:00 for", "name of one group"),
        (f"delegate <@{TOM}> until fri 18:00 for sre security", "name of one group"),
        (f"delegate <@{TOM}> until fri 18:00 for nobody", "no group “nobody”"),
        (f"delegate <@{TOM}> until fri 18:00 for <!here>", "no group of that name"),
        (f"delegate <@{TOM}> until 2020-01-01", "time is over"),
        (f"delegate <@{TOM}> until 9000-01-01", "30 days at most"),
        (f"delegate <@{MIA}> until tomorrow", "Choose another active member"),
        (f"delegate <@{GUS}> until tomorrow", "Choose another active member"),
        ("delegate <@UNOBODY> until tomorrow", "couldn't check"),
        ("away", "Say until when"),
        (
            "away for ever",
            "I couldn't read “for ever”. Try `until Fri`, `until 27 Nov` or `for 3 days`.",
        ),
        ("away until", "I couldn't read “until”"),
        ("x" * 100_000, "I don't know “xxx"),
    ],
)
async def test_what_is_typed_wrongly_is_answered_in_clear_words(
    counter: Counter, text: str, words: str
) -> None:
    assert words in await told(counter, text)
    assert await current(counter) == []


async def test_nobody_who_does_not_belong_here_does_anything(counter: Counter) -> None:
    assert "Guests can't" in await told(counter, f"delegate <@{TOM}> until tomorrow", by=GUS)
    assert "Guests can't" in await told(counter, "away until tomorrow", by=GUS)
    assert await current(counter) == []


async def test_a_command_without_a_workspace_does_nothing(counter: Counter) -> None:
    answer = await send(counter, "away until tomorrow", team_id="")
    assert "isn't one of mine" in answer.body
    assert await current(counter) == []


async def test_a_forged_command_does_nothing(counter: Counter) -> None:
    body = urlencode(
        {"command": COMMAND, "text": "away until fri", "user_id": MIA, "team_id": "T1"}
    )
    headers = {**signed(body, "application/x-www-form-urlencoded"), "x-slack-signature": "v0=0"}
    answer = await counter.bolt.async_dispatch(AsyncBoltRequest(body=body, headers=headers))
    assert answer.status == 401
    assert await current(counter) == []
