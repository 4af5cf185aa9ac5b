"""Recover threads after a restore: nothing in them continues by itself.

Pending approvals are asked again, and so are decisions that had not reached their run. Turns that
were running, or that a freeze held, are ended with a message in the thread. Unread messages are
ignored: a later turn may have read them after the backup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agents import InterruptContext
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError
from bot.maintenance.restoring import ask_anew, cut_text, unread_text
from bot.ports.process import Clock, Spawn
from bot.questions.base import asks_people
from bot.questions.record import approval_id_of
from bot.records.approval import Status
from bot.records.approval_queries import of_turn
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.stores import Stores
from storage.errors import RecordNotFoundError


class EndsTurns(Protocol):
    """Operations on the turns of a thread that recovery needs."""

    async def pending(self, thread: Thread) -> Sequence[InterruptContext]:
        """Return all pending interrupts of the open turn."""
        ...

    async def attend(self, approval_id: str) -> None:
        """Process an approval that is due."""
        ...

    async def doubt(self, thread: Thread, address: str) -> None:
        """Record that the outcome of the call at an address is unknown."""
        ...

    async def give_up(self, thread: Thread, text: str) -> bool:
        """End the open turn, which cannot continue, and post why."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadRecovery:
    """Recovers threads that were active in the backup."""

    storage: Stores
    turns: EndsTurns
    clock: Clock
    spawn: Spawn

    async def settle(self, thread: Thread) -> Thread:
        """Recover a marked thread. Idempotent.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        if not thread.restored.epoch:
            return thread
        status = await self._status(thread)
        waits = status is CheckpointStatus.PENDING
        asked = await self.turns.pending(thread) if waits else ()
        if not all(map(asks_people, asked)):
            # A call that was parked or halted in the copy may have run since: like a running turn.
            waits, status = False, CheckpointStatus.RUNNING
        is_cut = await self._is_begun(thread) and status in {None, CheckpointStatus.RUNNING}
        if waits:
            await self._ask_anew(thread, asked)
        elif is_cut:
            await self._cut(thread)
            turn = thread.turn if thread.turn_open else thread.turn + 1
            thread = thread.changed(turn=turn, turn_open=False)
        await self._leave_alone(thread, is_told=is_cut)
        turn = thread.turn if waits else 0
        if not await self.storage.threads.settle(thread.thread_id, fence=thread.fence, turn=turn):
            raise CheckpointConflictError(thread.checkpoint_id)
        return thread.changed(restored=thread.restored.settled(turn))

    async def _is_begun(self, thread: Thread) -> bool:
        """Whether a turn was running. Its messages are taken before the turn is stored."""
        if thread.turn_open:
            return True
        return bool(await self.storage.inbox.of_turn(thread.thread_id, thread.turn + 1))

    async def _status(self, thread: Thread) -> CheckpointStatus | None:
        if not thread.turn_open:
            return None
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        return None if stored is None else stored.status

    async def _ask_anew(self, thread: Thread, asked: Sequence[InterruptContext]) -> None:
        """Ask decided approvals again: their calls may have run since the backup."""
        for context in asked:
            try:
                approval = await self.storage.approvals.get(approval_id_of(context.id))
            except RecordNotFoundError:
                continue  # the turn's next step creates the approval, and knows of the restore
            if approval.decision is None or approval.restored.epoch != thread.restored.epoch:
                continue  # an approver has decided since
            to_ms, now_ms = thread.restored.to_ms, self.clock()
            if await ask_anew(self.storage, approval, to_ms=to_ms, now_ms=now_ms):
                self.spawn(self.turns.attend(approval.approval_id))

    async def _cut(self, thread: Thread) -> None:
        """End the turn. The outcomes of its approved calls are unknown."""
        asked = await of_turn(self.storage.approvals, thread.checkpoint_id)
        for approval in asked if thread.turn_open else ():
            may_start = approval.open or approval.execution.parked is not None
            if may_start and approval.status is not Status.PENDING:
                await self.turns.doubt(thread, approval.address)
        await self.turns.give_up(thread, cut_text(thread.restored.to_ms))

    async def _leave_alone(self, thread: Thread, *, is_told: bool) -> None:
        """Post that unread messages of the backup are ignored; see `mark`."""
        unread = await self.storage.inbox.of_turn(thread.thread_id, thread.unread_turn)
        if unread and not is_told:
            await self.storage.posts.add(self._post(thread))

    def _post(self, thread: Thread) -> Post:
        return Post(
            post_id=f"{thread.checkpoint_id}:restored:{thread.restored.epoch}",
            thread_id=thread.thread_id,
            text=unread_text(thread.restored.to_ms),
            created_ms=self.clock(),
        )
