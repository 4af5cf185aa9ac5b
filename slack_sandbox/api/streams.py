"""Streams of text, statuses of threads, and the methods of the agent view."""

from __future__ import annotations

from typing import Any

from slack_sandbox.api.content import check_blocks
from slack_sandbox.args import Args, own, readable, writable
from slack_sandbox.blockkit.rules import MARKDOWN_TEXT
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.payloads import message_payload
from slack_sandbox.workspace.records import Payload, SlackChannel, SlackMessage
from slack_sandbox.workspace.state import STATUSES, Workspace


def start(workspace: Workspace, args: Args) -> Payload:
    """chat.startStream."""
    _check_feature(workspace, "streaming")
    channel = writable(workspace, args.need("channel"))
    _check_recipient(workspace, channel, args)
    thread_ts = workspace.thread_root(channel, args.need("thread_ts"))
    blocks = _grown([], args)
    message = workspace.post(
        channel,
        workspace.bot_user,
        _plain(blocks),
        by_bot=True,
        blocks=blocks,
        thread_ts=thread_ts,
        is_streaming=True,
    )
    return {"channel": channel.id, "ts": message.ts}


def append(workspace: Workspace, args: Args) -> Payload:
    """chat.appendStream."""
    _check_feature(workspace, "streaming")
    message = _stream(workspace, args)
    if "markdown_text" not in args and "chunks" not in args:
        raise RefusedError("no_text")
    blocks = _grown(message.blocks or [], args)
    workspace.change(message, blocks=blocks, text=_plain(blocks))
    return {"channel": message.channel, "ts": message.ts}


def stop(workspace: Workspace, args: Args) -> Payload:
    """chat.stopStream."""
    _check_feature(workspace, "streaming")
    message = _stream(workspace, args)
    blocks = _grown(message.blocks or [], args)
    last = args.items("blocks", "invalid_blocks_format")
    check_blocks(last)
    blocks = [*blocks, *(last or [])]
    if not blocks:
        raise RefusedError("no_text")
    fields: dict[str, Any] = {"blocks": blocks, "text": _plain(blocks), "is_streaming": False}
    if metadata := args.table("metadata", "invalid_metadata_format"):
        fields["metadata"] = metadata
    workspace.change(message, **fields)
    shown = message_payload(workspace, message, with_metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": shown}


def set_status(workspace: Workspace, args: Args) -> Payload:
    """assistant.threads.setStatus."""
    _check_feature(workspace, "status")
    channel = writable(workspace, args.need("channel_id"))
    thread_ts = workspace.thread_root(channel, args.need("thread_ts"))
    workspace.set_status(channel.id, thread_ts, args.text("status"))
    return {}


def _check_feature(workspace: Workspace, name: str) -> None:
    if not getattr(workspace.features, name):
        raise RefusedError("unknown_method")


def _check_recipient(workspace: Workspace, channel: SlackChannel, args: Args) -> None:
    """Require the recipient of a stream, as Slack does outside of direct messages."""
    if channel.kind == "im":
        return
    if not args.text("recipient_team_id"):
        raise RefusedError("missing_recipient_team_id")
    if not args.text("recipient_user_id"):
        raise RefusedError("missing_recipient_user_id")
    if workspace.person(args.text("recipient_user_id")).team_id != args.text("recipient_team_id"):
        raise RefusedError("team_not_found")


def _stream(workspace: Workspace, args: Args) -> SlackMessage:
    channel = readable(workspace, args.need("channel"))
    message = own(workspace, channel, args.need("ts"), "message_not_owned_by_app")
    if not message.is_streaming:
        raise RefusedError("message_not_in_streaming_state")
    return message


def _grown(blocks: list[Payload], args: Args) -> list[Payload]:
    """Return the blocks of a stream after a call's text and chunks."""
    grown = [dict(block) for block in blocks]
    chunks = args.items("chunks", "invalid_chunks") or []
    if text := args.text("markdown_text"):
        chunks = [{"type": "markdown_text", "text": text}, *chunks]
    for chunk in chunks:
        _add_chunk(grown, chunk)
    return grown


def _add_chunk(blocks: list[Payload], chunk: Payload) -> None:
    match chunk:
        case {"type": "markdown_text", "text": str(text)}:
            if len(text) > MARKDOWN_TEXT:
                raise RefusedError("msg_too_long")
            _add_text(blocks, text)
        case {"type": "task_update", "id": str(task_id)}:
            _add_task(blocks, task_id, chunk)
        case {"type": "plan_update", "title": str(title)}:
            _set_plan(blocks, title)
        case {"type": "blocks", "blocks": list(more)}:
            check_blocks(more)
            blocks.extend(more)
        case _:
            raise RefusedError("invalid_chunks")


def _set_plan(blocks: list[Payload], title: str) -> None:
    header = {"type": "header", "block_id": "plan", "text": {"type": "plain_text", "text": title}}
    blocks[:] = [header, *(block for block in blocks if block.get("block_id") != "plan")]


def _add_text(blocks: list[Payload], text: str) -> None:
    if blocks and blocks[-1]["type"] == "markdown":
        blocks[-1]["text"] += text
    else:
        blocks.append({"type": "markdown", "text": text})


def _add_task(blocks: list[Payload], task_id: str, chunk: Payload) -> None:
    facts: Payload = {name: chunk[name] for name in ("title", "status") if name in chunk}
    for block in blocks:
        if block.get("task_id") == task_id:
            block.update(facts)
            return
    blocks.append({"type": "task_card", "task_id": task_id, **facts})


def _plain(blocks: list[Payload]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "markdown")


_MOST_TITLE = 200
_MOST_PROMPTS = 4


def set_session_status(workspace: Workspace, args: Args) -> Payload:
    """agents.sessions.setStatus."""
    _check_feature(workspace, "agent_view")
    channel = writable(workspace, args.need("channel_id"))
    thread_ts = workspace.thread_root(channel, args.need("thread_ts"))
    named = [status for status in STATUSES if status == args.text("status")]
    title = args.text("title")
    if not named:
        raise RefusedError("invalid_status")
    if len(title) > _MOST_TITLE:
        raise RefusedError("invalid_title")
    key = (channel.id, thread_ts)
    session = workspace.agent_view.set_status(key, named[0], title)
    return {"status": session.status, "title": session.title}


def set_suggested_prompts(workspace: Workspace, args: Args) -> Payload:
    """assistant.threads.setSuggestedPrompts. For an agent, it ignores the thread.

    Source:
        https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
    """
    _check_feature(workspace, "agent_view")
    channel = writable(workspace, args.need("channel_id"))
    prompts = args.items("prompts", "invalid_prompts") or []
    if not 1 <= len(prompts) <= _MOST_PROMPTS or not all(map(_is_prompt, prompts)):
        raise RefusedError("invalid_prompts")
    if channel.kind == "im" and not args.text("thread_ts"):
        shown = {"title": args.text("title"), "prompts": prompts}
        workspace.agent_view.suggest(channel.id, shown)
    return {}


def _is_prompt(prompt: Payload) -> bool:
    texts = (prompt.get("title"), prompt.get("message"))
    return all(isinstance(text, str) and text for text in texts)
