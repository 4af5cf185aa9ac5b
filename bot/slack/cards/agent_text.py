"""Render agents' text: Markdown without mentions and disguised links.

The result is rich text, in which Slack parses nothing: no mentions, no broadcasts, no link whose
text differs from its address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bot.layout.blocks import Block, Card, line, literal, preformatted, quote, rich
from bot.layout.text import chunks, width
from bot.records.messages import Post
from bot.redaction.mask import mask_text
from bot.words import TIME
from bot.words.mrkdwn import clock, escape
from bot.words.times import utc

MOST = 3_500
"""Maximum length of an agent's message, in characters. A longer text is split."""
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6} {1,3}(\S.*)$")
_BULLET = re.compile(r"^(\s{0,12})[-*+•]\s+(.+)$")
_NUMBER = re.compile(r"^(\s{0,12})(\d{1,4})[.)]\s+(.+)$")
_QUOTE = re.compile(r"^ {0,3}>\s?(.*)$")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|~~(?P<strike>[^~\n]+)~~"
    r"|(?<![\w*])\*(?P<star>[^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])"
    r"|(?<!\w)_(?P<under>[^_\s](?:[^_\n]*[^_\s])?)_(?!\w)"
    r"|(?P<url>https?://[A-Za-z0-9][A-Za-z0-9.-]{0,250}(?::\d{1,5})?"
    r"(?:[/?#][A-Za-z0-9\-._~/?#&=%+,;:!$*]{0,1500})?)"
)
_STYLES = {"code": "code", "bold": "bold", "strike": "strike", "star": "italic", "under": "italic"}


def reply_cards(text: str) -> list[Card]:
    """Render an agent's text as messages, each short enough to post and update.

    Returns:
        The messages in order, at least one.
    """
    return [
        Card(text=escape(part).strip() or "…", blocks=[rich(*_elements(part))])
        for part in split_text(mask_text(text)) or ["…"]
    ]


def timed_card(post: Post) -> Card:
    """Render a text of the bot with a time, in each reader's time zone."""
    before, _, after = post.text.partition(TIME)
    time = {
        "type": "date",
        "timestamp": post.time_ms // 1_000,
        "format": "{time}",
        "fallback": utc(post.time_ms),
    }
    spoken = f"{escape(before)}{clock(post.time_ms)}{escape(after)}"
    return Card(text=spoken, blocks=[rich(line(literal(before), time, literal(after)))])


def split_text(text: str, most: int = MOST) -> list[str]:
    """Make a text visible and split it, preferably between lines.

    A split code fence is closed and opened again.
    """
    parts: list[str] = []
    lines: list[str] = []
    used = 0
    fence = ""
    for piece in _lines(text, most - 40):
        size = width(piece) + 1
        if lines and used + size + len(fence) + 1 > most:
            parts.append("\n".join([*lines, fence] if fence else lines))
            lines = [fence] if fence else []
            used = len(fence) + 1 if fence else 0
        lines.append(piece)
        used += size
        fence = _fence_after(fence, piece)
    parts.append("\n".join(lines))
    return [part for part in parts if part.strip()]


def _lines(text: str, most: int) -> Iterator[str]:
    """Yield visible lines with at most `most` characters."""
    for chunk in chunks(text, 1_000_000):
        for whole in chunk.split("\n"):
            if width(whole) <= most:
                yield whole
                continue
            yield from _cut(whole, most)


def _cut(whole: str, most: int) -> Iterator[str]:
    characters: list[str] = []
    used = 0
    for character in whole:
        size = width(character)
        if used + size > most:
            yield "".join(characters)
            characters, used = [], 0
        characters.append(character)
        used += size
    yield "".join(characters)


def _fence_after(fence: str, piece: str) -> str:
    match = _FENCE.match(piece)
    if match is None:
        return fence
    if not fence:
        return match[1][:10]
    return "" if piece.strip().startswith(fence) else fence


def _elements(text: str) -> list[Block]:
    """Parse lines as rich text elements."""
    elements: list[Block] = []
    code: list[str] = []
    fence = ""
    for piece in text.split("\n"):
        before, fence = fence, _fence_after(fence, piece)
        if before and fence:
            code.append(piece)
        elif before:
            elements.extend(_box(code))
            code = []
        elif not fence:
            _add_line(elements, piece)
    elements.extend(_box(code))
    return elements or [line(literal("…"))]


def _box(code: list[str]) -> list[Block]:
    """Return a code box; none for an empty text, which Slack refuses."""
    text = "\n".join(code)
    return [preformatted(text)] if text else []


def _add_line(elements: list[Block], piece: str) -> None:
    """Add a line of text, or join it to a previous element of the same kind."""
    if match := _HEADING.match(piece):
        elements.append(line(literal(match[1].rstrip(" #") or match[1], "bold")))
    elif match := _BULLET.match(piece):
        _add_item(elements, "bullet", len(match[1]) // 2, match[2], 0)
    elif match := _NUMBER.match(piece):
        _add_item(elements, "ordered", len(match[1]) // 2, match[3], max(int(match[2]) - 1, 0))
    elif match := _QUOTE.match(piece):
        _join(elements, "rich_text_quote", quote, match[1])
    else:
        _join(elements, "rich_text_section", line, piece)


def _add_item(made: list[Block], style: str, indent: int, text: str, offset: int) -> None:
    item = line(*_inline(text))
    last = made[-1] if made else {}
    if last.get("style") == style and last.get("indent", 0) == indent:
        last["elements"].append(item)
        return
    block: Block = {"type": "rich_text_list", "style": style, "elements": [item], "indent": indent}
    if offset:
        block["offset"] = offset
    made.append(block)


def _join(made: list[Block], kind: str, build: Callable[..., Block], text: str) -> None:
    parts = _inline(text)
    last = made[-1] if made else {}
    if last.get("type") == kind:
        last["elements"].extend([literal("\n"), *parts])
    elif parts:
        made.append(build(*parts))


def _inline(text: str) -> list[Block]:
    parts: list[Block] = []
    end = 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            parts.append(literal(text[end : match.start()]))
        parts.append(_marked(match))
        end = match.end()
    if end < len(text):
        parts.append(literal(text[end:]))
    return parts


def _marked(match: re.Match[str]) -> Block:
    kind = match.lastgroup or ""
    words = match[kind]
    if kind == "url":
        # The link's text is its address, so it cannot mislead.
        return {"type": "link", "url": words, "text": words}
    return literal(words, _STYLES[kind])
