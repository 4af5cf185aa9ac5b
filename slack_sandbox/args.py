"""Arguments of a Web API call, parsed as Slack does, and the named conversation."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from slack_sandbox.workspace.state import Workspace

T = TypeVar("T")
_YES = {True, "1", "true", "True"}
_MOST = 1_000


class Args:
    """Named arguments. JSON values may be texts, as in a form."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """Return a text; empty if it is missing."""
        value = self._values.get(name, "")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise _invalid(name, "must be a string")
        return str(value)

    def need(self, name: str) -> str:
        """Return a required text."""
        value = self.text(name)
        if not value:
            raise _invalid(name, "missing required field")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is missing."""
        value = self._values.get(name)
        return isinstance(value, (bool, int, str)) and value in _YES

    def number(self, name: str, default: int) -> int:
        """Return a number from 1 to 1,000."""
        try:
            value = int(self._values.get(name, default))
        except (TypeError, ValueError):
            raise _invalid(name, "must be an integer") from None
        if not 0 < value <= _MOST:
            raise RefusedError("invalid_limit")
        return value

    def items(self, name: str, refusal: str) -> list[Payload] | None:
        """Return a list of objects.

        Raises:
            RefusedError: The value is no such list; with the code `refusal`.
        """
        value = self._json(name, refusal)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise RefusedError(refusal)
        return value

    def table(self, name: str, refusal: str) -> Payload | None:
        """Return an object.

        Raises:
            RefusedError: The value is no object; with the code `refusal`.
        """
        value = self._json(name, refusal)
        if value is not None and not isinstance(value, dict):
            raise RefusedError(refusal)
        return value

    def page(
        self, all_items: Sequence[T], default: int = 100, *, most: int = 1_000
    ) -> tuple[list[T], str]:
        """Return the part of a list that `cursor` and `limit` select, and the next cursor.

        Args:
            all_items: The list.
            default: The limit if the call has none.
            most: Maximum size of a page, whatever the limit.
        """
        limit = min(self.number("limit", default), most)
        start = _position(self.text("cursor"))
        end = start + limit
        cursor = base64.b64encode(f"next:{end}".encode()).decode() if end < len(all_items) else ""
        return list(all_items[start:end]), cursor

    def _json(self, name: str, refusal: str) -> Any:
        value = self._values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise RefusedError(refusal) from None


def _position(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        word, _, number = base64.b64decode(cursor, validate=True).decode().partition(":")
        if word == "next":
            return int(number)
    except (binascii.Error, ValueError):
        pass
    raise RefusedError("invalid_cursor")


def _invalid(name: str, fault: str) -> RefusedError:
    return RefusedError("invalid_arguments", [f"{fault}: {name} [json-pointer:/{name}]"])


def readable(workspace: Workspace, name: str) -> SlackChannel:
    """Return the conversation that a name means: an id, #name, or a person's id."""
    if name in workspace.people:
        return workspace.direct_message(name)
    plain = name.removeprefix("#")
    for channel in workspace.channels.values():
        if channel.kind == "channel" and channel.name == plain:
            name = channel.id
    return workspace.has_channel(workspace.bot_user, name)


def writable(workspace: Workspace, name: str) -> SlackChannel:
    """Return a channel as `readable` does, and refuse an archived channel."""
    channel = readable(workspace, name)
    if channel.is_archived:
        raise RefusedError("is_archived")
    return channel


def own(workspace: Workspace, channel: SlackChannel, ts: str, refusal: str) -> SlackMessage:
    """Return a public message of the bot.

    Raises:
        RefusedError: `refusal` if another person or app wrote the message. `message_not_found` for
            an ephemeral message, which only its response_url can change.
    """
    message = workspace.message(channel.id, ts)
    if message.seen_by is not None:
        raise RefusedError("message_not_found")
    if not message.by_bot:
        raise RefusedError(refusal)
    return message
