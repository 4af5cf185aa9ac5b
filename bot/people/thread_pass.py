"""One pass over a thread: its lease, and what was read under it, so that nothing is read twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.records import Approval, Message, Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """The state that a pass left when it gave the lease back; for the next one in this process.

    Attributes:
        fence: Of that lease. Nobody has had the thread since if the next lease follows it.
        made_ms: When the thread was made. One that begins anew after it was forgotten has the same
            id, and its leases and turns count from 1 again.
        running: Approvals of the open turn that were closed, and whose calls have not ended; None
            when that is not known.
    """

    fence: int
    made_ms: int
    running: tuple[Approval, ...] | None = ()


@dataclass(slots=True, kw_only=True)
class ThreadPass:
    """A thread from the claim of its lease to the release.

    Attributes:
        thread: As claimed, or as written since.
        left: What the pass before left, when nobody has had the lease since, or there was none;
            None when that is not known.
        is_new_turn: Whether the open turn began in this pass: nobody can have stored its run.
        has_more: Whether there may be more new messages than were looked at.
        messages: What the open turn began with; None when that was not read.
        running: See `LeftOver`; as this pass leaves it.
        has_ended_turn: Whether the turn is over, and the release of the lease is to say so.
        said: The agent's newest text of this pass: it stands right above what is shown next.
        decided: How many decisions the run was told of; None where that is not known.
        stop: The message by which somebody wants the open turn to end.
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

    def __post_init__(self) -> None:
        if self.left is not None:
            self.running = self.left.running
