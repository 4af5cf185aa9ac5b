"""The chat.* methods that post, change and delete messages, and the reactions.* methods."""

from __future__ import annotations

from slack_sandbox.api.content import message_content
from slack_sandbox.args import Args, own, readable, writable
from slack_sandbox.blockkit.rules import (
    MESSAGE_TEXT,
    UPDATE_TEXT,
)
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.emoji import is_emoji
from slack_sandbox.workspace.payloads import message_payload
from slack_sandbox.workspace.records import Payload, SlackMessage
from slack_sandbox.workspace.state import Workspace


def post_message(workspace: Workspace, args: Args) -> Payload:
    """chat.postMessage."""
    channel = writable(workspace, args.need("channel"))
    content = message_content(args)
    thread_ts = workspace.reply_root(channel, args.text("thread_ts"))
    message = workspace.post(
        channel,
        workspace.bot_user,
        content.pop("text"),
        by_bot=True,
        thread_ts=thread_ts,
        broadcast=bool(thread_ts) and args.flag("reply_broadcast"),
        **content,
    )
    answer = _sent(workspace, message)
    if len(args.text("text")) > MESSAGE_TEXT:
        answer["response_metadata"] = {"warnings": ["message_truncated"]}
    return answer


def post_ephemeral(workspace: Workspace, args: Args) -> Payload:
    """chat.postEphemeral. In a thread that is gone, nobody sees the message.

    Source:
        https://docs.slack.dev/reference/methods/chat.postEphemeral (thread_ts)
    """
    channel = writable(workspace, args.need("channel"))
    user = args.need("user")
    if user not in channel.members:
        raise RefusedError("user_not_in_channel")
    content = message_content(args)
    content.pop("metadata")
    thread_ts = workspace.reply_root(channel, args.text("thread_ts"))
    if args.text("thread_ts") and thread_ts is None:
        return {"message_ts": workspace.ids.ts()}  # accepted, and shown to nobody
    message = workspace.post(
        channel,
        workspace.bot_user,
        content.pop("text"),
        by_bot=True,
        thread_ts=thread_ts,
        seen_by=user,
        **content,
    )
    return {"message_ts": message.ts}


def update(workspace: Workspace, args: Args) -> Payload:
    """chat.update."""
    channel = readable(workspace, args.need("channel"))
    if channel.is_archived:
        raise RefusedError("is_inactive")
    message = own(workspace, channel, args.need("ts"), "cant_update_message")
    if message.is_streaming:
        raise RefusedError("streaming_state_conflict")
    if len(args.text("text")) > UPDATE_TEXT:
        raise RefusedError("msg_too_long")
    content = message_content(args)
    if "text" not in args and "markdown_text" not in args:
        del content["text"]
    for kept in ("metadata", "attachments"):
        if kept not in args:
            del content[kept]
    if not content["blocks"]:
        content["edited"] = {"user": workspace.bot_user, "ts": workspace.ids.ts()}
    workspace.change(message, **content)
    return {**_sent(workspace, message), "text": message.text}


def schedule_message(workspace: Workspace, args: Args) -> Payload:
    """chat.scheduleMessage. The sandbox does not support it, and returns an error at once."""
    writable(workspace, args.need("channel"))
    args.need("post_at")
    raise RefusedError("not_in_the_sandbox", ["the sandbox sends no messages later"])


def delete(workspace: Workspace, args: Args) -> Payload:
    """chat.delete."""
    channel = readable(workspace, args.need("channel"))
    message = own(workspace, channel, args.need("ts"), "cant_delete_message")
    workspace.remove(message)
    return {"channel": channel.id, "ts": message.ts}


def get_permalink(workspace: Workspace, args: Args) -> Payload:
    """chat.getPermalink; the link opens the sandbox's page."""
    channel = readable(workspace, args.need("channel"))
    message = workspace.message(channel.id, args.need("message_ts"))
    link = f"{workspace.url}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


# ---- rules that several methods share -----------------------------------------------------------


def _sent(workspace: Workspace, message: SlackMessage) -> Payload:
    shown = message_payload(workspace, message, with_metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": shown}


def add_reaction(workspace: Workspace, args: Args) -> Payload:
    """reactions.add."""
    return _react(workspace, args, on=True)


def remove_reaction(workspace: Workspace, args: Args) -> Payload:
    """reactions.remove."""
    return _react(workspace, args, on=False)


def get_reactions(workspace: Workspace, args: Args) -> Payload:
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
