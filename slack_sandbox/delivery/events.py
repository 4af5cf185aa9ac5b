"""Build the events to which the app has subscribed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.payloads import message_payload, person_payload, view_payload
from slack_sandbox.workspace.records import Change, Payload, SlackChannel, SlackMessage, UserGroup
from slack_sandbox.workspace.state import Workspace

_ROOMS = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


class Events:
    """Watches the workspace, and sends the events to which the app has subscribed."""

    def __init__(self, workspace: Workspace, announce: Callable[[Payload], None]) -> None:
        self._workspace = workspace
        self._announce = announce
        workspace.on_change.append(self._changed)
        workspace.on_reaction.append(self._reacted)

    def emit(self, event: Payload) -> Payload:
        """Send an event, in the envelope of the Events API.

        Source:
            https://docs.slack.dev/apis/events-api#callback-field
        """
        workspace = self._workspace
        authorization = {
            "enterprise_id": None,
            "team_id": workspace.team_id,
            "user_id": workspace.bot_user,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        channel = workspace.channels.get(str(event.get("channel", "")))
        envelope: Payload = {
            "token": workspace.verification_token,
            "team_id": workspace.team_id,
            "context_team_id": workspace.team_id,
            "context_enterprise_id": None,
            "api_app_id": workspace.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": workspace.ids.new("Ev"),
            "event_time": int(workspace.clock()),
            "authorizations": [authorization],
            "is_ext_shared_channel": bool(channel and channel.is_ext_shared),
            "event_context": f"4-{workspace.ids.secret()}",
        }
        self._announce(envelope)
        return envelope

    def person_changed(self, user: str) -> None:
        """Send that a person's account has changed.

        Source:
            https://docs.slack.dev/reference/events/user_change
        """
        person = self._workspace.people[user]
        if "users:read" in self._workspace.scopes:
            payload = person_payload(self._workspace, person)
            self.emit({"type": "user_change", "user": payload, **self._now()})

    def group_changed(self, group: UserGroup, *, added: str = "", removed: str = "") -> None:
        """Send that a person was added to a user group, or removed from it.

        Source:
            https://docs.slack.dev/reference/events/subteam_members_changed
        """
        if "usergroups:read" in self._workspace.scopes:
            self.emit(
                {
                    "type": "subteam_members_changed",
                    "subteam_id": group.id,
                    "team_id": self._workspace.team_id,
                    "added_users": [added] if added else [],
                    "removed_users": [removed] if removed else [],
                    **self._now(),
                }
            )

    def member_changed(self, user: str, channel: SlackChannel, *, joined: bool) -> None:
        """Send that a person joined or left a channel of the bot.

        Source:
            https://docs.slack.dev/reference/events/member_joined_channel
        """
        workspace = self._workspace
        is_there = workspace.bot_user in channel.members or user == workspace.bot_user
        if is_there and f"{_ROOMS[channel.event_type]}:read" in workspace.scopes:
            self.emit(
                {
                    "type": "member_joined_channel" if joined else "member_left_channel",
                    "user": user,
                    "channel": channel.id,
                    "channel_type": "G" if channel.is_private else "C",
                    "team": workspace.people[user].team_id,
                    **self._now(),
                }
            )

    def home_opened(self, user: str, tab: Literal["home", "messages"]) -> None:
        """Send that a person opened the app's Home tab, or its Messages tab.

        Source:
            https://docs.slack.dev/reference/events/app_home_opened
        """
        workspace = self._workspace
        event: Payload = {
            "type": "app_home_opened",
            "user": user,
            "channel": workspace.direct_message(user).id,
            "event_ts": workspace.ids.ts(),
            "tab": tab,
        }
        view = workspace.views.home(user)
        if tab == "home" and view is not None:
            event["view"] = view_payload(workspace, view)
        self.emit(event)

    def session_stopped(self, user: str, channel_id: str, thread_ts: str) -> None:
        """Send that a person stopped a session. Streams in its thread end at once.

        Raises:
            RefusedError: The person is not in the channel, or the session is not running.

        Source:
            https://docs.slack.dev/reference/events/agent_session_stopped
        """
        workspace = self._workspace
        channel = workspace.has_channel(user, channel_id)
        session = workspace.agent_view.sessions.get((channel.id, thread_ts))
        if session is None or session.status != "processing":
            raise RefusedError("session_not_processing")
        growing = [
            reply for reply in workspace.replies(channel.id, thread_ts) if reply.is_streaming
        ]
        for message in growing:
            workspace.change(message, is_streaming=False)
        self.emit(
            {
                "type": "agent_session_stopped",
                "user": user,
                "channel": channel.id,
                "thread_ts": thread_ts,
                "streaming_message_ts": [reply.ts for reply in growing],
                "event_ts": workspace.ids.ts(),
            }
        )

    def _now(self) -> Payload:
        return {"event_ts": self._workspace.ids.ts()}

    def _reacted(self, message: SlackMessage, user: str, name: str, added: bool) -> None:  # noqa: FBT001 - called with what the workspace tells
        members = self._workspace.channels[message.channel].members
        can_hear = "reactions:read" in self._workspace.scopes
        if not can_hear or self._workspace.bot_user not in members:
            return
        self.emit(
            {
                "type": "reaction_added" if added else "reaction_removed",
                "user": user,
                "reaction": name,
                "item_user": message.user,
                "item": {"type": "message", "channel": message.channel, "ts": message.ts},
                "event_ts": self._workspace.ids.ts(),
            }
        )

    def _changed(self, change: Change) -> None:
        message = change.message
        channel = self._workspace.channels[message.channel]
        if message.seen_by is not None or self._workspace.bot_user not in channel.members:
            return
        if change.kind != "posted":
            self._edited(change, channel)
            return
        if self._can_read(channel):
            self.emit(self._message_event(message, channel))
        if self._is_mention(message, channel):
            self.emit(self._mention_event(message, channel))

    def _can_read(self, channel: SlackChannel) -> bool:
        return f"{_ROOMS[channel.event_type]}:history" in self._workspace.scopes

    def _message_event(self, message: SlackMessage, channel: SlackChannel) -> Payload:
        payload = message_payload(self._workspace, message)
        place = {"channel": channel.id, "channel_type": channel.event_type}
        return {**payload, **place, "event_ts": message.ts}

    def _mention_event(self, message: SlackMessage, channel: SlackChannel) -> Payload:
        payload = message_payload(self._workspace, message)
        for absent in ("subtype", "root", "parent_user_id"):
            payload.pop(absent, None)
        place = {"type": "app_mention", "channel": channel.id, "event_ts": message.ts}
        return {**payload, **place}

    def _is_mention(self, message: SlackMessage, channel: SlackChannel) -> bool:
        return (
            not message.by_bot
            and channel.kind != "im"
            and f"<@{self._workspace.bot_user}>" in message.text
            and "app_mentions:read" in self._workspace.scopes
        )

    def _edited(self, change: Change, channel: SlackChannel) -> None:
        message, previous = change.message, change.previous
        quiet = message.is_streaming and not message.is_deleted
        if quiet or previous is None or not self._can_read(channel):
            return
        before = message_payload(self._workspace, previous)
        ts = self._workspace.ids.ts()
        # A root with replies is not deleted for Slack: it changes to a tombstone.
        is_gone = change.kind == "deleted" and not self._workspace.replies(channel.id, message.ts)
        event: Payload = {
            "type": "message",
            "subtype": "message_deleted" if is_gone else "message_changed",
            "hidden": True,
            "channel": channel.id,
            "channel_type": channel.event_type,
            "ts": ts,
            "event_ts": ts,
            "previous_message": before,
        }
        if is_gone:
            event["deleted_ts"] = message.ts
        else:
            event["message"] = message_payload(self._workspace, message)
        self.emit(event)
