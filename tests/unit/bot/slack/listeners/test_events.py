"""Events and other payloads: for us or not, each has its answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bot.counter_stage import (
    ASK,
    Counter,
    an_event,
    is_untouched,
)
from tests.unit.bot.office import ADA, CHANNEL


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
