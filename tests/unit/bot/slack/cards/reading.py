"""Reads messages, and their rich text as people see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.layout.blocks import Block, Card

_IDS = {"user": ("user_id", "@"), "channel": ("channel_id", "#")}


def said(card: Card) -> str:
    """All that a message is made of."""
    return json.dumps(card.blocks, ensure_ascii=False)


def buttons(card: Card) -> dict[str, Block]:
    """The buttons of a message, by what they do."""
    rows = [block["elements"] for block in card.blocks if block["type"] == "actions"]
    return {button["action_id"]: button for row in rows for button in row}


def seen(card: Card) -> str:
    """The words of a message's rich text; ids as in mrkdwn, dates as their tokens."""
    return "".join(_part(part) for part in parts(card.blocks) if part["type"] != "emoji").strip()


def symbols(card: Card) -> list[str]:
    """The emoji of a message, in order."""
    return [part["name"] for part in parts(card.blocks) if part["type"] == "emoji"]


def links(card: Card) -> list[tuple[str, str]]:
    """The links of a message: address and words."""
    return [(part["url"], part["text"]) for part in parts(card.blocks) if part["type"] == "link"]


def parts(blocks: list[Block]) -> Iterator[Block]:
    """The leaves of all rich text."""
    for block in blocks:
        if block["type"] == "rich_text":
            yield from _leaves(block)


def _leaves(value: dict[str, Any]) -> Iterator[Block]:
    for element in value.get("elements", ()):
        if "elements" in element:
            yield from _leaves(element)
        else:
            yield element


def _part(element: Block) -> str:
    match element["type"]:
        case "user" | "channel" as kind:
            name, sign = _IDS[kind]
            return f"<{sign}{element[name]}>"
        case "usergroup":
            return f"<!subteam^{element['usergroup_id']}>"
        case "date":
            return f"<!date^{element['timestamp']}^{element['format']}|{element['fallback']}>"
        case _:
            return str(element["text"])
