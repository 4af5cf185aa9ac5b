"""People's messages, edits and commands."""

from __future__ import annotations

import re

from slack_sandbox.errors import RefusedError
from slack_sandbox.people.interactions import Interactions
from slack_sandbox.workspace.emoji import is_emoji
from slack_sandbox.workspace.records import SlackMessage
from slack_sandbox.workspace.state import Workspace
from slack_sandbox.workspace.surfaces import Surfaces

INVITE = "/invite"
"""Slack's own command to invite people."""
_MENTIONED = re.compile(r"<@(\w+)>")
TYPED = 12_000
"""Maximum length of a message that a person types."""


class Speech:
    """Lets people write, under Slack's rules for people."""

    def __init__(
        self, workspace: Workspace, interactions: Interactions, surfaces: Surfaces
    ) -> None:
        self._workspace = workspace
        self._interactions = interactions
        self._commands = {command.name for command in surfaces.commands}

    def say(
        self,
        user: str,
        channel_id: str,
        text: str,
        *,
        thread_ts: str | None = None,
        broadcast: bool = False,
    ) -> SlackMessage:
        """Write a message; @names become mentions.

        Raises:
            RefusedError: No such person or channel, not a member, archived, empty or too long.
        """
        person = self._workspace.person(user)
        channel = self._workspace.has_channel(user, channel_id)
        if channel.is_archived:
            raise RefusedError("is_archived")
        if not text.strip():
            raise RefusedError("no_text")
        if len(text) > TYPED:
            raise RefusedError("msg_too_long")
        root = self._workspace.thread_root(channel, thread_ts) if thread_ts else None
        typed = self._workspace.typed(text.strip())
        return self._workspace.post(
            channel,
            person.id,
            typed.text,
            blocks=typed.blocks,
            typed=text.strip(),
            thread_ts=root,
            broadcast=bool(root) and broadcast,
            client_msg_id=None if person.is_bot else self._workspace.ids.secret(),
        )

    def edit(self, user: str, channel_id: str, ts: str, text: str) -> SlackMessage:
        """Change a person's own message."""
        channel = self._workspace.has_channel(user, channel_id)
        message = self._workspace.message(channel.id, ts)
        if message.user != user:
            raise RefusedError("cant_update_message")
        edited = {"user": user, "ts": self._workspace.ids.ts()}
        typed = self._workspace.typed(text)
        self._workspace.change(
            message, text=typed.text, blocks=typed.blocks, typed=text, edited=edited
        )
        return message

    def delete(self, user: str, channel_id: str, ts: str) -> None:
        """Delete a person's own message.

        Raises:
            RefusedError: The message does not exist, or another person wrote it.
        """
        channel = self._workspace.has_channel(user, channel_id)
        message = self._workspace.message(channel.id, ts)
        if message.user != user or message.by_bot:
            raise RefusedError("cant_delete_message")
        self._workspace.remove(message)

    def react(self, user: str, channel_id: str, ts: str, name: str) -> None:
        """Add a person's reaction, or remove it.

        Raises:
            RefusedError: The message or the emoji does not exist.
        """
        channel = self._workspace.has_channel(user, channel_id)
        message = self._workspace.message(channel.id, ts)
        if message.seen_by is not None:
            raise RefusedError("message_not_found")
        if not is_emoji(name):
            raise RefusedError("invalid_name")
        self._workspace.react(message, user, name, on=user not in message.reactions.get(name, []))

    def invite(self, user: str, channel_id: str, text: str) -> list[str]:
        """Add people, or the bot, to a channel; return the new members.

        Raises:
            RefusedError: The text names no person, or this person cannot invite to the channel.
        """
        workspace = self._workspace
        channel = workspace.has_channel(user, channel_id)
        if channel.kind != "channel":
            raise RefusedError("method_not_supported_for_channel_type")
        if channel.is_archived:
            raise RefusedError("is_archived")
        if workspace.person(user).is_guest:
            raise RefusedError("user_is_restricted")
        mentioned = _MENTIONED.findall(workspace.typed(text).text)
        named = [workspace.person(mention).id for mention in mentioned]
        if not named:
            raise RefusedError("no_user")
        new = [user_id for user_id in dict.fromkeys(named) if user_id not in channel.members]
        if not new:
            raise RefusedError("already_in_channel")
        channel.members.extend(new)
        return new

    async def command(
        self, user: str, channel_id: str, command: str, text: str, *, window: str = ""
    ) -> None:
        """Type a slash command of the app."""
        if command not in self._commands or "commands" not in self._workspace.scopes:
            raise RefusedError("unknown_command")
        await self._interactions.command(user, channel_id, command, text, window=window)
