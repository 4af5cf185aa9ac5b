"""Find the conversation or the message that a call names."""

from __future__ import annotations

from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.records import SlackChannel, SlackMessage
from bot.sandbox.workspace.state import Workspace


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
