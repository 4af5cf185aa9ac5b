"""What is kept about single people: their preferences."""

import asyncio

from bot.records.people import PersonRecord
from bot.stores import Stores
from tests.contract.builders import a_person

FULL = a_person(quiet_from="22:00", quiet_until="07:00", timezone="Europe/Berlin", has_copies=True)


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
    people = await storage.people.of("T1", ["U1", "U3", "U9"])
    assert {name: person.person_id for name, person in people.items()} == {
        "U1": "T1:U1",
        "U3": "T1:U3",
    }
    assert await storage.people.of("T1", []) == {}


async def test_a_change_makes_the_record_that_is_missing(storage: Stores) -> None:
    changed = await storage.people.change(
        "T1", "U1", lambda person: person.changed(has_copies=True)
    )
    assert changed == await stored(storage) == a_person(has_copies=True)
    assert not await storage.people.add(FULL)
    assert await storage.people.change("T1", "U1", lambda _: None) is None


async def test_those_wish_something_who_have_quiet_hours_or_want_cards_themselves(
    storage: Stores,
) -> None:
    await storage.people.add(a_person("U2", quiet_from="22:00", quiet_until="07:00"))
    await storage.people.add(a_person("U1", quiet_from="00:00", quiet_until="06:00"))
    await storage.people.add(a_person("U3"))
    await storage.people.add(a_person("U4", has_copies=True))
    assert [person.user_id for person in await storage.people.wishing("T1")] == ["U1", "U2", "U4"]
    assert await storage.people.wishing("T2") == []


async def test_of_changes_at_once_none_is_lost(storage: Stores) -> None:
    async def add_letter() -> None:
        await storage.people.change(
            "T1", "U1", lambda person: person.changed(timezone=person.timezone + "x")
        )

    await asyncio.gather(*(add_letter() for _ in range(20)))
    written = await stored(storage)
    assert written is not None
    assert written.timezone == "x" * 20


async def test_records_without_preferences_are_deleted(storage: Stores) -> None:
    await storage.people.add(a_person("U1"))
    await storage.people.add(a_person("U2"))
    await storage.people.add(a_person("U3", quiet_from="22:00"))
    await storage.people.add(a_person("U4", has_copies=True))
    assert [await storage.people.erase(limit=1) for _ in range(3)] == [1, 1, 0]
    assert {*await storage.people.of("T1", ["U1", "U2", "U3", "U4"])} == {"U3", "U4"}
