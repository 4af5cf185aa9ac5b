"""Ids and message times in Slack's formats; trigger ids, each of which opens one modal."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from slack_sandbox.errors import RefusedError

LIFE = 3.0
"""Seconds that a trigger id may be used."""
_KEPT = 1_000


@dataclass(slots=True, kw_only=True)
class Trigger:
    """A person's deed, as the reason to show them a modal."""

    user: str
    view_id: str | None
    """The modal in which it was done, if it was in one."""
    window: str
    """The window in which it was done; empty when it was in none."""
    expires_at: float
    used: bool = False


class Triggers:
    """All trigger ids, also the old ones: Slack says why it refuses."""

    def __init__(self, clock: Callable[[], float], secret: Callable[[], str]) -> None:
        self._clock = clock
        self._secret = secret
        self._known: dict[str, Trigger] = {}

    def issue(self, user: str, view_id: str | None = None, *, window: str = "") -> str:
        """A new trigger id for what `user` just did."""
        now = self._clock()
        trigger_id = f"{int(now)}.{len(self._known)}.{self._secret()}"
        self._known[trigger_id] = Trigger(
            user=user, view_id=view_id, window=window, expires_at=now + LIFE
        )
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]
        return trigger_id

    def expire(self, trigger_id: str | None = None) -> None:
        """Let one trigger id, or each that there is, be too old from now on."""
        for known, trigger in self._known.items():
            if trigger_id in (None, known):
                trigger.expires_at = float("-inf")

    def spend(self, trigger_id: str) -> Trigger:
        """Use a trigger id.

        Raises:
            RefusedError: Never issued, too old, or used before.
        """
        trigger = self._known.get(trigger_id)
        if trigger is None:
            raise RefusedError("invalid_trigger_id")
        if trigger.used:
            raise RefusedError("exchanged_trigger_id")
        if self._clock() > trigger.expires_at:
            raise RefusedError("expired_trigger_id")
        trigger.used = True
        return trigger


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
