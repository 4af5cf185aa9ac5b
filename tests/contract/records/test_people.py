"""What is kept about single people: their wishes, and the lists that they were sent."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from storage.base import Storage
from storage.records import PersonRecord
from storage.sqlite.people import wishes
from storage.sqlite.storage import SqliteStorage
from tests.contract.builders import a_person

FULL = a_person(
    quiet_from="22:00",
    quiet_until="07:00",
    timezone="Europe/Berlin",
    has_digest=False,
    has_copies=True,
    digest_day="2026-11-23",
    digest_ms=3_000,
    digest_json='{"ts":"1.1"}',
    reminded_ms=2_000,
    next_ms=9_000,
    due_ms=4_000,
    attempts=2,
)


async def stored(storage: Storage, user_id: str = "U1") -> PersonRecord | None:
    return (await storage.people.of("T1", [user_id])).get(user_id)


async def test_a_person_is_kept_whole(storage: Storage) -> None:
    assert await stored(storage) is None
    assert await storage.people.put(FULL)
    assert await stored(storage) == replace(FULL, revision=1)


async def test_people_are_read_by_workspace_and_id(storage: Storage) -> None:
    for name in ("U1", "U2", "U3"):
        await storage.people.put(a_person(name))
    await storage.people.put(replace(a_person("U1"), person_id="T2:U1", team_id="T2"))
    found = await storage.people.of("T1", ["U1", "U3", "U9"])
    assert {name: one.person_id for name, one in found.items()} == {"U1": "T1:U1", "U3": "T1:U3"}
    assert await storage.people.of("T1", []) == {}


async def test_a_change_is_made_by_who_has_read_the_newest(storage: Storage) -> None:
    assert await storage.people.put(a_person())
    assert not await storage.people.put(FULL)
    assert await storage.people.put(replace(FULL, revision=1))
    assert not await storage.people.put(replace(FULL, revision=1, digest_day=""))
    assert await stored(storage) == replace(FULL, revision=2)


async def test_a_change_makes_no_person_who_was_deleted(storage: Storage) -> None:
    assert not await storage.people.put(replace(FULL, revision=3))
    assert await stored(storage) is None


async def test_a_time_that_is_over_is_taken_out(storage: Storage) -> None:
    await storage.people.put(FULL)
    await storage.people.put(replace(FULL, revision=1, due_ms=None, next_ms=None))
    found = await stored(storage)
    assert found is not None
    assert (found.due_ms, found.next_ms) == (None, None)
    assert await storage.people.due(now_ms=99_000, limit=9) == []


async def test_of_claims_at_once_one_wins(storage: Storage) -> None:
    await storage.people.put(a_person())
    claims = [a_person(revision=1, digest_day="2026-11-23", attempts=one) for one in range(8)]
    found = await asyncio.gather(*map(storage.people.put, claims))
    assert sum(found) == 1


async def test_those_are_due_whose_time_has_come(storage: Storage) -> None:
    for name, due_ms in (("U1", 3_000), ("U2", 1_000), ("U3", 2_001), ("U4", None)):
        await storage.people.put(a_person(name, due_ms=due_ms))
    found = await storage.people.due(now_ms=3_000, limit=2)
    assert [one.user_id for one in found] == ["U2", "U3"]
    assert [one.user_id for one in await storage.people.due(now_ms=1_000, limit=9)] == ["U2"]


async def test_those_wish_something_who_have_quiet_hours_or_want_cards_themselves(
    storage: Storage,
) -> None:
    await storage.people.put(a_person("U2", quiet_from="22:00", quiet_until="07:00"))
    await storage.people.put(a_person("U1", quiet_from="00:00", quiet_until="06:00"))
    await storage.people.put(a_person("U3", has_digest=False))
    await storage.people.put(a_person("U4", has_copies=True))
    assert [one.user_id for one in await storage.people.wishing("T1")] == ["U1", "U2", "U4"]
    assert await storage.people.wishing("T2") == []


async def test_who_has_no_wishes_is_forgotten(storage: Storage) -> None:
    await storage.people.put(a_person("U1", digest_ms=10, reminded_ms=20))
    await storage.people.put(a_person("U2", digest_ms=10))
    kept: dict[str, dict[str, Any]] = {
        "U3": {"quiet_from": "22:00"},
        "U4": {"has_digest": False},
        "U5": {"due_ms": 5},
        "U6": {"digest_ms": 100},
        "U7": {"reminded_ms": 100},
        "U8": {"has_copies": True},
    }
    for name, changes in kept.items():
        await storage.people.put(a_person(name, **changes))
    assert await storage.people.erase(before_ms=100, limit=1) == 1
    assert await storage.people.erase(before_ms=100, limit=9) == 1
    assert await storage.people.erase(before_ms=100, limit=9) == 0
    assert {*await storage.people.of("T1", [f"U{number}" for number in range(9)])} == {*kept}


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("OF", "sqlite_autoindex_people_1"),
        ("WISHING", "people_wishing"),
        ("DUE", "people_due"),
        ("ERASE", "people_idle"),
    ],
)
async def test_people_are_read_by_an_index(name: str, index: str) -> None:
    storage = SqliteStorage(None)
    await storage.open()
    values = {"team": "T1", "users": "[]", "now": 1, "limit": 1, "before": 1}
    sql = f"EXPLAIN QUERY PLAN {getattr(wishes, f'_{name}')}"
    rows = await storage._database.fetch(sql, values)
    await storage.close()
    plan = " ".join(str(row["detail"]) for row in rows)
    assert index in plan, plan
    assert "SCAN people" not in plan
