"""Reads rich text as people see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.layout.blocks import Block, Card

_IDS = {"user": ("user_id", "@"), "channel": ("channel_id", "#")}


def seen(card: Card) -> str:
    """The words of a message's rich text; ids as in mrkdwn, dates as their tokens."""
    return "".join(_part(one) for one in parts(card.blocks) if one["type"] != "emoji").strip()


def symbols(card: Card) -> list[str]:
    """The emoji of a message, in order."""
    return [one["name"] for one in parts(card.blocks) if one["type"] == "emoji"]


def links(card: Card) -> list[tuple[str, str]]:
    """The links of a message: address and words."""
    return [(one["url"], one["text"]) for one in parts(card.blocks) if one["type"] == "link"]


def parts(blocks: list[Block]) -> Iterator[Block]:
    """The leaves of all rich text."""
    for block in blocks:
        if block["type"] == "rich_text":
            yield from _leaves(block)


def _leaves(value: dict[str, Any]) -> Iterator[Block]:
    for one in value.get("elements", ()):
        if "elements" in one:
            yield from _leaves(one)
        else:
            yield one


def _part(one: Block) -> str:
    match one["type"]:
        case "user" | "channel" as kind:
            name, sign = _IDS[kind]
            return f"<{sign}{one[name]}>"
        case "usergroup":
            return f"<!subteam^{one['usergroup_id']}>"
        case "date":
            return f"<!date^{one['timestamp']}^{one['format']}|{one['fallback']}>"
        case _:
            return str(one["text"])
