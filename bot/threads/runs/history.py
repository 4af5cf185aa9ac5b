"""The earlier turns of a thread, as far as its agents know them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.core.checkpoint import MessageLog


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """The log of a thread's turns, which count from 1: before the first there is nothing to read.

    Args:
        log: Where they are kept.
    """

    log: MessageLog

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """See `MessageLog.append`."""
        await self.log.append(log_id, turn, data)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """See `MessageLog.load`."""
        return await self.log.load(log_id, before_turn=before_turn) if before_turn > 1 else ()
