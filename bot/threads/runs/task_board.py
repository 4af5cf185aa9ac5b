"""Show slow tools of a segment of a run as tasks.

Optional: other work neither waits for it nor fails with it. Calls that need approval have a card
instead. The message is stored before it is posted, so it can be closed after a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from agents import AgentEvent, MessageEvent, ToolEvent
from agents.core.observers import ToolOutcome
from bot.errors import DeliveryError
from bot.ports.process import Clock, Spawn
from bot.ports.threads import TaskBoard, TaskStatus, ToolTask
from bot.records.messages import Post, PostStore
from bot.records.thread import Thread
from bot.redaction.mask import mask_text
from storage.errors import StorageError

logger = logging.getLogger(__name__)

BEFORE_FIRST = timedelta(seconds=2)
"""Minimum duration of displayed calls."""
BETWEEN = timedelta(seconds=1)
MARK = "/tasks@"
"""Part of the id of a task message's post."""
_FINE = frozenset({ToolOutcome.RAN, ToolOutcome.ANSWERED})


@dataclass(slots=True, kw_only=True)
class TaskUpdates:
    """The tasks of one segment."""

    thread: Thread
    board: TaskBoard
    posts: PostStore
    clock: Clock
    spawn: Spawn
    before_first: timedelta = BEFORE_FIRST
    _tasks: dict[str, ToolTask] = field(default_factory=dict)
    _shown: dict[str, ToolTask] = field(default_factory=dict)
    _post_id: str = ""
    _ts: str = ""
    _is_watched: bool = False
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def follow(self, event: AgentEvent) -> None:
        """Follow which tools run."""
        match event:
            case MessageEvent(tool_calls=calls) if calls:
                for planned in calls:
                    title = _title(planned.name)
                    self._tasks[planned.id] = ToolTask(task_id=planned.id, title=title)
            case ToolEvent(call=call, outcome=outcome) if call.id in self._tasks:
                status = TaskStatus.COMPLETE if outcome in _FINE else TaskStatus.ERROR
                self._tasks[call.id] = replace(self._tasks[call.id], status=status)
            case _:
                return
        if self.board.is_there and not self._is_watched and (self._ts or self._running):
            self._is_watched = True
            self.spawn(self._send())

    async def close(self) -> None:
        """Close the message; remove it if calls are still running, which then need people."""
        self._over.set()
        async with self._lock:
            if self._ts:
                await self._quietly(self._close())

    @property
    def _running(self) -> bool:
        return any(task.status is TaskStatus.RUNNING for task in self._tasks.values())

    async def _send(self) -> None:
        try:
            await self._pause(BETWEEN if self._ts else self.before_first)
            async with self._lock:
                if not self._over.is_set() and (self._ts or self._running):
                    await self._quietly(self._show())
        finally:
            self._is_watched = False

    async def _pause(self, longest: timedelta) -> None:
        """Wait, at most until the segment ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest.total_seconds()):
                await self._over.wait()

    async def _show(self) -> None:
        if not self._ts:
            await self._begin()
            return
        changed = [task for name, task in self._tasks.items() if self._shown.get(name) != task]
        if changed:
            await self.board.update(self.thread, self._ts, changed)
            self._shown |= {task.task_id: task for task in changed}

    async def _begin(self) -> None:
        if self._post_id:
            return  # refused, or possibly posted
        now = self.clock()
        self._post_id = f"{self.thread.checkpoint_id}{MARK}{now}"
        post = Post(post_id=self._post_id, thread_id=self.thread.thread_id, text="", created_ms=now)
        if await self.posts.add(post):
            tasks = dict(self._tasks)
            ts = await self.board.begin(self.thread, list(tasks.values()))
            await self.posts.begin(self._post_id, ts=ts)
            self._ts, self._shown = ts, tasks

    async def _close(self) -> None:
        is_done = not self._running
        if is_done:
            await self._show()
        await self.board.end(self.thread, self._ts, keep=is_done)
        if is_done:
            await self.posts.finish(self._post_id, ts=self._ts)
        else:
            await self.posts.fail(self._post_id, reason="people are asked")

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (DeliveryError, StorageError) as error:
            logger.info("task list not updated: %s", error, extra={"action": "agent_view_failed"})


class NoBoard:
    """Shows nothing; see `bot.ports.threads.TaskBoard`."""

    is_there = False

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:  # noqa: ARG002
        """Do nothing."""
        raise DeliveryError("chat.startStream", "unknown_method", took_no_effect=True)

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        """Do nothing."""

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        """Do nothing."""


NO_BOARD: TaskBoard = NoBoard()


async def end_tasks(posts: PostStore, board: TaskBoard, thread: Thread, post: Post) -> None:
    """Close a task message that a crashed process left; ignore other posts."""
    if MARK not in post.post_id:
        return
    if post.ts:
        try:
            await board.end(thread, post.ts, keep=False)
        except DeliveryError as error:
            logger.info("task list not updated: %s", error, extra={"action": "agent_view_failed"})
    await posts.fail(post.post_id, reason="its process died")


def _title(name: str) -> str:
    words = " ".join(mask_text(name.replace("_", " ")).split())
    return words[:1].upper() + words[1:]
