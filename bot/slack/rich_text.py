"""Read the `rich_text` blocks that Slack's client adds to what a person writes.

Source:
    https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.threads.message_event import Markup

_UNREAD = frozenset({"rich_text_quote", "rich_text_preformatted"})


def markup_of(message: Mapping[str, Any]) -> Markup | None:
    """Return what a message's blocks say about its text; None without a `rich_text` block."""
    parts = _tables(message.get("blocks"))
    blocks = [one for one in parts if one.get("type") == "rich_text" and one.get("elements")]
    if not blocks:
        return None
    runs = [run for block in blocks for run in _runs(block)]
    return Markup(
        mentions=frozenset(str(run.get("user_id")) for run in runs if run.get("type") == "user"),
        emoji=tuple(str(run.get("name")) for run in runs if run.get("type") == "emoji"),
    )


def _runs(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the texts, mentions and emoji outside of quotes and code, in their order."""
    for run in _tables(part.get("elements")):
        style = run.get("style")
        is_code = isinstance(style, Mapping) and bool(style.get("code"))
        # A list or a code block with a border stands in a quote.
        if is_code or run.get("type") in _UNREAD or run.get("border"):
            continue
        yield run
        yield from _runs(run)


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
