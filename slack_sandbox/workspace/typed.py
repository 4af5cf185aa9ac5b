"""Convert typed text to Slack's markup: escapes, mentions, links."""

from __future__ import annotations

import re
from collections.abc import Callable

from slack_sandbox.workspace.records import Payload

_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_TYPED = re.compile(
    r"(?P<url>https?://[^\s<>|]+)|(?<![\w@&])@(?P<name>\w[\w.-]*)|(?<![\w#&])#(?P<room>[\w-]+)"
)
_MARKED = re.compile(r"<(?P<kind>[@!#]?)(?P<target>[^>|]*)(?:\|(?P<label>[^>]*))?>")

Lookup = Callable[[str], str | None]
"""From a typed name without its @ or # to Slack's mark for it, if it is known."""


def escape(text: str) -> str:
    """Replace the three characters that have a meaning in Slack's text."""
    for character, entity in _ESCAPES:
        text = text.replace(character, entity)
    return text


def unescape(text: str) -> str:
    """The reverse of `escape`."""
    for character, entity in reversed(_ESCAPES):
        text = text.replace(entity, character)
    return text


def mark_up(text: str, person: Lookup, room: Lookup) -> str:
    """Escape typed text, and mark @names, #channels and addresses as Slack does."""

    def mark(match: re.Match[str]) -> str:
        if match["url"]:
            return f"<{match['url']}>"
        if match["room"]:
            return room(match["room"].lower()) or match[0]
        name = match["name"].lower()
        bare = name.rstrip(".-")
        if found := person(name):
            return found
        found = person(bare)
        return f"{found}{match['name'][len(bare) :]}" if found else match[0]

    return _TYPED.sub(mark, escape(text))


def rich_text(text: str, block_id: str) -> list[Payload]:
    """The blocks that Slack adds to what a person typed."""
    elements: list[Payload] = []
    position = 0
    for match in _MARKED.finditer(text):
        _add_plain(elements, text[position : match.start()])
        elements.append(_element(match))
        position = match.end()
    _add_plain(elements, text[position:])
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": block_id, "elements": [section]}]


def _add_plain(elements: list[Payload], text: str) -> None:
    if text:
        elements.append({"type": "text", "text": unescape(text)})


def _element(match: re.Match[str]) -> Payload:
    kind, target = match["kind"], match["target"]
    if kind == "@":
        return {"type": "user", "user_id": target}
    if kind == "#":
        return {"type": "channel", "channel_id": target}
    if kind == "":
        return {"type": "link", "url": unescape(target)}
    if target.startswith("subteam^"):
        return {"type": "usergroup", "usergroup_id": target.removeprefix("subteam^")}
    return {"type": "broadcast", "range": target}
