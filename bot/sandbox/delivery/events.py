"""The events that the app is subscribed to, made of what happens in the workspace."""

from __future__ import annotations

from collections.abc import Callable

from bot.sandbox.workspace.payloads import message_payload
from bot.sandbox.workspace.records import Change, Payload, SlackChannel, SlackMessage
from bot.sandbox.workspace.state import Workspace

_HISTORY = {"channel": "channels:history", "group": "groups:history", "im": "im:history"}


class Events:
    """Watches the workspace, and announces what the app may hear."""

    def __init__(self, workspace: Workspace, announce: Callable[[Payload], None]) -> None:
        self._workspace = workspace
        self._announce = announce
        workspace.on_change.append(self._changed)

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

    def _changed(self, change: Change) -> None:
        message = change.message
        channel = self._workspace.channels[message.channel]
        if message.seen_by is not None or self._workspace.bot_user not in channel.members:
            return
        if change.kind != "posted":
            self._edited(change, channel)
            return
        if _HISTORY[channel.event_type] in self._workspace.scopes:
            self.emit(self._message_event(message, channel))
        if self._is_mention(message, channel):
            self.emit(self._mention_event(message, channel))

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
        if quiet or previous is None or _HISTORY[channel.event_type] not in self._workspace.scopes:
            return
        before = message_payload(self._workspace, previous)
        ts = self._workspace.ids.ts()
        event: Payload = {
            "type": "message",
            "subtype": f"message_{change.kind}",
            "hidden": True,
            "channel": channel.id,
            "channel_type": channel.event_type,
            "ts": ts,
            "event_ts": ts,
            "previous_message": before,
        }
        if change.kind == "deleted":
            event["deleted_ts"] = message.ts
        else:
            event["message"] = message_payload(self._workspace, message)
        self.emit(event)
