"""Arguments as data: parsing and comparison."""

from __future__ import annotations

import json

from bot.redaction.masks import read_strictly


def read_object(text: str) -> dict[str, object] | None:
    """Parse a JSON object; None for damaged, too deep or other data."""
    found = read_strictly(text)
    return found if isinstance(found, dict) else None


def read_pairs(text: str) -> list[tuple[str, object]]:
    """Parse arguments as pairs of name and value; an unreadable text is one pair."""
    found = read_object(text)
    return [("arguments", text)] if found is None else list(found.items())


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal: unlike in Python, `true != 1` and `1 != 1.0`."""
    if left is right:
        return True
    return type(left) is type(right) and _dump(left) == _dump(right)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
