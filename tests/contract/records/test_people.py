"""What is kept about single people: their wishes, and the lists that they were sent."""

import asyncio
from typing import Any

from bot.records.people import PersonRecord, PostedDigest
from bot.stores import Stores
from tests.contract.builders import a_person

FULL = a_person(
    quiet_from="22:00",
    quiet_until="07:00",
    timezone="Europe/Berlin",
    has_digest=False,
    has_copies=True,
    digest_day="2026-11-23",
    digest_ms=3_000,
    posted=PostedDigest(ts="1.1"),
    reminded_ms=2_000,
    next_ms=9_000,
    due_ms=4_000,
    attempts=2,
)


async def stored(storage: Stores, user_id: str = "U1") -> PersonRecord | None:
    return (await storage.people.of("T1", [user_id])).get(user_id)


async def test_a_person_is_kept_whole(storage: Stores) -> None:
    assert await stored(storage) is None
    assert await storage.people.add(FULL)
    assert await stored(storage) == FULL


async def test_people_are_read_by_workspace_and_id(storage: Stores) -> None:
    for name in ("U1", "U2", "U3"):
        await storage.people.add(a_person(name))
    await storage.people.add(a_person("U1", person_id="T2:U1", team_id="T2"))
    found = await storage.people.of("T1", ["U1", "U3", "U9"])
    assert {name: one.person_id for name, one in found.items()} == {"U1": "T1:U1", "U3": "T1:U3"}
    assert await storage.people.of("T1", []) == {}


async def test_a_change_makes_the_record_that_is_missing(storage: Stores) -> None:
    changed = await storage.people.change("T1", "U1", lambda one: one.changed(attempts=2))
    assert changed == await stored(storage) == a_person(attempts=2)
    assert not await storage.people.add(FULL)
    assert await storage.people.change("T1", "U1", lambda _: None) is None


async def test_of_changes_at_once_none_is_lost(storage: Stores) -> None:
    async def count() -> None:
        await storage.people.change("T1", "U1", lambda one: one.changed(attempts=one.attempts + 1))

    await asyncio.gather(*(count() for _ in range(20)))
    found = await stored(storage)
    assert found is not None
    assert found.attempts == 20


async def test_a_time_that_is_over_is_taken_out(storage: Stores) -> None:
    await storage.people.add(FULL)
    await storage.people.change("T1", "U1", lambda one: one.changed(due_ms=None, next_ms=None))
    found = await stored(storage)
    assert found is not None
    assert (found.due_ms, found.next_ms) == (None, None)
    assert await storage.people.due(now_ms=99_000, limit=9) == []


async def test_of_those_who_take_a_person_at_once_one_wins(storage: Stores) -> None:
    await storage.people.add(FULL)
    takes = [storage.people.take(FULL, until_ms=9_000 + number) for number in range(8)]
    (taken,) = [one for one in await asyncio.gather(*takes) if one is not None]
    assert await stored(storage) == taken
    assert await storage.people.due(now_ms=8_000, limit=9) == []


async def test_those_are_due_whose_time_has_come(storage: Stores) -> None:
    for name, due_ms in (("U1", 3_000), ("U2", 1_000), ("U3", 2_001), ("U4", None)):
        await storage.people.add(a_person(name, due_ms=due_ms))
    found = await storage.people.due(now_ms=3_000, limit=2)
    assert [one.user_id for one in found] == ["U2", "U3"]
    assert [one.user_id for one in await storage.people.due(now_ms=1_000, limit=9)] == ["U2"]


async def test_those_wish_something_who_have_quiet_hours_or_want_cards_themselves(
    storage: Stores,
) -> None:
    await storage.people.add(a_person("U2", quiet_from="22:00", quiet_until="07:00"))
    await storage.people.add(a_person("U1", quiet_from="00:00", quiet_until="06:00"))
    await storage.people.add(a_person("U3", has_digest=False))
    await storage.people.add(a_person("U4", has_copies=True))
    assert [one.user_id for one in await storage.people.wishing("T1")] == ["U1", "U2", "U4"]
    assert await storage.people.wishing("T2") == []


async def test_who_has_no_wishes_is_forgotten(storage: Stores) -> None:
    await storage.people.add(a_person("U1", digest_ms=10, reminded_ms=20))
    await storage.people.add(a_person("U2", digest_ms=10))
    kept: dict[str, dict[str, Any]] = {
        "U3": {"quiet_from": "22:00"},
        "U4": {"has_digest": False},
        "U5": {"due_ms": 5},
        "U6": {"digest_ms": 100},
        "U7": {"reminded_ms": 100},
        "U8": {"has_copies": True},
    }
    for name, changes in kept.items():
        await storage.people.add(a_person(name, **changes))
    assert await storage.people.erase(before_ms=100, limit=1) == 1
    assert await storage.people.erase(before_ms=100, limit=9) == 1
    assert await storage.people.erase(before_ms=100, limit=9) == 0
    assert {*await storage.people.of("T1", [f"U{number}" for number in range(9)])} == {*kept}
