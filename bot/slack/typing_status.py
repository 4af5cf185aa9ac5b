"""Show that an agent works: Slack's status line, or else a reaction.

Optional: other work neither waits for it nor fails with it. Unsupported methods are learned from
Slack's refusals. Short work shows no status, because it would only flash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from bot.clock import milliseconds
from bot.errors import DeliveryError
from bot.ports.process import Clock, Spawn
from bot.ports.threads import Words
from bot.records.thread import Thread
from bot.slack.agent_view import AgentSessions, TryCall, Unsupported

logger = logging.getLogger(__name__)

STATUS = "assistant.threads.setStatus"
WORKING = "eyes"
"""Reaction that replaces any status."""
BEFORE_FIRST = timedelta(milliseconds=400)
"""Minimum duration of work with a status."""
BETWEEN = timedelta(seconds=3)
"""Shortest time between two texts, because a tool may report its progress all the time."""
FRESH = timedelta(seconds=60)
"""Interval at which a status is sent again: Slack removes it after two minutes."""
CLEAR_PATIENCE = timedelta(milliseconds=500)
"""Longest time that a card waits for a status to be removed."""
_TRIES = 3
_MOST_WAIT = timedelta(seconds=10)


class Way(Enum):
    """Display of a working agent."""

    STATUS = auto()
    REACTION = auto()
    NONE = auto()


@dataclass(slots=True)
class _Line:
    """Status of one thread.

    Attributes:
        wanted: Returns the text to show; None for none.
        shown: The text that Slack shows, as far as known.
        since_ms: When it was sent.
        message_ts: Message with the reaction.
        title: Title of the thread; empty if unknown.
        is_stoppable: Whether Slack shows a stop button, as far as known.
        is_watched: Whether a task sends the wanted text.
        pause: Wait until the next check; ends if no text is wanted.
        sending: Held while sending, so that the last text sent is the last one wanted.
    """

    thread: Thread
    wanted: Words | None = None
    shown: str = ""
    since_ms: int = 0
    message_ts: str = ""
    title: str = ""
    is_stoppable: bool = False
    is_watched: bool = False
    pause: asyncio.Future[None] | None = None
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class SlackPresence:
    """Statuses of one workspace; see `bot.ports.threads.Presence`.

    Args:
        call: Makes rate-limited calls.
        spawn: Starts a sending task.
        sleep: Waits for some seconds.
        sessions: Show stop buttons, if the workspace has Slack's agent view.
    """

    call: TryCall
    clock: Clock
    spawn: Spawn
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    sessions: AgentSessions | None = None
    _lines: dict[str, _Line] = field(default_factory=dict)
    _unsupported: dict[Way, Unsupported] = field(init=False)

    def __post_init__(self) -> None:
        self._unsupported = {
            way: Unsupported(clock=self.clock) for way in (Way.STATUS, Way.REACTION)
        }

    def way(self, channel_id: str) -> Way:
        """Return how a working agent is shown in a channel."""
        ways = (
            way
            for way, unsupported in self._unsupported.items()
            if not unsupported.covers(channel_id)
        )
        return next(ways, Way.NONE)

    def show(self, thread: Thread, words: Words, *, message_ts: str = "", title: str = "") -> None:
        """See `Presence`."""
        if self.way(thread.channel_id) is Way.NONE:
            return
        line = self._lines.setdefault(thread.thread_id, _Line(thread))
        line.wanted, line.message_ts = words, message_ts or line.message_ts
        line.title = title or line.title
        self._watch(line)

    def refresh(self, thread_id: str) -> None:
        """See `Presence`."""
        line = self._lines.get(thread_id)
        if line is None or line.wanted is None:
            return
        is_old = self.clock() - line.since_ms > milliseconds(FRESH)
        if is_old and self.way(line.thread.channel_id) is Way.STATUS:
            line.shown = ""
            self._watch(line)

    async def clear(self, thread: Thread, *, message_ts: str = "", is_left: bool = False) -> None:
        """See `Presence`."""
        if self.way(thread.channel_id) is Way.NONE:
            return
        line = self._lines.setdefault(thread.thread_id, _Line(thread))
        line.wanted, line.message_ts = None, message_ts or line.message_ts
        if line.pause is not None:
            line.pause.cancel()
        if is_left:
            line.shown, line.is_stoppable = line.shown or "left", True
        # A text that is being sent now must be removed, too.
        if not line.shown and not line.sending.locked():
            self._forget(line)
            return
        is_down = asyncio.Event()
        self.spawn(self._take_down(line, is_down))
        try:
            async with asyncio.timeout(CLEAR_PATIENCE.total_seconds()):
                await is_down.wait()
        except TimeoutError:
            logger.info("status not taken down yet", extra={"action": "status_failed"})

    def _watch(self, line: _Line) -> None:
        if not line.is_watched:
            line.is_watched = True
            self.spawn(self._send_wanted(line))

    async def _send_wanted(self, line: _Line) -> None:
        try:
            await self._pause(line, BEFORE_FIRST)
            while line.wanted is not None and (text := line.wanted()) != line.shown:
                async with line.sending:
                    if line.wanted is not None:
                        await self._send(line, text)
                        await self._offer_stop(line)
                await self._pause(line, BETWEEN)
        finally:
            line.is_watched = False
            self._forget(line)

    async def _pause(self, line: _Line, time: timedelta) -> None:
        """Wait, at most until the work ends; wait again if other work has begun since."""
        while True:
            pause = line.pause = asyncio.ensure_future(self.sleep(time.total_seconds()))
            try:
                await asyncio.wait({pause})
            finally:
                pause.cancel()
            if not pause.cancelled() or line.wanted is None:
                return

    async def _take_down(self, line: _Line, is_down: asyncio.Event) -> None:
        try:
            async with line.sending:
                if line.shown and not line.wanted:
                    await self._send(line, "")
                    is_down.set()
                    await self._withdraw_stop(line)
        finally:
            is_down.set()
            self._forget(line)

    async def _offer_stop(self, line: _Line) -> None:
        if self.sessions is not None and not line.is_stoppable:
            line.is_stoppable = True
            await self.sessions.begin(line.thread, title=line.title)

    async def _withdraw_stop(self, line: _Line) -> None:
        if self.sessions is None or not line.is_stoppable:
            return
        for _ in range(_TRIES):
            wait_s = await self.sessions.end(line.thread)
            if not wait_s:
                break
            await self.sleep(min(wait_s, _MOST_WAIT.total_seconds()))
        line.is_stoppable = False

    def _forget(self, line: _Line) -> None:
        """Forget a thread without a displayed or wanted status."""
        name = line.thread.thread_id
        is_over = not (line.wanted or line.shown or line.is_watched)
        if is_over and self._lines.get(name) is line:
            del self._lines[name]

    async def _send(self, line: _Line, text: str) -> None:
        """Send a text; ignore temporary errors, except for the removal."""
        for _ in range(_TRIES):
            try:
                await self._ask(line, text)
            except DeliveryError as error:
                logger.info("agent status not shown: %s", error, extra={"action": "status_failed"})
                channel_id = line.thread.channel_id
                used = self._unsupported.get(self.way(channel_id))
                # The status is unsupported here: try again with the next way, the reaction.
                if used is not None and used.learn(error.reason, channel_id):
                    continue
                if not text and error.retry_after is not None:
                    await self.sleep(min(error.retry_after, _MOST_WAIT).total_seconds())
                    continue
            break
        line.shown, line.since_ms = text, self.clock()

    async def _ask(self, line: _Line, text: str) -> None:
        thread, channel_id = line.thread, line.thread.channel_id
        way = self.way(channel_id)
        if way is Way.STATUS:
            place = {"channel_id": channel_id, "thread_ts": thread.thread_ts, "status": text}
            await self.call(STATUS, channel_id, place)
        elif way is Way.REACTION and bool(text) != bool(line.shown):
            method = "reactions.add" if text else "reactions.remove"
            ts = line.message_ts or thread.thread_ts
            reaction = {"channel": channel_id, "timestamp": ts, "name": WORKING}
            await self.call(method, channel_id, reaction)
