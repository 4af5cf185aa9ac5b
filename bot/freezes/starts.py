"""Numbers the starts of calls, in one conditional write on the switch (11.7).

A freeze changes the switch, too. So each start is before or after each freeze, and once a freeze is
confirmed, no call in its scope gets a number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agents.core.address import Address
from bot.audit.acts import Act
from bot.audit.entries import entry_of, note
from bot.freezes.rules import ALL, CallScope, covering
from bot.freezes.service import Freezes
from bot.ports.process import Clock
from bot.records.approval import Approval
from bot.records.switch import Freeze, SwitchRecord
from bot.words import say
from storage.audit import AuditEntry
from storage.errors import RecordNotFoundError, StorageError, StoreUnavailableError

FILE = "file"
"""Id of the freeze by the file, and its actor in the audit."""
PAUSE_S = 0.005
"""Shortest time between two writes of a process, in seconds.

A freeze or a start of another process needs a moment in which nobody writes: at least as long as a
write takes. Starts of this process that come within the pause share the next write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeFile:
    """The freeze file: stops one process while it exists, even if the database is in doubt.

    Attributes:
        path: The file; None without one.
        clock: The time now.
    """

    path: Path | None
    clock: Clock

    def freeze(self) -> Freeze | None:
        """Return the freeze of all calls and turns while the file exists, or None.

        A place that cannot be examined counts as a file that exists. A link counts, wherever it
        leads.
        """
        if self.path is None:
            return None
        try:
            self.path.lstat()
            why = say("line.freeze_file")
        except FileNotFoundError:
            # The file may be on a disk that is not mounted: then its directory is missing, too.
            if self.path.parent.is_dir():
                return None
            why = say("line.freeze_file_unreadable")
        except (OSError, ValueError):
            why = say("line.freeze_file_unreadable")
        return Freeze(id=FILE, scope=ALL, by=FILE, why=why, since_ms=self.clock(), turns=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A start that a freeze refused.

    Attributes:
        freeze: The oldest freeze that covers the call, or the freeze by the file.
        revision: Revision of the switch by which the call was judged; 0 for the file.
    """

    freeze: Freeze
    revision: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """Calls that wait for their numbers."""

    call: CallScope
    count: int
    answer: asyncio.Future[int | Frozen]


class StartSwitch:
    """Gives out the numbers of starts. Each process has one.

    Starts that wait at the same moment are numbered by one write: while a write is in flight, all
    others wait for the next one. A process keeps the switch as it last read or wrote it, so an
    undisturbed start costs one command.

    Args:
        freezes: Reads and writes the switch.
        file: Looks for the freeze file.
        owner: Name of this process.
        sleep: Waits for some seconds.
    """

    def __init__(
        self,
        freezes: Freezes,
        file: FreezeFile,
        *,
        owner: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._freezes, self._file = freezes, file
        self._owner, self._sleep = owner, sleep
        self._waiting: list[_Start] = []
        self._numbering: asyncio.Task[None] | None = None
        self._file_noted = False
        self._has_numbered = False

    async def take_number(self, call: CallScope, *, count: int = 1) -> int | Frozen:
        """Take start numbers for a call. Only then may the journal say that it has started.

        A number that is not used is lost. After a crash, or after an error, the call takes another
        number, and is judged by the freezes of that moment.

        Args:
            call: What a freeze can name about the call.
            count: How many calls of this kind start.

        Returns:
            The first of `count` consecutive numbers; or the freeze that covers the call. A freeze
            may be lifted before the caller has recorded that the call waits, so the caller must
            look again later.

        Raises:
            StorageError: The switch cannot be read or written. Nothing starts.
        """
        start = _Start(call, count, asyncio.get_running_loop().create_future())
        self._waiting.append(start)
        if self._numbering is None:
            self._numbering = asyncio.create_task(self._number_all())
        return await start.answer

    async def covering(self, call: CallScope, *, turns: bool = False) -> Frozen | None:
        """Read whether a freeze covers a call, without a number.

        Args:
            call: See `bot.freezes.rules.covering`.
            turns: Whether to look only at freezes that stop turns, too.

        Raises:
            StorageError: The switch cannot be read. Nothing starts.
        """
        if (by_file := self._file.freeze()) is not None:
            await self._note_file(by_file)
            return Frozen(freeze=by_file)
        switch = await self._read()
        freeze = covering(switch, call, turns=turns)
        return None if freeze is None else Frozen(freeze=freeze, revision=switch.revision)

    async def in_force(self) -> tuple[Freeze, ...]:
        """Return the freezes in force, with the one by the file of this process.

        Raises:
            StorageError: The switch cannot be read.
        """
        by_file = self._file.freeze()
        freezes = (await self._read()).freezes
        return freezes if by_file is None else (by_file, *freezes)

    async def _number_all(self) -> None:
        """Number all waiting starts, group by group."""
        starts: list[_Start] = []
        time = asyncio.get_running_loop().time
        try:
            while self._waiting:
                starts, self._waiting, begun = self._waiting, [], time()
                try:
                    await self._number(starts)
                except Exception as error:  # noqa: BLE001 - each caller gets it, and starts nothing
                    for start in _unanswered(starts):
                        start.answer.set_exception(error)
                    if isinstance(error, StoreUnavailableError):
                        begun = time()  # how long a time limit is says nothing of a write
                await self._sleep(max(PAUSE_S, time() - begun))
        finally:
            self._numbering = None
            for start in _unanswered([*starts, *self._waiting]):
                start.answer.cancel()
            self._waiting = []

    async def _number(self, starts: Sequence[_Start]) -> None:
        """Number a group of starts by one write."""
        if (by_file := self._file.freeze()) is not None:
            for start in _unanswered(starts):
                start.answer.set_result(Frozen(freeze=by_file))
            await self._note_file(by_file)
            return
        judged = SwitchRecord()

        def numbered(switch: SwitchRecord) -> SwitchRecord | None:
            nonlocal judged
            judged = switch  # the last one is the one that was written, or the stored one
            counts = [start.count for start in starts if covering(switch, start.call) is None]
            return switch.changed(starts=switch.starts + sum(counts)) if counts else None

        await self._freezes.change(numbered, may_create=not self._has_numbered)
        self._has_numbered = True
        last = judged.starts
        for start in starts:
            freeze = covering(judged, start.call)
            answer: int | Frozen = last + 1
            if freeze is not None:
                answer = Frozen(freeze=freeze, revision=judged.revision)
            else:
                last += start.count
            if not start.answer.done():
                start.answer.set_result(answer)
        await self._freezes.record_acts(judged)

    async def _read(self) -> SwitchRecord:
        try:
            return await self._freezes.read()
        except RecordNotFoundError:
            if self._has_numbered:
                raise  # somebody has deleted the switch, and with it the freezes
            return SwitchRecord()

    async def _note_file(self, freeze: Freeze) -> None:
        """Record once that this process has noticed the file. The database may be in doubt."""
        if self._file_noted:
            return
        with suppress(StorageError):  # the next start repeats it
            await note(
                self._freezes.audit,
                Act.FROZEN,
                key=f"freeze:{FILE}:{self._owner}",
                at_ms=freeze.since_ms,
                about="",
                by=FILE,
                team_id=self._freezes.team,
                freeze=freeze.id,
                scope=str(freeze.scope),
                turns=freeze.turns,
                why=freeze.why,
                process=self._owner,
            )
            self._file_noted = True


def scope_of_approval(approval: Approval, tags: Collection[str]) -> CallScope:
    """Return what a freeze can name about the call of an approval.

    Args:
        approval: The approval.
        tags: Tags of its tool.
    """
    return CallScope(
        agents=frozenset(Address.parse(approval.address).agents),
        tool=approval.tool,
        tags=frozenset(tags),
        channel=approval.channel_id,
    )


def parked_entry(frozen: Frozen, *, key: str, at_ms: int, about: Approval | str) -> AuditEntry:
    """Build the audit entry of a call that a freeze keeps from starting.

    Args:
        frozen: The answer to the start.
        key: Id of the call. The same call is recorded once for each freeze.
        at_ms: The time now.
        about: The approval, or the thread's id.
    """
    return entry_of(
        Act.PARKED,
        key=f"{key}:{frozen.freeze.id}",
        at_ms=at_ms,
        about=about,
        freeze=frozen.freeze.id,
        scope=str(frozen.freeze.scope),
        revision=frozen.revision,
    )


def _unanswered(starts: Sequence[_Start]) -> list[_Start]:
    return [start for start in starts if not start.answer.done()]
