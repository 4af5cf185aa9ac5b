"""Four letters for a request, to be read out and typed: the first 20 bits of its id.

They are no secret and no proof: more than one request may have them, and whoever types them sees
what they may see anyway.
"""

from __future__ import annotations

import re

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: none that looks like another one."""
_ALIKE = str.maketrans("OIL", "011")
LENGTH = 4
_PREFIX = "apr_"
_DIGITS = 5
_WHOLE = re.compile(r"apr_[0-9a-f]{32}")


def short_id(approval_id: str) -> str:
    """The four letters of a request; its id where that has not our form."""
    try:
        number = int(approval_id.removeprefix(_PREFIX)[:_DIGITS], 16)
    except ValueError:
        return approval_id
    return "".join(_LETTERS[number >> shift & 31] for shift in (15, 10, 5, 0))


def prefix_of(typed: str) -> str:
    """The beginning of the ids that somebody means; empty for what cannot be one.

    Args:
        typed: Four letters, in whichever case, or a whole id.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    letters = typed.upper().translate(_ALIKE)
    if len(letters) != LENGTH or any(one not in _LETTERS for one in letters):
        return ""
    number = 0
    for one in letters:
        number = number << 5 | _LETTERS.index(one)
    return f"{_PREFIX}{number:0{_DIGITS}x}"
