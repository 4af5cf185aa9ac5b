"""Threads with calls that wait for the end of a freeze."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.freezes.starts import StartSwitch
from bot.records.thread import ThreadStore

MOST = 25
"""Maximum number of threads that go on at one look, so that their calls start one after the other:
five a second, at the usual interval between looks."""


@dataclass(frozen=True, slots=True)
class ParkedThreads:
    """Finds parked threads whose freeze was lifted.

    Args:
        threads: All threads.
        switch: Knows the freezes in force, and the freeze file of this process.
    """

    threads: ThreadStore
    switch: StartSwitch

    async def unfrozen(self) -> Sequence[str]:
        """Return the ids of parked threads that may go on now, oldest first.

        A call is judged again when its thread goes on. So a thread that another freeze covers, too,
        is parked again.

        Raises:
            StorageError: The threads or the freezes cannot be read.
        """
        parked = await self.threads.parked()
        if not parked:
            return []
        in_force = {freeze.id for freeze in await self.switch.in_force()}
        return [name for name, ids in parked if may_go_on(ids, in_force)][:MOST]


def may_go_on(parked_by: str, in_force: Collection[str]) -> bool:
    """Whether a freeze that a thread waits for is not in force any more.

    Args:
        parked_by: Ids of the freezes, with spaces between; see `Thread.parked_by`.
        in_force: Ids of the freezes in force.
    """
    return any(freeze_id not in in_force for freeze_id in parked_by.split())
