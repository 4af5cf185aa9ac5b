"""Short ids of requests, to read out and type: four letters for the first 20 bits.

A short id is neither secret nor unique, and grants no access: people see only what they may see
anyway.
"""

from __future__ import annotations

import re

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, without letters that look alike."""
_ALIKE = str.maketrans("OIL", "011")
LENGTH = 4
_PREFIX = "apr_"
_DIGITS = 5
_WHOLE = re.compile(r"apr_[0-9a-f]{32}")


def short_id(approval_id: str) -> str:
    """Return the short id of a request, or the id itself if it has another form."""
    try:
        number = int(approval_id.removeprefix(_PREFIX)[:_DIGITS], 16)
    except ValueError:
        return approval_id
    return "".join(_LETTERS[number >> shift & 31] for shift in (15, 10, 5, 0))


def prefix_of(typed: str) -> str:
    """Return the prefix of the ids that a typed text means; empty if it is no id."""
    if _WHOLE.fullmatch(typed):
        return typed
    letters = typed.upper().translate(_ALIKE)
    if len(letters) != LENGTH or any(character not in _LETTERS for character in letters):
        return ""
    number = 0
    for letter in letters:
        number = number << 5 | _LETTERS.index(letter)
    return f"{_PREFIX}{number:0{_DIGITS}x}"
