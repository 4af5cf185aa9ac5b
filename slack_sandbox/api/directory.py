"""Methods that look up the team, people, groups, conversations and messages."""

from __future__ import annotations

from collections.abc import Iterable

from slack_sandbox.args import Args, readable
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.payloads import (
    bot_payload,
    channel_payload,
    group_payload,
    message_payload,
    person_payload,
)
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from slack_sandbox.workspace.state import Workspace

_SCOPE_KINDS = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


def auth_test(workspace: Workspace, args: Args) -> Payload:  # noqa: ARG001 - same for all methods
    """auth.test."""
    return {
        "url": f"https://{workspace.team_domain}.slack.com/",
        "team": workspace.team_name,
        "user": workspace.bot_name,
        "team_id": workspace.team_id,
        "user_id": workspace.bot_user,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": False,
    }


def team_info(workspace: Workspace, args: Args) -> Payload:
    """team.info."""
    if args.text("team") not in ("", workspace.team_id):
        raise RefusedError("team_not_found")
    facts = {"id": workspace.team_id, "name": workspace.team_name, "domain": workspace.team_domain}
    return {"team": {**facts, "email_domain": "", "icon": {"image_default": True}}}


def bots_info(workspace: Workspace, args: Args) -> Payload:
    """bots.info."""
    if args.text("bot") not in ("", workspace.bot_id):
        raise RefusedError("bot_not_found")
    return {"bot": bot_payload(workspace)}


def users_info(workspace: Workspace, args: Args) -> Payload:
    """users.info."""
    person = workspace.person(args.need("user"))
    if person.is_hidden:
        raise RefusedError("user_not_visible")
    return {"user": person_payload(workspace, person)}


def users_list(workspace: Workspace, args: Args) -> Payload:
    """users.list."""
    people, cursor = args.page(list(workspace.people.values()))
    shown = [person_payload(workspace, person) for person in people if not person.is_hidden]
    return _paged("members", shown, cursor)


def usergroups_list(workspace: Workspace, args: Args) -> Payload:
    """usergroups.list."""
    payloads = []
    for group in workspace.groups.values():
        payload = group_payload(workspace, group)
        if args.flag("include_users"):
            payload["users"] = list(group.members)
        payloads.append(payload)
    return {"usergroups": payloads}


def usergroups_users_list(workspace: Workspace, args: Args) -> Payload:
    """usergroups.users.list, without deactivated people."""
    group = workspace.groups.get(args.need("usergroup"))
    if group is None:
        raise RefusedError("no_such_subteam")
    return {"users": [user for user in group.members if not workspace.people[user].deleted]}


def conversations_info(workspace: Workspace, args: Args) -> Payload:
    """conversations.info. The bot may read a public channel without being a member."""
    channel = _listed(workspace, args.need("channel"))
    payload = channel_payload(workspace, channel)
    if args.flag("include_num_members"):
        payload["num_members"] = len(channel.members)
    return {"channel": payload}


def conversations_members(workspace: Workspace, args: Args) -> Payload:
    """conversations.members."""
    channel = _listed(workspace, args.need("channel"))
    members, cursor = args.page(channel.members, most=workspace.features.page)
    return _paged("members", members, cursor)


def conversations_list(workspace: Workspace, args: Args) -> Payload:
    """conversations.list."""
    wanted = (args.text("types") or "public_channel").split(",")
    kinds = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    if not set(wanted) <= set(kinds):
        raise RefusedError("invalid_types")
    matching = [
        channel
        for channel in workspace.channels.values()
        if channel.event_type in {kinds[kind] for kind in wanted}
        and (workspace.bot_user in channel.members or channel.event_type == "channel")
        and not (channel.is_archived and args.flag("exclude_archived"))
    ]
    for channel in matching:
        _need_scope(workspace, channel, "read")
    channels, cursor = args.page(matching, most=workspace.features.page)
    return _paged("channels", [channel_payload(workspace, listed) for listed in channels], cursor)


def conversations_open(workspace: Workspace, args: Args) -> Payload:
    """conversations.open, for a direct message with one person."""
    users = args.text("users")
    if args.text("channel"):
        channel = workspace.has_channel(workspace.bot_user, args.text("channel"))
    elif not users:
        raise RefusedError("users_list_not_supplied")
    elif "," in users:
        raise RefusedError("not_enough_users", ["the sandbox has no group messages"])
    elif workspace.person(users).is_bot:
        raise RefusedError("cannot_dm_bot")
    else:
        channel = workspace.direct_message(users)
    if args.flag("return_im"):
        return {"channel": channel_payload(workspace, channel)}
    return {"channel": {"id": channel.id}}


def conversations_history(workspace: Workspace, args: Args) -> Payload:
    """conversations.history: newest first, without replies that were not broadcast."""
    channel = readable(workspace, args.need("channel"))
    _need_scope(workspace, channel, "history")
    messages = workspace.public(channel.id)
    roots = [message for message in messages if message.thread_ts is None or message.broadcast]
    return _messages(workspace, args, list(reversed(_between(roots, args))), 100)


def conversations_replies(workspace: Workspace, args: Args) -> Payload:
    """conversations.replies: the root, then its replies, oldest first."""
    channel = readable(workspace, args.need("channel"))
    _need_scope(workspace, channel, "history")
    wanted = args.need("ts")
    root = next((message for message in workspace.public(channel.id) if message.ts == wanted), None)
    if root is None:
        raise RefusedError("thread_not_found")
    replies = _between(workspace.replies(channel.id, root.ts), args)
    return _messages(workspace, args, [root, *replies], 1_000)


def _listed(workspace: Workspace, name: str) -> SlackChannel:
    """Return a conversation that the bot may know, also without being a member."""
    channel = workspace.channels.get(name)
    if channel is None or channel.event_type != "channel":
        channel = workspace.has_channel(workspace.bot_user, name)
    _need_scope(workspace, channel, "read")
    return channel


def _need_scope(workspace: Workspace, channel: SlackChannel, right: str) -> None:
    scope = f"{_SCOPE_KINDS[channel.event_type]}:{right}"
    if scope not in workspace.scopes:
        provided = ",".join(sorted(workspace.scopes))
        raise RefusedError("missing_scope", needed=scope, provided=provided)


def _between(messages: Iterable[SlackMessage], args: Args) -> list[SlackMessage]:
    oldest, latest = args.text("oldest"), args.text("latest")
    inclusive = args.flag("inclusive")

    def inside(ts: str) -> bool:
        if inclusive and ts in (oldest, latest):
            return True
        return (not oldest or _time(ts) > _time(oldest)) and (
            not latest or _time(ts) < _time(latest)
        )

    return [message for message in messages if inside(message.ts)]


def _time(ts: str) -> tuple[int, int]:
    """Return a ts for comparison. A float would lose digits."""
    seconds, _, rest = ts.partition(".")
    try:
        return int(seconds), int(rest.ljust(6, "0")[:6] or 0)
    except ValueError:
        raise RefusedError("invalid_ts_oldest") from None


def _messages(
    workspace: Workspace, args: Args, messages: list[SlackMessage], default: int
) -> Payload:
    with_metadata = args.flag("include_all_metadata")
    part, cursor = args.page(messages, default)
    shown = [message_payload(workspace, message, with_metadata=with_metadata) for message in part]
    return {**_paged("messages", shown, cursor), "has_more": bool(cursor)}


def _paged(name: str, items: Iterable[object], cursor: str) -> Payload:
    return {name: list(items), "response_metadata": {"next_cursor": cursor}}
