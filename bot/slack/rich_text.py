"""Read the `rich_text` blocks that Slack's client adds to what a person writes.

Source:
    https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.threads.message_event import Markup
from bot.words.typed import names_in_colons

_UNREAD = frozenset({"rich_text_quote", "rich_text_preformatted"})


def markup_of(message: Mapping[str, Any]) -> Markup | None:
    """Return what a message's blocks say about its text; None without a `rich_text` block."""
    parts = _tables(message.get("blocks"))
    blocks = [part for part in parts if part.get("type") == "rich_text" and part.get("elements")]
    if not blocks:
        return None
    runs = [run for block in blocks for run in _runs(block, is_read=True)]
    people = [run for run, is_read in runs if is_read and run.get("type") == "user"]
    return Markup(
        mentions=frozenset(str(person.get("user_id")) for person in people),
        emoji=tuple(name for run, _ in runs for name in _names(run)),
    )


def _runs(part: Mapping[str, Any], *, is_read: bool) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield the texts, mentions and emoji in their order; False for those in quotes and code."""
    for run in _tables(part.get("elements")):
        style = run.get("style")
        is_code = isinstance(style, Mapping) and bool(style.get("code"))
        # A list or a code block with a border stands in a quote.
        is_aside = is_code or run.get("type") in _UNREAD or bool(run.get("border"))
        yield run, is_read and not is_aside
        yield from _runs(run, is_read=is_read and not is_aside)


def _names(run: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the names in colons that a text or an emoji has in Slack's text."""
    if run.get("type") == "emoji":
        # Older clients put the skin tone into the name.
        yield str(run.get("name")).partition("::")[0], True
    elif run.get("type") == "text":
        yield from ((name, False) for name in names_in_colons(str(run.get("text"))))


def _tables(value: object) -> list[Mapping[str, Any]]:
    return (
        [table for table in value if isinstance(table, Mapping)] if isinstance(value, list) else []
    )
