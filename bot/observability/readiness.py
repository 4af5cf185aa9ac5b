"""Readiness: whether the database answers, accepts writes, and returns due work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.clock import steady_clock
from bot.stores import Stores
from storage.errors import Fault, StorageError, StoreBrokenError

FRESH_MS = 1_000
"""An answer holds for so long: probes, whoever sends them, are no load."""

PATIENCE = timedelta(seconds=2)
"""Less than the three seconds that probes wait by default here; see `deploy/`."""

FAULTS: Mapping[Fault, str] = {
    Fault.DAMAGED: "the database file is damaged",
    Fault.FOREIGN: "the database file is not one of ours",
    Fault.FULL: "no room is left for the database",
    Fault.READ_ONLY: "the database cannot be written",
    Fault.REFUSED: "the database refuses the login, or what it asks",
    Fault.MISSING: "the database file is missing or empty",
    Fault.REPLACED: "the database file was deleted or replaced",
    Fault.ADDRESS: "the address of the database cannot be used",
    Fault.CLOCK: "the clock differs from the clock of the database",
    Fault.UNSUITED: "the database server lacks what is needed",
}
"""The answers to a probe; whoever may ask sees no path and no host."""


@dataclass
class Readiness:
    """Looks at the database, at most once a second.

    Args:
        storage: The database; open.
        failing: The kinds of due work that the last tick could not read.
        now: Milliseconds since some moment.
        patience: The longest wait for an answer of the database.
    """

    storage: Stores
    failing: Collection[str] = ()
    now: Callable[[], float] = steady_clock
    patience: timedelta = PATIENCE
    _looked_ms: float = field(default=float("-inf"), init=False)
    _fault: str = field(default="", init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def fault(self) -> str:
        """Say what is wrong, in words that anybody may read; empty when all is well."""
        async with self._lock:
            if self.now() - self._looked_ms >= FRESH_MS:
                self._fault = await self._look()
                self._looked_ms = self.now()
            return self._fault

    async def _look(self) -> str:
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                await self.storage.ping()
        except TimeoutError:
            return "the database does not answer"
        except StoreBrokenError as error:
            return FAULTS[error.fault]
        except StorageError:
            return "the database does not answer"
        if self.failing:
            return f"the database does not give what is due: {', '.join(sorted(self.failing))}"
        return ""
