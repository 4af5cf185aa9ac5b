"""People's writing: messages, edits, commands."""

from __future__ import annotations

from collections.abc import Collection

from bot.sandbox.errors import RefusedError
from bot.sandbox.people.interactions import Interactions
from bot.sandbox.workspace.records import SlackMessage
from bot.sandbox.workspace.state import Workspace

TYPED = 12_000
"""Characters that a person can send in one message."""


class Speech:
    """Lets people write, under the rules for people."""

    def __init__(
        self, workspace: Workspace, interactions: Interactions, commands: Collection[str]
    ) -> None:
        self._workspace = workspace
        self._interactions = interactions
        self._commands = commands

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
        root = self._workspace.thread_root(channel, thread_ts)
        return self._workspace.post(
            channel,
            person.id,
            self._workspace.typed(text.strip()),
            thread_ts=root,
            broadcast=bool(root) and broadcast,
            client_msg_id=None if person.is_bot else self._workspace.ids.secret(),
        )

    def edit(self, user: str, channel_id: str, ts: str, text: str) -> SlackMessage:
        """Change an own message."""
        channel = self._workspace.has_channel(user, channel_id)
        message = self._workspace.message(channel.id, ts)
        if message.user != user:
            raise RefusedError("cant_update_message")
        edited = {"user": user, "ts": self._workspace.ids.ts()}
        self._workspace.change(message, text=self._workspace.typed(text), edited=edited)
        return message

    async def command(self, user: str, channel_id: str, command: str, text: str) -> None:
        """Type a slash command that the app has."""
        if command not in self._commands or "commands" not in self._workspace.scopes:
            raise RefusedError("unknown_command")
        await self._interactions.command(user, channel_id, command, text)
