"""Message history of a thread's earlier turns, for its agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.core.checkpoint import MessageLog


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """Message log of a thread's turns. Turns are numbered from 1."""

    log: MessageLog

    async def append(self, log_id: str, turn: int, data: str) -> None:
        """Append an entry; see `MessageLog.append`."""
        await self.log.append(log_id, turn, data)

    async def load(self, log_id: str, *, before_turn: int) -> Sequence[str]:
        """Load earlier entries; see `MessageLog.load`."""
        return await self.log.load(log_id, before_turn=before_turn) if before_turn > 1 else ()
