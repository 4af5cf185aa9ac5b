"""Turns that a freeze stops: none begins, and running ones wait for its end (11.18, 11.19)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

from bot.clock import milliseconds
from bot.errors import DirectoryError
from bot.freezes.rules import CallScope
from bot.freezes.starts import Frozen, StartSwitch
from bot.ports.people import Directory, is_person
from bot.ports.process import Clock
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.threads.outbox import Outbox
from bot.threads.thread_pass import ThreadPass
from bot.words import say
from storage.errors import RecordFormatError, RecordNotFoundError, StoreUnavailableError

HALTED = "halted"
"""Part of the id of the post that tells a thread of a freeze."""
FRESH = timedelta(seconds=2)
"""Longest time for which a process takes turns as not frozen without another look."""


@dataclass(slots=True)
class _LastLook:
    """The last look that found no freeze of turns."""

    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHalts:
    """Looks for freezes that stop turns, too.

    Attributes:
        switch: Knows the freezes in force, and the freeze file of this process.
        outbox: Tells threads.
        directory: Knows the names of people.
        agent_of: Returns the name of a thread's agent.
        clock: The time now.
    """

    switch: StartSwitch
    outbox: Outbox
    directory: Directory
    agent_of: Callable[[Thread], Awaitable[str]]
    clock: Clock
    _clear: _LastLook = field(default_factory=_LastLook)

    async def hold(self, work: ThreadPass) -> bool:
        """Let the turn of a thread wait if it is frozen, and tell the thread once.

        Returns:
            Whether it waits; see `ParkedThreads` for its end.

        Raises:
            StorageError: The switch cannot be read. No turn goes on.
            DeliveryError: Slack refused the message for now; retry.
        """
        frozen = await self._covering(work.thread)
        if frozen is None:
            return False
        work.parked_by = frozen.freeze.id
        thread = work.thread
        post = Post(
            # Not an id of the agent's texts, after which a silent turn would post no default text.
            post_id=f"{thread.checkpoint_id}/{HALTED}/{frozen.freeze.id}",
            thread_id=thread.thread_id,
            text=say("message.halted", who=await self._name(frozen.freeze.by)),
            created_ms=self.clock(),
        )
        await self.outbox.say(thread, post)
        return True

    async def covers(self, thread: Thread) -> bool:
        """Whether a freeze stops the turns of a thread.

        Raises:
            StorageError: The switch cannot be read.
        """
        return await self._covering(thread) is not None

    async def _covering(self, thread: Thread) -> Frozen | None:
        now = self.clock()
        last = self._clear.at_ms
        if last is not None and 0 <= now - last < milliseconds(FRESH):
            return None
        try:
            if not any(freeze.turns for freeze in await self.switch.in_force()):
                self._clear.at_ms = now
                return None
            self._clear.at_ms = None
            agents = frozenset({await self.agent_of(thread)})
            scope = CallScope(agents=agents, tool="", channel=thread.channel_id)
            return await self.switch.covering(scope, turns=True)
        except (RecordFormatError, RecordNotFoundError) as error:
            # No fault of the thread, which must not be set aside for it: it waits.
            raise StoreUnavailableError(str(error)) from error

    async def _name(self, actor: str) -> str:
        if is_person(actor):
            with suppress(DirectoryError):
                return (await self.directory.person(actor)).name
        return actor
