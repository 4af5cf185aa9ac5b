"""I14: one poisoned record among a hundred good ones keeps none of them from its end.

Of each kind of record: one that cannot be read, one of a newer release, one that is absurdly large;
through the scheduler and the use cases, on both databases.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.core.checkpoint import CheckpointStatus
from agents.models import say
from bot.records.approval import Status
from bot.stores import Stores
from bot.words import say as words
from storage.mongo import Driver
from tests.contract.builders import (
    a_message,
    a_post,
    a_thread,
    a_whisper,
    an_approval,
)
from tests.contract.spoiling import raw, spoil
from tests.support.mongo import MongoServer
from tests.support.sizes import size
from tests.support.stores import MongoStores, SqliteStores
from tests.unit.bot.office import CHANNEL, ROSA, Office

GOOD = size(10, 100)
HUNDRED = 100
"""More than one tick takes."""
LARGE = "x" * 2_000_000
NEWER: dict[str, Any] = {"v": 2}
HOURS_MS = 3_600_000


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("motor", marks=pytest.mark.mongo),
        pytest.param("pymongo", marks=pytest.mark.mongo),
    ]
)
async def storage(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    made: Stores
    if request.param == "sqlite":
        made = SqliteStores(None)
    else:
        server: MongoServer = request.getfixturevalue("mongo_server")
        driver: Driver = request.param
        made = MongoStores(server.uri, driver=driver, database=server.new_database())
    await made.open()
    yield made
    await made.close()


@dataclass
class World:
    """Good records and poisoned ones, in threads of their own."""

    office: Office
    storage: Stores
    poisoned: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def thread_id(self, name: str) -> str:
        return f"T1:{CHANNEL}:{name}"

    async def add_thread(self, name: str, **changes: Any) -> str:
        thread_id, now = self.thread_id(name), self.office.clock()
        thread = a_thread(
            thread_id=thread_id,
            requester_id=ROSA,
            created_ms=now,
            due_ms=now,
            fence=1,  # somebody has worked on it before: what is in it was left by them
        )
        await self.storage.threads.ensure(thread)
        message = a_message(
            message_id=thread_id,
            thread_id=thread_id,
            ts=name,
            user_id=ROSA,
            text="hello",
            received_ms=now,
            **changes,
        )
        await self.storage.inbox.add(message)
        return thread_id

    async def add_approval(self, name: str) -> str:
        now = self.office.clock()
        approval = an_approval(
            approval_id=f"apr_{name}",
            thread_id=self.thread_id(f"of-{name}"),
            created_ms=now - 9 * HOURS_MS,
            expires_ms=now - HOURS_MS,
            due_ms=now - HOURS_MS,
        )
        await self.storage.threads.ensure(a_thread(thread_id=approval.thread_id, turn=1))
        await self.storage.approvals.insert(approval)
        return approval.approval_id

    async def add_whisper(self, name: str) -> str:
        now = self.office.clock()
        await self.storage.ephemeral_messages.insert(
            a_whisper(name, channel_id=CHANNEL, text=name, created_ms=now, due_ms=now)
        )
        return name

    async def add_post(self, name: str) -> str:
        thread_id = self.thread_id("0-posts")
        post_id = f"{thread_id}#1:{name}"
        await self.storage.posts.add(a_post(post_id, thread_id=thread_id, text=name))
        return post_id

    async def poison(self, table: str, key: str, **fields: Any) -> None:
        await spoil(self.storage, table, key, **fields)
        self.poisoned.append((table, key, fields))

    async def rest(self) -> None:
        """Tick until nothing is due; that comes to an end, whatever is poisoned."""
        for _ in range(20):
            started = await self.office.sweep.tick()
            await self.office.queue.run()
            if not started:
                return
            self.office.clock.forward(seconds=5)
        raise AssertionError("it never comes to rest")


async def a_world(storage: Stores, good: int = GOOD) -> World:
    """So many threads with a message each."""
    office = Office(storage, [say("Hello.")] * (good + 20))
    world = World(office, storage)
    for number in range(good):
        await world.add_thread(f"good-{number}")
    return world


async def test_the_good_ones_come_to_their_end(storage: Stores) -> None:
    world = await a_world(storage, HUNDRED)
    for number in range(HUNDRED):
        await world.add_approval(f"good-{number}")
        await world.add_whisper(f"good-{number}")
    for name, fields in {
        "damaged": {"created_ms": "now"},
        "newer": NEWER,
        "large": {"requester_id": LARGE},
    }.items():
        await world.poison("threads", await world.add_thread(f"0-thread-{name}"), **fields)
    for name, fields in {
        "damaged": {"kind": "vote"},
        "newer": NEWER,
        "large": {"title": LARGE},
    }.items():
        await world.poison("approvals", await world.add_approval(f"0-{name}"), **fields)
    for name, fields in {
        "damaged": {"created_ms": "now"},
        "newer": NEWER,
        "large": {"text": LARGE},
    }.items():
        await world.poison("ephemeral_messages", await world.add_whisper(f"0-{name}"), **fields)

    await world.rest()

    texts = {text for _, text in world.office.notifier.whispers}
    assert {f"good-{number}" for number in range(HUNDRED)} <= texts
    for number in range(HUNDRED):
        thread = await storage.threads.get(world.thread_id(f"good-{number}"))
        assert (thread.turn, thread.turn_open, thread.due_ms) == (1, False, None)
        approval = await storage.approvals.get(f"apr_good-{number}")
        assert approval.status is Status.EXPIRED
        assert approval.card.revision == approval.shown_revision
    assert world.office.shown().count("Hello.") == HUNDRED + 1  # the large one is read, too
    named = {record.record_id for record in await storage.unreadable(limit=99)}
    assert len(named) == 6
    for table, key, fields in world.poisoned:
        kept = await raw(storage, table, key)
        assert {name: kept[name] for name in fields} == fields
        assert (key in named) == (LARGE not in fields.values())


@pytest.mark.parametrize("fields", [{"received_ms": "late"}, NEWER], ids=["damaged", "newer"])
async def test_an_unreadable_message_stops_its_thread_and_says_so(
    storage: Stores, fields: dict[str, Any]
) -> None:
    world = await a_world(storage)
    thread_id = await world.add_thread("0-poison")
    await world.poison("messages", thread_id, **fields)

    await world.rest()

    assert world.office.shown().count(words("error.unreadable")) == 1
    assert world.office.shown().count("Hello.") == GOOD
    named = await storage.unreadable(limit=9)
    assert {record.record_id for record in named} == {thread_id}
    assert all(f"message {thread_id}" in record.why for record in named)


async def test_a_large_message_is_answered_as_others_are(storage: Stores) -> None:
    world = await a_world(storage)
    await world.poison("messages", await world.add_thread("0-poison"), text=LARGE)

    await world.rest()

    assert world.office.shown().count("Hello.") == GOOD + 1
    assert await storage.unreadable(limit=9) == []


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("checkpoints", {"status": "resting"}),
        ("checkpoints", {"data": '{"schema":99}'}),
        ("approvals", {"kind": "vote"}),
        ("approvals", NEWER),
    ],
    ids=["status", "schema", "approval", "newer-approval"],
)
async def test_a_turn_of_which_something_cannot_be_read_runs_nothing(
    storage: Stores, table: str, fields: dict[str, Any]
) -> None:
    world = await a_world(storage)
    thread_id = await world.add_thread("0-poison")
    thread = await storage.threads.claim(
        thread_id, owner="x", now_ms=world.office.clock(), until_ms=world.office.clock() + 1
    )
    assert thread is not None
    await storage.threads.set_turn(thread_id, fence=thread.fence, turn=1, turn_open=True)
    await storage.checkpoints.save(
        f"{thread_id}#1", "{}", status=CheckpointStatus.PENDING, expected_version=0
    )
    await storage.approvals.insert(an_approval(thread_id=thread_id, due_ms=None))
    key = f"{thread_id}#1" if table == "checkpoints" else an_approval().approval_id
    await world.poison(table, key, **fields)

    await world.rest()

    assert world.office.shown().count("Hello.") == GOOD
    assert world.office.shown().count(words("error.unreadable")) == 1
    still = await storage.threads.get(thread_id)
    assert (still.turn, still.turn_open) == (1, True)  # not given up: another release goes on
    # The thread is quarantined, and a damaged document is named, too.
    named = {thread_id, key} if table == "approvals" else {thread_id}
    assert {record.record_id for record in await storage.unreadable(limit=9)} == named


async def test_an_unreadable_post_keeps_no_other_back(storage: Stores) -> None:
    world = await a_world(storage)
    await world.add_thread("0-posts")
    for number in range(GOOD):
        await world.add_post(f"text-{number}")
    for name, fields in {
        "damaged": {"created_ms": "noon"},
        "newer": NEWER,
        "large": {"text": LARGE},
    }.items():
        await world.poison("posts", await world.add_post(name), **fields)

    await world.rest()

    shown = world.office.shown()
    assert {f"text-{number}" for number in range(GOOD)} | {LARGE} <= set(shown)
    assert shown.count("Hello.") == GOOD + 1
    assert len(await storage.unreadable(limit=9)) == 2
