"""Records in the formats of Slack's payloads."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from slack_sandbox.workspace.blocks import state_of
from slack_sandbox.workspace.records import (
    Payload,
    SlackChannel,
    SlackMessage,
    SlackUser,
    UserGroup,
    View,
)
from slack_sandbox.workspace.state import Workspace

SLACKBOT = "USLACKBOT"
"""The author of a tombstone."""
_EMOJI_ICONS = {"image_36": "", "image_48": "", "image_72": ""}


def message_payload(
    workspace: Workspace, message: SlackMessage, *, with_metadata: bool = False
) -> Payload:
    """A message, with its thread's numbers if it has replies."""
    payload: Payload = {
        "type": "message",
        "user": message.user,
        "ts": message.ts,
        "text": message.text,
        "team": workspace.people[message.user].team_id,
    }
    payload.update(_author(workspace, message))
    if message.reactions:
        payload["reactions"] = reactions_payload(message)
    if message.attachments:
        payload["attachments"] = message.attachments
    if message.edited:
        payload["edited"] = message.edited
    if with_metadata and message.metadata:
        payload["metadata"] = message.metadata
    if message.is_streaming:
        payload["streaming_state"] = "in_progress"
    payload.update(_thread(workspace, message))
    return payload


def reactions_payload(message: SlackMessage) -> list[Payload]:
    """The reactions to a message, the oldest first."""
    return [
        {"name": name, "users": users, "count": len(users)}
        for name, users in message.reactions.items()
    ]


def _author(workspace: Workspace, message: SlackMessage) -> Payload:
    if message.is_deleted:
        return {"subtype": "tombstone", "user": SLACKBOT, "hidden": True}
    if message.by_bot:
        profile = bot_payload(workspace)
        author: Payload = {
            "bot_id": workspace.bot_id,
            "app_id": workspace.app_id,
            "bot_profile": {**profile, "team_id": workspace.team_id},
        }
    elif workspace.people[message.user].is_bot:
        author = {"bot_id": f"B{message.user[1:]}", "app_id": f"A{message.user[1:]}"}
    else:
        author = {"client_msg_id": message.client_msg_id}
    return {**author, "blocks": message.blocks} if message.blocks else author


def _thread(workspace: Workspace, message: SlackMessage) -> Payload:
    if message.thread_ts is not None:
        root = workspace.thread_of(message)
        parent = SLACKBOT if root.is_deleted else root.user
        payload: Payload = {"thread_ts": message.thread_ts, "parent_user_id": parent}
        if message.broadcast:
            payload["subtype"] = "thread_broadcast"
            payload["root"] = {"ts": root.ts, "thread_ts": root.ts, "user": root.user}
        return payload
    replies = workspace.replies(message.channel, message.ts)
    if not replies:
        return {}
    users = list(dict.fromkeys(reply.user for reply in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users_count": len(users),
        "reply_users": users,
        "latest_reply": replies[-1].ts,
        "is_locked": False,
        "subscribed": False,
    }


def bot_payload(workspace: Workspace) -> Payload:
    """The bot as bots.info and `bot_profile` show it."""
    return {
        "id": workspace.bot_id,
        "deleted": False,
        "name": workspace.bot_name,
        "updated": 0,
        "app_id": workspace.app_id,
        "user_id": workspace.bot_user,
        "icons": dict(_EMOJI_ICONS),
    }


def person_payload(workspace: Workspace, person: SlackUser) -> Payload:
    """A user as users.info shows it."""
    zone = person.tz and ZoneInfo(person.tz)
    offset = datetime.fromtimestamp(workspace.clock(), zone).utcoffset() if zone else None
    grid: Payload = {}
    if person.enterprise_id:
        grid["enterprise_user"] = {
            "id": person.id,
            "enterprise_id": person.enterprise_id,
            "enterprise_name": "",
            "is_admin": False,
            "is_owner": False,
            "teams": list(person.teams),
        }
    return {
        **grid,
        "id": person.id,
        "team_id": person.team_id,
        "name": person.name,
        "deleted": person.deleted,
        "color": person.color,
        "real_name": person.real_name,
        "tz": person.tz or None,
        "tz_label": person.tz or None,
        "tz_offset": int(offset.total_seconds()) if offset else 0,
        "locale": person.locale,
        "profile": {
            "title": person.title,
            "real_name": person.real_name,
            "real_name_normalized": person.real_name,
            "display_name": person.real_name,
            "display_name_normalized": person.real_name,
            "team": person.team_id,
        },
        "is_admin": person.is_admin,
        "is_owner": False,
        "is_primary_owner": False,
        "is_restricted": person.is_restricted,
        "is_ultra_restricted": person.is_ultra_restricted,
        "is_bot": person.is_bot,
        "is_app_user": False,
        "is_stranger": person.is_stranger,
        "updated": 0,
    }


def channel_payload(workspace: Workspace, channel: SlackChannel) -> Payload:
    """A conversation as conversations.info shows it."""
    payload: Payload = {
        "id": channel.id,
        "created": channel.created,
        "is_archived": channel.is_archived,
        "is_im": channel.kind == "im",
        "is_org_shared": False,
        "context_team_id": workspace.team_id,
    }
    if channel.kind == "im":
        user = next(user for user in channel.members if user != workspace.bot_user)
        return {**payload, "user": user, "is_user_deleted": workspace.people[user].deleted}
    return {
        **payload,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private and not channel.is_mpim,
        "is_private": channel.is_private,
        "is_mpim": channel.is_mpim,
        "is_general": False,
        "is_shared": channel.is_ext_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_member": workspace.bot_user in channel.members,
        "creator": channel.creator,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
    }


def group_payload(workspace: Workspace, group: UserGroup) -> Payload:
    """A user group as usergroups.list shows it, without its members."""
    return {
        "id": group.id,
        "team_id": workspace.team_id,
        "is_usergroup": True,
        "name": group.name,
        "handle": group.handle,
        "description": "",
        "date_delete": 0,
        "user_count": len(group.members),
    }


def view_payload(workspace: Workspace, view: View) -> Payload:
    """A view as the Web API and interactions show it."""
    content = view.content
    return {
        "id": view.id,
        "team_id": workspace.team_id,
        "type": view.type,
        "blocks": content["blocks"],
        "private_metadata": content.get("private_metadata", ""),
        "callback_id": content.get("callback_id", ""),
        "state": {"values": state_of(content["blocks"], view.values)},
        "hash": view.hash,
        "title": content.get("title", {"type": "plain_text", "text": "", "emoji": True}),
        "clear_on_close": content.get("clear_on_close", False),
        "notify_on_close": content.get("notify_on_close", False),
        "close": content.get("close"),
        "submit": content.get("submit"),
        "previous_view_id": view.previous_id,
        "root_view_id": view.root_id,
        "app_id": workspace.app_id,
        "external_id": content.get("external_id", ""),
        "app_installed_team_id": workspace.team_id,
        "bot_id": workspace.bot_id,
    }


def actor_payload(workspace: Workspace, user_id: str) -> Payload:
    """Return the person and the place of an interaction: fields that all interactions share."""
    person = workspace.people[user_id]
    return {
        "user": {
            "id": person.id,
            "username": person.name,
            "name": person.name,
            "team_id": person.team_id,
        },
        "team": {"id": workspace.team_id, "domain": workspace.team_domain},
        "enterprise": None,
        "is_enterprise_install": False,
        "api_app_id": workspace.app_id,
        "token": workspace.verification_token,
    }
