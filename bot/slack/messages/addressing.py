"""Limit the mentions of a new message to its recipients.

Slack notifies everyone whom a new message mentions. People who are only named, such as requesters,
therefore appear with plain names, and the notification text begins with the recipients. Updates
notify nobody and mention people as usual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from bot.errors import DirectoryError
from bot.layout.blocks import Block, Card
from bot.layout.parts import MOST_PEOPLE
from bot.layout.text import clip
from bot.words import say
from bot.words.mrkdwn import escape, mention

NameOf = Callable[[str], Awaitable[str]]
"""Returns the name of a person or user group by Slack id; raises `DirectoryError`."""

_NAME = 60
_MENTION = re.compile(r"<(?:@|!subteam\^)([UWS][A-Z0-9]{1,30})>")
_ELEMENT = re.compile(r'"(?:user_id|usergroup_id)": "([UWS][A-Z0-9]{1,30})"')
_ELEMENTS = {"user": "user_id", "usergroup": "usergroup_id"}
_MARKS = str.maketrans("", "", "*_~`\r\n\t")


async def addressed(card: Card, mentions: Sequence[str], name_of: NameOf | None) -> Card:
    """Return a card for a new message that mentions only the given recipients.

    Args:
        card: The rendered card.
        mentions: Ids of recipients: people and user groups.
        name_of: Looks up the names of others; None keeps their mentions.
    """
    text, blocks = card.text, list(card.blocks)
    if name_of is not None:
        slack_ids = {*_MENTION.findall(text), *_called_in(blocks)} - {*mentions}
        names = {slack_id: await _name(slack_id, name_of) for slack_id in sorted(slack_ids)}
        text, blocks = _plain(text, names), [_named(block, names) for block in blocks]
    called = [mention(slack_id) for slack_id in mentions if slack_id[:1] in {"U", "W", "S"}]
    missing = [tag for tag in called if tag not in text][:MOST_PEOPLE]
    if missing:
        text = say("notify.to", who=", ".join(missing), text=text)
    return Card(text=text, blocks=blocks)


async def _name(slack_id: str, name_of: NameOf) -> str:
    try:
        name = (await name_of(slack_id)).translate(_MARKS).strip()
    except DirectoryError:
        name = ""
    return clip(name, _NAME) or say("line.somebody")


def _called_in(blocks: Sequence[Block]) -> set[str]:
    text = json.dumps(blocks)
    return {*_MENTION.findall(text), *_ELEMENT.findall(text)}


def _plain(text: str, names: Mapping[str, str]) -> str:
    return _MENTION.sub(lambda match: _shown(match, names), text)


def _shown(match: re.Match[str], names: Mapping[str, str]) -> str:
    return escape(names[match[1]]) if match[1] in names else match[0]


def _named(node: Any, names: Mapping[str, str]) -> Any:
    """Return a block or element with names instead of mentions."""
    if isinstance(node, list | tuple):
        return [_named(child, names) for child in node]
    if not isinstance(node, dict):
        return node
    called = str(node.get(_ELEMENTS.get(str(node.get("type")), ""), ""))
    if called in names:
        style = {"style": node["style"]} if "style" in node else {}
        return {"type": "text", "text": names[called], **style}
    if node.get("type") == "mrkdwn":
        return {**node, "text": _plain(str(node["text"]), names)}
    return {key: _named(value, names) for key, value in node.items()}
