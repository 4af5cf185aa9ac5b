"""Arguments as data: read from text, and compared."""

from __future__ import annotations

import json

from bot.redaction.masks import read_strictly


def read_object(text: str) -> dict[str, object] | None:
    """Read a JSON object; None when it is damaged, too deep, or something else."""
    found = read_strictly(text)
    return found if isinstance(found, dict) else None


def read_pairs(text: str) -> list[tuple[str, object]]:
    """Read arguments as pairs of name and value; what cannot be read is one pair, whole."""
    found = read_object(text)
    return [("arguments", text)] if found is None else list(found.items())


def same(left: object, right: object) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1 and 1 is not 1.0."""
    if left is right:
        return True
    return type(left) is type(right) and _dump(left) == _dump(right)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
