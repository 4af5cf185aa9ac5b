"""Tools that take their time, as tasks: when they are shown, how they end, and after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from agents import MessageEvent, ToolEvent
from agents.core.calls import ToolCall
from agents.core.observers import ToolOutcome
from bot.errors import DeliveryError
from bot.ports.threads import ToolTask
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.threads.runs.task_board import MARK, TaskUpdates, end_tasks
from tests.support.fakes import FakeClock
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ROSA, THREAD_ID

THREAD = Thread(thread_id=THREAD_ID, requester_id=ROSA, created_ms=1)


@dataclass
class FakeBoard:
    """Notes what people would see."""

    shown: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    is_there: bool = True
    fault: str = ""

    async def begin(self, thread: Thread, tasks: Sequence[ToolTask]) -> str:
        await self._do("begin", tasks)
        return "5.5"

    async def update(self, thread: Thread, ts: str, tasks: Sequence[ToolTask]) -> None:
        await self._do("update", tasks)

    async def end(self, thread: Thread, ts: str, *, keep: bool) -> None:
        self.done.append("kept" if keep else "removed")

    async def _do(self, what: str, tasks: Sequence[ToolTask]) -> None:
        self.done.append(what)
        if self.fault:
            raise DeliveryError("chat.startStream", self.fault)
        self.shown |= {task.title: str(task.status) for task in tasks}


@dataclass
class Scene:
    """The tasks of a segment."""

    storage: SqliteStores
    board: FakeBoard = field(default_factory=FakeBoard)
    before_first: timedelta = timedelta(0)
    spawned: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tasks = TaskUpdates(
            thread=THREAD,
            board=self.board,
            posts=self.storage.posts,
            clock=FakeClock(),
            spawn=lambda work: self.spawned.append(asyncio.ensure_future(work)),
            before_first=self.before_first,
        )

    async def rest(self) -> None:
        await asyncio.gather(*self.spawned)

    async def post(self) -> Post | None:
        return await self.storage.posts.get(f"{THREAD_ID}#0{MARK}{FakeClock()()}")


def calls(*names: str) -> MessageEvent:
    tool_calls = tuple(ToolCall(id=name, name=name, arguments={}) for name in names)
    return MessageEvent(agent_name="A", run_path=("A",), key="m", text="", tool_calls=tool_calls)


def ended(name: str, outcome: ToolOutcome = ToolOutcome.RAN) -> ToolEvent:
    call = ToolCall(id=name, name=name, arguments={})
    whose = {"agent_name": "A", "run_path": ("A",), "key": f"{name}/r"}
    return ToolEvent(**whose, call=call, result="x", outcome=outcome)  # type: ignore[arg-type]


async def test_calls_that_take_their_time_are_tasks(storage: SqliteStores) -> None:
    scene = Scene(storage)
    scene.tasks.follow(calls("search_docs", "get_status"))
    await scene.rest()
    assert scene.board.shown == {"Search docs": "in_progress", "Get status": "in_progress"}
    scene.tasks.follow(ended("search_docs"))
    scene.tasks.follow(ended("get_status", ToolOutcome.FAILED))
    await scene.tasks.close()
    assert scene.board.shown == {"Search docs": "complete", "Get status": "error"}
    assert scene.board.done[-1] == "kept"
    post = await scene.post()
    assert post is not None
    assert (post.posted, post.ts) == (True, "5.5")
    await scene.rest()


async def test_short_calls_are_not_shown_and_nobody_waits(storage: SqliteStores) -> None:
    scene = Scene(storage, before_first=timedelta(hours=1))
    scene.tasks.follow(calls("look"))
    scene.tasks.follow(ended("look"))
    await scene.tasks.close()
    await scene.rest()
    assert scene.board.done == []
    assert await scene.post() is None


async def test_what_people_are_asked_about_has_its_card_and_no_task(storage: SqliteStores) -> None:
    scene = Scene(storage)
    scene.tasks.follow(calls("look", "pay"))
    await scene.rest()
    scene.tasks.follow(ended("look"))
    await scene.tasks.close()  # at the interrupt of the other
    assert scene.board.done[-1] == "removed"
    post = await scene.post()
    assert post is not None
    assert post.failure
    await scene.rest()


@pytest.mark.parametrize("fault", ["unknown_method", "ratelimited"])
async def test_what_slack_does_not_take_is_not_tried_again(
    storage: SqliteStores, fault: str
) -> None:
    scene = Scene(storage, board=FakeBoard(fault=fault))
    scene.tasks.follow(calls("look"))
    await scene.rest()
    scene.tasks.follow(ended("look"))
    await scene.tasks.close()
    await scene.rest()
    assert scene.board.done == ["begin"]


@pytest.mark.parametrize(
    ("key", "ts", "done"),
    [(f"{MARK}5", "5.5", ["removed"]), (f"{MARK}5", "", []), (":m1", "5.5", [])],
)
async def test_what_a_dead_process_left_is_removed(
    storage: SqliteStores, key: str, ts: str, done: list[str]
) -> None:
    board = FakeBoard()
    post = Post(post_id=f"{THREAD_ID}#1{key}", thread_id=THREAD_ID, text="", created_ms=1)
    await storage.posts.add(post)
    if ts:
        await storage.posts.begin(post.post_id, ts=ts)
    (left,) = await storage.posts.unfinished(THREAD_ID)
    await end_tasks(storage.posts, board, THREAD, left)
    assert board.done == done
    is_ours = MARK in key
    assert len(await storage.posts.unfinished(THREAD_ID)) == (0 if is_ours else 1)
