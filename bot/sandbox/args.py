"""Arguments of a Web API call, parsed as Slack parses them, and the conversation they name."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from bot.sandbox.workspace.state import Workspace

T = TypeVar("T")
_YES = {True, "1", "true", "True"}
_MOST = 1_000


class Args:
    """Named arguments; JSON values may come as text, as they do in a form."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """A text, empty if it was not given."""
        value = self._values.get(name, "")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise _invalid(name, "must be a string")
        return str(value)

    def need(self, name: str) -> str:
        """A text that must be given."""
        value = self.text(name)
        if not value:
            raise _invalid(name, "missing required field")
        return value

    def flag(self, name: str) -> bool:
        """A yes or no; no if it was not given."""
        value = self._values.get(name)
        return isinstance(value, (bool, int, str)) and value in _YES

    def number(self, name: str, default: int) -> int:
        """A count from 1 to 1,000."""
        try:
            value = int(self._values.get(name, default))
        except (TypeError, ValueError):
            raise _invalid(name, "must be an integer") from None
        if not 0 < value <= _MOST:
            raise RefusedError("invalid_limit")
        return value

    def items(self, name: str, refusal: str) -> list[Payload] | None:
        """A list of objects.

        Raises:
            RefusedError: It is none; with the code `refusal`.
        """
        value = self._json(name, refusal)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise RefusedError(refusal)
        return value

    def table(self, name: str, refusal: str) -> Payload | None:
        """An object.

        Raises:
            RefusedError: It is none; with the code `refusal`.
        """
        value = self._json(name, refusal)
        if value is not None and not isinstance(value, dict):
            raise RefusedError(refusal)
        return value

    def page(
        self, all_items: Sequence[T], default: int = 100, *, most: int = 1_000
    ) -> tuple[list[T], str]:
        """The part of a list that `cursor` and `limit` ask for, and the next cursor.

        Args:
            all_items: The list.
            default: The limit where none is asked for.
            most: The most that a page has, whatever was asked for.
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
    """The conversation that the bot means: by id, by #name, or by a person's id."""
    if name in workspace.people:
        return workspace.direct_message(name)
    plain = name.removeprefix("#")
    for channel in workspace.channels.values():
        if channel.kind == "channel" and channel.name == plain:
            name = channel.id
    return workspace.has_channel(workspace.bot_user, name)


def writable(workspace: Workspace, name: str) -> SlackChannel:
    """Return a channel as `readable` does, and refuse an archived one."""
    channel = readable(workspace, name)
    if channel.is_archived:
        raise RefusedError("is_archived")
    return channel


def own(workspace: Workspace, channel: SlackChannel, ts: str, refusal: str) -> SlackMessage:
    """A message of the bot that everybody in the channel sees.

    Raises:
        RefusedError: `refusal` if somebody else wrote it; `message_not_found` for an ephemeral
            message too, which can only be reached by its response_url.
    """
    message = workspace.message(channel.id, ts)
    if message.seen_by is not None:
        raise RefusedError("message_not_found")
    if not message.by_bot:
        raise RefusedError(refusal)
    return message
