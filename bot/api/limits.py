"""Limits of rate and of held calls. They are in memory: each process counts for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil

from bot.api.problems import ApiProblemError
from bot.ports.process import Clock

MINUTE_MS = 60_000

READS_PER_MINUTE = 600
"""Maximum number of calls of one program in a minute, without creations."""
WRONG_KEYS = 10
"""Maximum number of wrong keys from one address in a minute."""
MOST_HELD = 2_000
"""Maximum number of held calls in a process."""
MOST_STREAMS = 10
"""Maximum number of event streams of one program in a process."""
_MOST_KNOWN = 10_000


@dataclass(slots=True)
class RateLimit:
    """Token buckets, by name: each fills at a rate, up to a burst.

    Attributes:
        clock: The time now.
        buckets: Tokens and time of the last change, by name. Full buckets may be forgotten.
    """

    clock: Clock
    buckets: dict[str, tuple[float, int]] = field(default_factory=dict)

    def take_token(self, name: str, *, per_minute: int, burst: int) -> None:
        """Take a token.

        Raises:
            ApiProblemError: `rate-limited`, because the bucket is empty.
        """
        now_ms = self.clock()
        tokens, since_ms = self.buckets.get(name, (float(burst), 0))
        passed_ms = max(0, now_ms - since_ms)  # a clock can be set back
        tokens = min(float(burst), tokens + passed_ms * per_minute / MINUTE_MS)
        if tokens < 1:
            wait_s = max(1, ceil((1 - tokens) * 60 / per_minute))
            raise ApiProblemError("rate-limited", retry_after_s=wait_s)
        if len(self.buckets) >= _MOST_KNOWN and name not in self.buckets:
            self.buckets.pop(next(iter(self.buckets)))
        self.buckets[name] = (tokens - 1, now_ms)


@dataclass(slots=True)
class WrongKeys:
    """Addresses that sent wrong keys: after ten in a minute, a minute of refusals.

    Attributes:
        clock: The time now.
        counts: Number of wrong keys, and the end of the minute, by address.
    """

    clock: Clock
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def check(self, address: str) -> None:
        """Refuse an address before anything is looked up.

        Raises:
            ApiProblemError: `rate-limited`.
        """
        count, until_ms = self.counts.get(address, (0, 0))
        left_ms = until_ms - self.clock()
        if count >= WRONG_KEYS and 0 < left_ms <= MINUTE_MS:
            raise ApiProblemError(
                "rate-limited", "too many wrong keys", retry_after_s=ceil(left_ms / 1000)
            )

    def note(self, address: str) -> None:
        """Count a wrong key."""
        now_ms = self.clock()
        count, until_ms = self.counts.pop(address, (0, 0))
        if not now_ms < until_ms <= now_ms + MINUTE_MS:
            count, until_ms = 0, now_ms + MINUTE_MS
        if count + 1 == WRONG_KEYS:
            until_ms = now_ms + MINUTE_MS
        if len(self.counts) >= _MOST_KNOWN:
            self.counts.pop(next(iter(self.counts)))
        self.counts[address] = (count + 1, until_ms)


@dataclass(slots=True)
class HeldCalls:
    """Calls that wait for something, by program."""

    by_name: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def hold(self, program: str, *, most: int, kind: str = "wait") -> Iterator[None]:
        """Count a call while it waits.

        Args:
            program: Id of the program.
            most: Maximum number of waiting calls of this kind of the program.
            kind: `wait`, or `stream`.

        Raises:
            ApiProblemError: `too-many-waiting`.
        """
        name = f"{kind}:{program}"
        if self.by_name[name] >= most or self.by_name.total() >= MOST_HELD:
            raise ApiProblemError("too-many-waiting", retry_after_s=5)
        self.by_name[name] += 1
        try:
            yield
        finally:
            self.by_name[name] -= 1
            if not self.by_name[name]:
                del self.by_name[name]
