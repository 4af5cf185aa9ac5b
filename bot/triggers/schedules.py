"""Start agents at due times: one start for each time, however many processes run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.clock import milliseconds
from bot.errors import DirectoryError, StartRefusedError
from bot.records.origin import RequestDoor
from bot.triggers.entries import ScheduleEntry
from bot.triggers.starting import SAME_KEY, NewStart, ThreadStarts

logger = logging.getLogger(__name__)

LATEST = timedelta(minutes=5)
"""Longest delay of a scheduled start that is not missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """The schedules of the file.

    Args:
        entries: Schedules by name.
        starts: Starts threads.
    """

    entries: Mapping[str, ScheduleEntry]
    starts: ThreadStarts
    _done_ms: dict[str, int] = field(default_factory=dict)
    """Time of the last look at each schedule whose starts are done."""

    async def start_due(self) -> int:
        """Start what is due; return the number of new starts.

        Raises:
            DirectoryError: A look-up failed; the next look tries again. The others have started.
            StorageError: As above.
        """
        count, failed = 0, None
        for name, entry in self.entries.items():
            now_ms = self.starts.clock()
            due_ms = self._due_ms(entry, self._done_ms.get(name), now_ms)
            try:
                if due_ms is not None:
                    count += await self._start(name, entry, due_ms, now_ms)
            except DirectoryError as error:
                failed = error
                continue
            self._done_ms[name] = now_ms
        if failed is not None:
            raise failed
        return count

    def _due_ms(self, entry: ScheduleEntry, done_ms: int | None, now_ms: int) -> int | None:
        """Return the newest due time since the last look; of a day after a restart."""
        least_ms = now_ms - milliseconds(SAME_KEY)
        after_ms = max(done_ms if done_ms is not None else least_ms, least_ms)
        times, newest_ms = entry.times, None
        while True:
            next_time = times.get_next_fire_time(None, _time(after_ms + 1))
            if next_time is None or (next_ms := round(next_time.timestamp() * 1_000)) > now_ms:
                return newest_ms
            newest_ms = after_ms = next_ms

    async def _start(self, name: str, entry: ScheduleEntry, due_ms: int, now_ms: int) -> int:
        new = NewStart(id=f"sch_{name}_{_time(due_ms):%Y%m%dT%H%M}", title=name, text=entry.text)
        start = await self.starts.made(entry, RequestDoor.SCHEDULE, name, new)
        if now_ms - due_ms > milliseconds(LATEST):
            before = {"origin.program": start.origin.program, "created_ms": {"$gt": 0}}
            others = await self.starts.storage.starts.find(before, sort=["-created_ms"], limit=1)
            newest = next(iter(others.documents), None)
            if newest is None or newest.created_ms >= due_ms:
                return 0  # the schedule is new, or it was done in time
            if entry.missed == "skip":
                self.starts.tell(start, "missed")
                return 0
        try:
            return int(await self.starts.start(start))
        except StartRefusedError as refused:
            logger.warning(
                "the schedule %s starts nothing: %s",
                name,
                refused.code,
                extra={"action": "start_failed"},
            )
            if refused.code == "frozen":
                self.starts.tell(start, "frozen")
            return 0


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
