"""chat.* methods, and what any message must fulfil."""

from __future__ import annotations

import json
from typing import Any

from bot.sandbox.args import Args
from bot.sandbox.blockkit.rules import (
    BLOCKS_TEXT,
    MARKDOWN_TEXT,
    MESSAGE_TEXT,
    UPDATE_TEXT,
    message_errors,
    text_characters,
)
from bot.sandbox.errors import RefusedError
from bot.sandbox.workspace.payloads import message_payload
from bot.sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from bot.sandbox.workspace.state import Workspace

_METADATA = 8_000
"""Bytes of metadata; Slack has a limit but does not say which."""
_ATTACHMENTS = 100


def post_message(workspace: Workspace, args: Args) -> Payload:
    """chat.postMessage."""
    channel = writable(workspace, args.need("channel"))
    content = message_content(args)
    thread_ts = workspace.thread_root(channel, args.text("thread_ts"))
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
    """chat.postEphemeral."""
    channel = writable(workspace, args.need("channel"))
    user = args.need("user")
    if user not in channel.members:
        raise RefusedError("user_not_in_channel")
    content = message_content(args)
    content.pop("metadata")
    message = workspace.post(
        channel,
        workspace.bot_user,
        content.pop("text"),
        by_bot=True,
        thread_ts=workspace.thread_root(channel, args.text("thread_ts")),
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
    """chat.scheduleMessage, which the stand-in has not: it says so, where Slack would wait."""
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


def message_content(args: Args) -> dict[str, Any]:
    """Text, blocks, attachments and metadata of a message, checked.

    Raises:
        RefusedError: Slack would not take it.
    """
    if "markdown_text" in args:
        return _markdown_content(args)
    text = args.text("text")
    blocks = args.items("blocks", "invalid_blocks_format")
    attachments = args.items("attachments", "invalid_attachments")
    if not text.strip() and not blocks and not attachments:
        raise RefusedError("no_text")
    if len(attachments or []) > _ATTACHMENTS:
        raise RefusedError("too_many_attachments")
    check_blocks(blocks)
    metadata = _metadata(args)
    kept = text[:MESSAGE_TEXT]
    return {"text": kept, "blocks": blocks, "attachments": attachments, "metadata": metadata}


def check_blocks(blocks: list[Payload] | None) -> None:
    """Hold the blocks of a message against Slack's rules.

    Raises:
        RefusedError: `invalid_blocks` with what is wrong where, or `msg_blocks_too_long`.
    """
    if not blocks:
        return
    faults = message_errors({"blocks": blocks})
    if faults:
        raise RefusedError("invalid_blocks", faults, errors=faults)
    if text_characters({"blocks": blocks}) > BLOCKS_TEXT:
        raise RefusedError("msg_blocks_too_long")


def _markdown_content(args: Args) -> dict[str, Any]:
    if args.text("text") or "blocks" in args:
        raise RefusedError("markdown_text_conflict")
    text = args.text("markdown_text")
    if not text:
        raise RefusedError("no_text")
    if len(text) > MARKDOWN_TEXT:
        raise RefusedError("msg_too_long")
    blocks = [{"type": "markdown", "text": text}]
    return {"text": text, "blocks": blocks, "attachments": None, "metadata": _metadata(args)}


def _metadata(args: Args) -> Payload | None:
    metadata = args.table("metadata", "invalid_metadata_format")
    if not metadata:
        return None
    if not isinstance(metadata.get("event_type"), str) or not metadata["event_type"]:
        raise RefusedError("invalid_metadata_schema")
    if not isinstance(metadata.get("event_payload"), dict):
        raise RefusedError("invalid_metadata_schema")
    if len(json.dumps(metadata).encode()) > _METADATA:
        raise RefusedError("metadata_too_large")
    return metadata


def _sent(workspace: Workspace, message: SlackMessage) -> Payload:
    shown = message_payload(workspace, message, with_metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": shown}
