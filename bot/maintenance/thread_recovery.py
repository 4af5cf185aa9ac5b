"""A thread after the database went back to a copy: nothing in it goes on by itself.

What waits for people goes on waiting; they are asked again, also where the copy has a decision that
was not passed on. What was in the middle of something is ended, and the thread says so. Messages
that no turn had read may have been worked on since, and are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agents import InterruptContext
from agents.core.checkpoint import CheckpointStatus
from agents.core.errors import CheckpointConflictError
from bot.maintenance.restoring import ask_anew, cut_text, unread_text
from bot.ports.process import Clock, Spawn
from bot.questions.base import asks_people
from bot.questions.record import approval_id_of
from storage.base import Storage
from storage.errors import RecordNotFoundError
from storage.records import Post, Status, Thread


class EndsTurns(Protocol):
    """The turns of a thread, as its comeback needs them."""

    async def pending(self, thread: Thread) -> Sequence[InterruptContext]:
        """Return all that waits in the open turn."""
        ...

    async def attend(self, approval_id: str) -> None:
        """Do all that is due for an approval."""
        ...

    async def doubt(self, thread: Thread, address: str) -> None:
        """Note that nobody knows whether what stands there has run."""
        ...

    async def give_up(self, thread: Thread, text: str) -> bool:
        """End the open turn, which cannot go on, and tell people so."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadRecovery:
    """Looks at threads that were not at rest in the copy.

    Args:
        storage: Where records are kept.
        turns: Ends turns, and knows what waits.
        clock: The time now.
        spawn: Starts the drawing of cards.
    """

    storage: Storage
    turns: EndsTurns
    clock: Clock
    spawn: Spawn

    async def settle(self, thread: Thread) -> Thread:
        """Bring a thread to where it can go on; nothing when it was not marked. May be repeated.

        Args:
            thread: As claimed.

        Raises:
            CheckpointConflictError: The lease was lost.
        """
        if not thread.restored_era:
            return thread
        status = await self._status(thread)
        waits = status is CheckpointStatus.PENDING
        is_cut = await self._is_begun(thread) and status in {None, CheckpointStatus.RUNNING}
        if waits:
            await self._ask_anew(thread)
        elif is_cut:
            await self._cut(thread)
            turn = thread.turn if thread.turn_open else thread.turn + 1
            thread = replace(thread, turn=turn, turn_open=False)
        await self._leave_alone(thread, is_told=is_cut)
        turn = thread.turn if waits else 0
        if not await self.storage.restoring.settle(thread.thread_id, fence=thread.fence, turn=turn):
            raise CheckpointConflictError(thread.checkpoint_id)
        return replace(thread, restored_era=0, restored_turn=turn)

    async def _is_begun(self, thread: Thread) -> bool:
        """Whether a turn was going on; its messages are taken before it is open."""
        if thread.turn_open:
            return True
        return bool(await self.storage.inbox.of_turn(thread.thread_id, thread.turn + 1))

    async def _status(self, thread: Thread) -> CheckpointStatus | None:
        if not thread.turn_open:
            return None
        stored = await self.storage.checkpoints.load(thread.checkpoint_id)
        return None if stored is None else stored.status

    async def _ask_anew(self, thread: Thread) -> None:
        """Ask again what the copy has as decided: the call may have run since."""
        for context in await self.turns.pending(thread):
            if not asks_people(context):
                continue
            try:
                approval = await self.storage.approvals.get(approval_id_of(context.id))
            except RecordNotFoundError:
                continue  # it is made by the next step of the turn, which knows of the copy
            if approval.decision is None or approval.restored_era != thread.restored_era:
                continue  # people may be as quick as we are
            to_ms, now_ms = thread.restored_to_ms, self.clock()
            if await ask_anew(self.storage, approval, to_ms=to_ms, now_ms=now_ms):
                self.spawn(self.turns.attend(approval.approval_id))

    async def _cut(self, thread: Thread) -> None:
        """End the turn; whether what people had let run has run is not known."""
        asked = await self.storage.approvals.of_turn(thread.checkpoint_id)
        for approval in asked if thread.turn_open else ():
            if approval.open and approval.status is not Status.PENDING:
                await self.turns.doubt(thread, approval.address)
        await self.turns.give_up(thread, cut_text(thread.restored_to_ms))

    async def _leave_alone(self, thread: Thread, *, is_told: bool) -> None:
        """Say that messages stood unread in the copy, which no turn reads; see `mark`."""
        if not is_told and await self.storage.inbox.of_turn(thread.thread_id, -thread.restored_era):
            await self.storage.posts.add(self._post(thread))

    def _post(self, thread: Thread) -> Post:
        return Post(
            post_id=f"{thread.checkpoint_id}:restored:{thread.restored_era}",
            thread_id=thread.thread_id,
            text=unread_text(thread.restored_to_ms),
            created_ms=self.clock(),
        )
