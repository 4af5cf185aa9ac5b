"""Trigger ids: the right to open one modal, once, within three seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.sandbox.errors import RefusedError

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
