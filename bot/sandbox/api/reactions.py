"""The reactions.* methods."""

from __future__ import annotations

from bot.sandbox.api.rooms import readable
from bot.sandbox.args import Args
from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.emoji import is_emoji
from bot.sandbox.workspace.payloads import message_payload
from bot.sandbox.workspace.records import Payload, SlackMessage
from bot.sandbox.workspace.state import Workspace


def add(workspace: Workspace, args: Args) -> Payload:
    """reactions.add."""
    return _react(workspace, args, on=True)


def remove(workspace: Workspace, args: Args) -> Payload:
    """reactions.remove."""
    return _react(workspace, args, on=False)


def get(workspace: Workspace, args: Args) -> Payload:
    """reactions.get, for a message."""
    message = _message(workspace, args)
    shown = message_payload(workspace, message)
    return {"type": "message", "channel": message.channel, "message": shown}


def _react(workspace: Workspace, args: Args, *, on: bool) -> Payload:
    name = args.need("name")
    if not is_emoji(name):
        raise RefusedError("invalid_name")
    message = _message(workspace, args)
    if workspace.channels[message.channel].is_archived:
        raise RefusedError("is_archived")
    workspace.react(message, workspace.bot_user, name, on=on)
    return {}


def _message(workspace: Workspace, args: Args) -> SlackMessage:
    channel = readable(workspace, args.need("channel"))
    message = workspace.message(channel.id, args.need("timestamp"))
    if message.seen_by is not None:
        raise RefusedError("message_not_found")
    return message
