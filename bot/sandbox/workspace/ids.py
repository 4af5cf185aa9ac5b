"""Ids, message times and secrets in Slack's formats."""

from __future__ import annotations

import secrets
from collections.abc import Callable

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LENGTH = 8
_STEP = 1_597_463_007_127
"""Without a factor in common with 36 ** 8, so that no id comes twice."""


class Ids:
    """Counts ids and message times up.

    Ids are the same in each start; what must not be guessed comes from `secret`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._count = 0
        self._last_us = 0

    def new(self, prefix: str) -> str:
        """A new id, such as `C0K3J9X2PQ`."""
        self._count += 1
        number = self._count * _STEP % 36**_LENGTH
        digits = ""
        for _ in range(_LENGTH):
            number, digit = divmod(number, 36)
            digits = _DIGITS[digit] + digits
        return f"{prefix}0{digits}"

    def ts(self) -> str:
        """A message time; later than each one before, whatever the clock says."""
        self._last_us = max(int(self._clock() * 1_000_000), self._last_us + 1)
        seconds, rest = divmod(self._last_us, 1_000_000)
        return f"{seconds}.{rest:06d}"

    def secret(self) -> str:
        """Something that nobody can guess."""
        return secrets.token_hex(16)
