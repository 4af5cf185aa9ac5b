"""State of one worker pass over a thread: its lease, and what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.records.approval import Approval
from bot.records.messages import Message
from bot.records.thread import Thread
from bot.redaction.mask import mask_text

MOST_SAID = 4_000
"""Longest text of an agent that a program reads, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """State kept after a lease is released, for this process's next pass.

    Attributes:
        fence: Fencing token of that lease. The state is valid if the next lease follows it.
        made_ms: Creation time of the thread. A deleted and recreated thread has the same id, and
            its leases and turns count from 1 again.
        running: Approvals of the open turn that are decided and whose calls have not ended; None if
            unknown.
    """

    fence: int
    made_ms: int
    running: tuple[Approval, ...] | None = ()


@dataclass(slots=True, kw_only=True)
class ThreadPass:
    """A thread from the claim of its lease to the release.

    Attributes:
        thread: As claimed, or as written since.
        left: State of the previous pass, if no other lease came between; None if unknown.
        is_new_turn: Whether the open turn began in this pass, so no run is stored.
        has_more: Whether there may be more unread messages.
        messages: First messages of the open turn; None if not read.
        running: See `LeftOver`; of the previous pass, then as this pass leaves it.
        has_ended_turn: Whether the turn has ended and the release must store that.
        said: The agent's newest text of this pass, shown above the next card.
        decided: Number of decisions that the run received; None if unknown.
        stop: The message that asks to stop the open turn.
        opened: The thread's open approvals as just read; None if they must be read.
        parked_by: Ids of the freezes that the turn or its calls wait for, with spaces between.
    """

    thread: Thread
    left: LeftOver | None = None
    is_new_turn: bool = False
    has_more: bool = False
    messages: Sequence[Message] | None = None
    running: tuple[Approval, ...] | None = None
    has_ended_turn: bool = False
    said: str = ""
    decided: int | None = 0
    stop: Message | None = None
    opened: Sequence[Approval] | None = None
    parked_by: str = ""

    @property
    def kept_text(self) -> str:
        """The last text of the agent, for the program that started it; empty without one."""
        return mask_text(self.said)[:MOST_SAID] if self.thread.depth else ""
