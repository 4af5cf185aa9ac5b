"""Start agents at due times: one start for each time, however many processes run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.clock import milliseconds
from bot.errors import StartRefusedError
from bot.records.origin import RequestDoor, RequestOrigin
from bot.records.starts import ThreadStart
from bot.triggers.entries import ScheduleEntry
from bot.triggers.starting import SAME_KEY, ThreadStarts

LATEST = timedelta(minutes=5)
"""Longest delay of a scheduled start that is not missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedules:
    """The schedules of the file.

    Args:
        entries: Schedules by name.
        starts: Starts threads.
        team_id: The workspace.
    """

    entries: Mapping[str, ScheduleEntry]
    starts: ThreadStarts
    team_id: str
    _done_ms: dict[str, int] = field(default_factory=dict)
    """Time of the last look at each schedule whose starts are done."""

    async def look(self) -> int:
        """Start what is due; return the number of new starts.

        Raises:
            DirectoryError: A look-up failed; the next look tries again.
            StorageError: As above.
        """
        count = 0
        for name, entry in self.entries.items():
            now_ms = self.starts.clock()
            due_ms = self._due_ms(entry, self._done_ms.get(name), now_ms)
            if due_ms is not None:
                count += await self._start(name, entry, due_ms, now_ms)
            self._done_ms[name] = now_ms
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
        start = await self._made(name, entry, due_ms)
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
            if refused.code == "frozen":
                self.starts.tell(start, "frozen")
            return 0

    async def _made(self, name: str, entry: ScheduleEntry, due_ms: int) -> ThreadStart:
        now = self.starts.clock()
        return ThreadStart(
            id=f"sch_{name}_{_time(due_ms):%Y%m%dT%H%M}",
            team_id=self.team_id,
            channel_id=entry.channel,
            origin=RequestOrigin(
                door=RequestDoor.SCHEDULE,
                program=f"sch_{name}",
                program_name=name,
                owner=entry.owner,
            ),
            agent=entry.agent,
            agent_name=await self.starts.agent_of(entry.agent, entry.channel),
            title=name,
            text=entry.text,
            fingerprint=hashlib.sha256(entry.text.encode()).hexdigest(),
            requesters=(entry.owner,),
            created_ms=now,
            expires_ms=now + milliseconds(SAME_KEY),
        )


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
