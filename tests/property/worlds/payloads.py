"""What Slack sends: one payload of each kind, in the shapes in which it sends them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from slack_sandbox.workspace.people import ADA, GUS, OPS, TEAM
from tests.support.stage import Stage

APPROVE, REJECT, EDIT = "countersign:approve", "countersign:reject", "countersign:edit"
EVE = "U9EVEOTHER"
"""Of another company, in a channel that is shared with it."""


async def payloads_of(stage: Stage, card: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One payload of each kind; those of the card are Ada's, and are given to others later."""
    sandbox = stage.sandbox
    click = sandbox.payload_of_click(ADA, OPS, card["ts"], APPROVE)
    actor = {key: click[key] for key in ("user", "team", "enterprise", "api_app_id", "token")}
    more = {**actor, "is_enterprise_install": False, "trigger_id": click["trigger_id"]}
    payloads: dict[str, dict[str, Any]] = {"click": click}
    for name in (REJECT, EDIT):
        await stage.click("Ada", card, name)
        view = await stage.modal("Ada")
        submission = {"type": "view_submission", **more, "view": view, "response_urls": []}
        payloads[f"submission {name}"] = submission
        await sandbox.close_view(ADA, view, everything=True)
    view = copy.deepcopy(payloads[f"submission {EDIT}"]["view"])
    action = click["actions"][0]
    payloads |= {
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
    return payloads | events_of(stage) | commands_of(stage)


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
    payloads = {f"event {name}": {**outer, "event": event} for name, event in events.items()}
    return payloads | {
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
