"""Names of emoji that Slack knows, from the page's list."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_LIST = Path(__file__).parents[1] / "page" / "blocks" / "emoji_data.js"
_ENTRY = re.compile(r'"([a-z0-9_+-]+)": "')


@cache
def emoji_names() -> frozenset[str]:
    """All names, without colons."""
    return frozenset(_ENTRY.findall(_LIST.read_text(encoding="utf-8")))


def is_emoji(name: str) -> bool:
    """Whether there is an emoji of that name; one with a skin tone is one, too."""
    plain, _, tone = name.partition("::")
    return plain in emoji_names() and tone in {"", *(f"skin-tone-{n}" for n in range(2, 7))}
