"""Comparison of JSON values."""

from __future__ import annotations

import json


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal: unlike in Python, `true != 1` and `1 != 1.0`."""
    if left is right:
        return True
    return type(left) is type(right) and _dump(left) == _dump(right)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
