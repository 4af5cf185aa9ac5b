"""One pass over a thread: its lease, and what was read under it, so that nothing is read twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from storage.records import Approval, Message, Thread

_MOST = 100
"""Threads that were woken here and that nobody has worked on yet."""


@dataclass(frozen=True, slots=True)
class JustDecided:
    """The approvals that this process woke threads for, as their writes returned them.

    Each is handed on to the pass that the wake has taken the lease for, once. What is decided does
    not change any more, but for what became of it.
    """

    _by_thread: LRUCache[str, Sequence[Approval]] = field(default_factory=lambda: LRUCache(_MOST))

    def keep(self, thread_id: str, approvals: Sequence[Approval]) -> None:
        """Hand them on to the next pass over their thread."""
        self._by_thread[thread_id] = approvals

    def take(self, thread_id: str) -> Sequence[Approval]:
        """Return what is handed on to this pass; nothing to the next one."""
        found: Sequence[Approval] = self._by_thread.pop(thread_id, ())
        return found


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
