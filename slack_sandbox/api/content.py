"""Validation of messages and views against Slack's rules."""

from __future__ import annotations

import json
from typing import Any

from slack_sandbox.args import Args
from slack_sandbox.blockkit.rules import (
    BLOCKS_TEXT,
    MARKDOWN_TEXT,
    MESSAGE_TEXT,
    VIEW_BYTES,
    message_errors,
    text_characters,
    view_errors,
)
from slack_sandbox.errors import RefusedError
from slack_sandbox.workspace.records import Payload

_METADATA = 8_000
"""Maximum size of metadata in bytes. Slack has a limit, but does not publish it."""
_ATTACHMENTS = 100


def message_content(args: Args) -> dict[str, Any]:
    """Return the text, blocks, attachments and metadata of a message, checked.

    Raises:
        RefusedError: Slack would refuse the message.
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
    """Check the blocks of a message against Slack's rules.

    Raises:
        RefusedError: `invalid_blocks` with the faults and their places, or `msg_blocks_too_long`.
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


def _fits_metadata(value: object) -> bool:
    """Whether metadata may hold a value: a text, a number, a boolean, an object, or objects.

    Source:
        https://docs.slack.dev/messaging/message-metadata; MessageMetadataEventPayloadObject of
        @slack/types
    """
    if isinstance(value, dict):
        return all(_fits_metadata(inner) for inner in value.values())
    if isinstance(value, list):
        return all(isinstance(inner, dict) and _fits_metadata(inner) for inner in value)
    return isinstance(value, str | int | float)


def _metadata(args: Args) -> Payload | None:
    metadata = args.table("metadata", "invalid_metadata_format")
    if not metadata:
        return None
    if not isinstance(metadata.get("event_type"), str) or not metadata["event_type"]:
        raise RefusedError("invalid_metadata_schema")
    if not isinstance(metadata.get("event_payload"), dict):
        raise RefusedError("invalid_metadata_schema")
    if not all(_fits_metadata(value) for value in metadata["event_payload"].values()):
        raise RefusedError("invalid_metadata_schema")
    if len(json.dumps(metadata).encode()) > _METADATA:
        raise RefusedError("metadata_too_large")
    return metadata


def check_view(content: Payload) -> None:
    """Check a view against Slack's rules.

    Raises:
        RefusedError: `view_too_large`, or `invalid_arguments` with the faults and their places.
    """
    if len(json.dumps(content).encode()) > VIEW_BYTES:
        raise RefusedError("view_too_large")
    faults = view_errors(content)
    if faults:
        raise RefusedError("invalid_arguments", faults)
