"""Events and other payloads: for us or not, each has its answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bot.counter_stage import ASK, Counter, an_event, is_untouched
from tests.unit.bot.office import ADA, BOT, CHANNEL, GUS, ROOT, ROSA


@pytest.mark.parametrize(
    "event",
    [
        {"type": "team_join", "user": {"id": ADA}},
        {"type": "message", "subtype": "message_changed", "message": {"user": ""}},
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


def a_stop(user: str = ROSA, **changes: Any) -> dict[str, Any]:
    """A click on Slack's stop button, as Slack sends it."""
    event = {
        "type": "agent_session_stopped",
        "channel": CHANNEL,
        "thread_ts": ROOT,
        "user": user,
        "event_ts": "1800000099.000001",
        "streaming_message_ts": [],
        **changes,
    }
    return an_event() | {"event": event, "event_context": "4-x", "is_ext_shared_channel": False}


async def test_the_stop_button_counts_once_however_often_slack_says_so(counter: Counter) -> None:
    await counter.send(a_stop())
    await counter.send(a_stop())
    assert len([text for text in counter.office.shown() if text.startswith("Stopped by")]) == 1


async def test_who_may_not_stop_it_is_told_so(counter: Counter) -> None:
    await counter.send(a_stop(GUS))
    assert "can stop it" in counter.private_text(GUS) or "stop" in counter.private_text(GUS)
    assert len(await counter.office.open_approvals()) == 1


@pytest.mark.parametrize(
    "changes", [{"thread_ts": "1.1"}, {"thread_ts": None}, {"user": None}, {"event_ts": None}]
)
async def test_a_stop_of_nothing_that_we_know_does_nothing(
    counter: Counter, changes: dict[str, Any]
) -> None:
    assert (await counter.send(a_stop(**changes))).status == 200
    await is_untouched(counter)


USER = {"type": "user", "user_id": BOT}
SECTION = {"type": "rich_text_section", "elements": [USER]}


@pytest.mark.parametrize(
    ("part", "starts"),
    [
        (SECTION, True),
        ({"type": "rich_text_section", "elements": [{**USER, "style": {"bold": True}}]}, True),
        ({"type": "rich_text_list", "style": "bullet", "elements": [SECTION]}, True),
        ({"type": "rich_text_quote", "elements": [USER]}, False),
        ({"type": "rich_text_preformatted", "elements": [USER]}, False),
        ({"type": "rich_text_section", "elements": [{**USER, "style": {"code": True}}]}, False),
        ({"type": "rich_text_list", "border": 1, "elements": [SECTION]}, False),
    ],
)
async def test_a_mention_in_a_quote_or_in_code_calls_nobody(
    counter: Counter, part: dict[str, Any], *, starts: bool
) -> None:
    blocks = [{"type": "rich_text", "block_id": "b", "elements": [part]}]
    event = an_event(user=ADA, ts="1800000300.000001", blocks=blocks)
    await counter.send(event)
    assert (counter.office.model.calls == 2) is starts
