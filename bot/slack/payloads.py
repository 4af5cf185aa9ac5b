"""Parse payloads of Slack: sender, clicked element, URL for responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slack_bolt.context.async_context import AsyncBoltContext

from bot.errors import InvalidInputError
from bot.ports.people import Actor

OURS = re.compile(r"^countersign:")
"""Our buttons and modals."""
HOME = "countersign:home_"
"""Prefix of action ids in Home."""
HOME_OPENED = "app_home_opened"
"""Event of an opened Home."""


def address_of(body: Mapping[str, Any]) -> str:
    """Return the URL for responses, valid for half an hour without a token; or "".

    Source: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
    """
    url = body.get("response_url")
    return url if isinstance(url, str) else ""


def actor_of(context: AsyncBoltContext, body: Mapping[str, Any]) -> Actor:
    """Return the sender of a payload, from the verified request."""
    payload, team = body.get("trigger_id"), body.get("team")
    # For a form, Bolt names the workspace where the app is installed, not the one of the sender.
    team_id = team.get("id") if isinstance(team, Mapping) else None
    return Actor(
        payload=payload if isinstance(payload, str) else "",
        user_id=context.actor_user_id or context.user_id or "",
        team_id=team_id if team_id and isinstance(team_id, str) else context.actor_team_id or "",
        enterprise_id=context.actor_enterprise_id or "",
    )


def action_of(body: Mapping[str, Any], *, what: str = "this button") -> dict[str, Any]:
    """Return the element that a person used.

    Raises:
        InvalidInputError: Our cards and modals do not send such a payload.
    """
    actions = body.get("actions")
    action = actions[0] if isinstance(actions, list) and actions else None
    if not isinstance(action, dict):
        raise InvalidInputError(what)
    return action
