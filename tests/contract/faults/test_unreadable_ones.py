"""Faults of records that are decoded whole when they are read, each with its number."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.clock import system_clock
from bot.commands.cli import main
from bot.maintenance.retention import Forgetting
from bot.stores import Stores
from tests.contract.builders import (
    THREAD_ID,
    a_grant,
    a_post,
    a_thread,
    an_approval,
)
from tests.contract.faults.driver import Faults, break_sqlite
from tests.contract.spoiling import spoil
from tests.contract.test_retention import fill
from tests.scenario import agents
from tests.support.stage import a_stage
from tests.support.stores import SqliteStores

NEWER = {"v": 2}
NOW = 10_000


async def test_m2_grants_that_cannot_be_read_are_named_and_starve_no_other(
    storage: Stores,
) -> None:
    for number in range(5):
        name = f"{THREAD_ID}:grant:{number}"
        await storage.grants.add(a_grant(name, due_ms=number + 1))
        await spoil(storage, "grants", name, **NEWER)
    await storage.grants.add(a_grant(f"{THREAD_ID}:grant:good", due_ms=90))

    grants = [grant for _ in range(3) for grant in await storage.grants.due(now_ms=NOW, limit=5)]

    assert {grant.grant_id for grant in grants} == {f"{THREAD_ID}:grant:good"}
    assert await storage.count_unreadable() == 5
    assert {record.record_id for record in await storage.unreadable(limit=9)} == {
        f"{THREAD_ID}:grant:{number}" for number in range(5)
    }


GARBAGE: list[tuple[str, object]] = [
    ("requesters", "7"),
    ("members", "[["),
    ("edits", {"earlier": "7"}),
    ("cards", [{"key": "card:U1"}]),
    ("messages", 7),
    ("escalation", {"since_ms": 1, "x": 2}),
    ("votes", [{"by": "U1"}]),
    ("claim", {"by": 1}),
    ("snoozes", {"U1": "soon"}),
    ("dialog", [{"by": "U1"}]),
    ("said", "{"),
    ("seen", ["U1"]),
    ("run", {"state": "gone", "at_ms": 1}),
    ("edits", {"last": "{}"}),
]


async def test_m6_one_request_with_senseless_json_hides_no_other(tmp_path: Path) -> None:
    agents.RAN.clear()
    agent = "tests.scenario.agents:nasty"
    async with a_stage(tmp_path, "http", COUNTERSIGN_AGENT=agent) as stage:
        await stage.asked("@countersign go")
        await stage.rest()
        (approval,) = await stage.storage.approvals.due(now_ms=1 << 50, limit=9)

        async def listed() -> int:
            answer = await stage.answered("Ada", stage.command("Ada", "list"))
            return str(answer).count(approval.title.split()[0])

        of_each = await listed()
        assert of_each
        for number, (field, garbage) in enumerate(GARBAGE):
            name = f"apr_{number:032x}"
            more = approval.changed(approval_id=name, due_ms=None)
            assert await stage.storage.approvals.insert(more)
            assert await listed() == 2 * of_each, field
            beside = SqliteStores(Path(stage.environ["COUNTERSIGN_DATA_DIR"]))
            await beside.open_beside()
            await spoil(beside, "approvals", name, **{field: garbage})
            await beside.close()
            assert await listed() >= of_each, field
            await stage.storage.approvals.delete({"id": name}, limit=1)


async def test_m8_forgotten_threads_give_their_room_back(tmp_path: Path) -> None:
    environ = {"COUNTERSIGN_DATA_DIR": str(tmp_path)}
    bot = SqliteStores(tmp_path)
    await bot.open()
    for number in range(100):
        thread_id = f"T1:C1:1700000000.{number:06}"
        await bot.threads.ensure(a_thread(thread_id=thread_id, active_ms=1_000))
        text = "x" * 30_000
        post = a_post(f"{thread_id}#1:m", thread_id=thread_id, text=text, posted=True)
        await bot.posts.add(post)
    await bot.retention.clear_log()
    before = (tmp_path / "countersign.db").stat().st_size

    command = ("prune", "--older-than", "90d", "--yes")
    assert await asyncio.to_thread(main, command, environ=environ, say=lambda _: None) == 0
    await bot.close()

    assert (tmp_path / "countersign.db").stat().st_size < before / 2


async def test_m17_a_thread_that_cannot_be_read_is_forgotten_on_demand(storage: Stores) -> None:
    await fill(storage)
    await spoil(storage, "threads", THREAD_ID, **NEWER)

    forgetting = Forgetting(storage=storage, clock=system_clock, owner="me")
    forecast = await forgetting.forget(THREAD_ID, how="forget")

    assert forecast.refusal == ""
    assert set(await storage.retention.counts(THREAD_ID)) <= {"audit"}


async def test_m17_a_thread_that_cannot_be_read_is_found_by_retention(storage: Stores) -> None:
    await fill(storage, active_ms=1_000)
    await spoil(storage, "threads", THREAD_ID, **NEWER)

    resting = await storage.retention.resting(before_ms=NOW, limit=5)

    assert [thread_id for _, thread_id in resting] == [THREAD_ID]


async def looked_at(storage: SqliteStores, faults: Faults) -> int:
    """How many steps SQLite takes at each start and each minute for what cannot be read."""
    faults.steps = 0
    await storage.reconsider()
    await storage.count_unreadable()
    return faults.steps


async def test_m4_what_cannot_be_read_is_counted_without_reading_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults()
    break_sqlite(monkeypatch, faults)
    storage = SqliteStores(tmp_path)
    await storage.open()
    await storage.approvals.insert(an_approval())
    before = await looked_at(storage, faults)
    archived: Any = {"open": False, "due_ms": None, "arguments": {"x": "y" * 99}}
    old = [an_approval(**archived).changed(approval_id=f"old-{n:06}") for n in range(5_000)]
    await storage.approvals.insert(*old)

    after = await looked_at(storage, faults)

    assert after <= before + 10
    await storage.close()
