"""Readiness: whether the database answers, accepts writes, and due work is looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from bot.clock import steady_clock
from bot.stores import Stores
from storage.errors import Fault, StorageError, StoreBrokenError

FRESH_MS = 1_000
"""Time for which a result is cached, in milliseconds, so that probes cause no load."""

PATIENCE = timedelta(seconds=2)
"""Timeout of the database check: less than the three seconds of the probes in `deploy/`."""

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
    Fault.KEY: "the key of the audit is missing or wrong",
    Fault.UNSUITED: "the database server lacks what is needed",
}
"""The responses to a probe by fault. They contain no path and no host, because probes are not
authenticated.
"""

STANDING_STILL = "the scheduler stands still"


@dataclass
class Readiness:
    """Checks the database and the scheduler, at most once a second.

    Args:
        storage: The open database.
        failing: The kinds of due work that the last tick could not read.
        is_late: Whether the last tick is too old.
        now: A monotonic clock, in milliseconds.
        patience: Timeout of the database check.
    """

    storage: Stores
    failing: Collection[str] = ()
    is_late: Callable[[], bool] = lambda: False
    now: Callable[[], float] = steady_clock
    patience: timedelta = PATIENCE
    _looked_ms: float = field(default=float("-inf"), init=False)
    _fault: str = field(default="", init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def fault(self) -> str:
        """Return the fault, without confidential details; empty if the bot is ready."""
        async with self._lock:
            if self.now() - self._looked_ms >= FRESH_MS:
                self._fault = await self._database_fault()
                self._looked_ms = self.now()
            return self._fault

    async def _database_fault(self) -> str:
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                await self.storage.ping()
        except TimeoutError:
            return "the database does not answer"
        except StoreBrokenError as error:
            return FAULTS[error.fault]
        except StorageError:
            return "the database does not answer"
        if not self.storage.may_claim:
            return FAULTS[Fault.CLOCK]
        if self.failing:
            return f"the database does not give what is due: {', '.join(sorted(self.failing))}"
        return STANDING_STILL if self.is_late() else ""
