"""Bolt asks one listener after the other: each payload has one, and a click the first of all."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from slack_bolt.async_app import AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.layout.action_ids import ActionId
from bot.slack.home import settings, view
from bot.slack.listeners import EVENTS
from tests.cost.stage import a_turn_stage, make_database

HOME = (view.SHOW, view.ONLY, view.NEXT, view.BACK, view.TEST, settings.TEST_YES)


def _click(action_id: str) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U0ADA000001", "team_id": "T1"},
        "actions": [{"type": "button", "action_id": action_id, "value": "x"}],
    }


def _event(kind: str) -> dict[str, Any]:
    event = {"type": kind, "user": "U0ADA000001", "tab": "about"}
    return {"type": "event_callback", "team_id": "T1", "event": event}


async def test_each_button_and_each_event_has_one_listener(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = {
        **{action: _click(action) for action in (*ActionId, *HOME, f"{ActionId.EDIT_PAGE}s")},
        **{event: _event(event) for event in (*EVENTS, "channel_archive")},
    }
    own = {
        ActionId.EDIT_PAGE: "on_page",
        ActionId.STOP_AGENT: "on_stop",
        ActionId.LIFT: "on_lift",
        ActionId.LET_RUN: "on_let_run",
    }
    events = {"app_home_opened": "on_opened"}
    async with a_turn_stage(make_database("memory", tmp_path)) as stage:
        for name, body in bodies.items():
            request = AsyncBoltRequest(body=body, mode="socket_mode")
            matching = [
                listener.ack_function.__name__
                for listener in stage.bot.bolt._async_listeners
                if await listener.async_matches(req=request, resp=BoltResponse(status=200))
            ]
            due = events.get(name, "on_event") if "event" in body else own.get(name, "on_click")
            assert matching == [due], name
        with caplog.at_level(logging.DEBUG, logger="slack_bolt"):
            await stage.bot.bolt.async_dispatch(
                AsyncBoltRequest(body=_click(ActionId.APPROVE), mode="socket_mode")
            )
        looks = [
            record.message for record in caplog.records if "Checking listener" in record.message
        ]
        assert looks == ["Checking listener: on_click ..."]
