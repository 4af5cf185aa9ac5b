"""Programs and their keys, as both engines keep them."""

import asyncio

from bot.records.programs import ProgramKeyRecord, ProgramLimits, program_id
from bot.stores import Stores
from tests.contract.builders import a_program, a_program_key

FULL = a_program(
    requester="named",
    people="narrow",
    trusts_tags=True,
    callback_hosts=("ci.example.com",),
    networks=("10.0.0.0/8",),
    limits=ProgramLimits(create=5, pending=6, waiting=7),
    is_personal=True,
)


async def test_a_program_is_kept_whole(storage: Stores) -> None:
    assert await storage.programs.program(FULL.id) is None
    assert await storage.programs.add(FULL)
    assert not await storage.programs.add(FULL)
    assert await storage.programs.program(FULL.id) == FULL


async def test_keys_are_listed_by_program_and_age(storage: Stores) -> None:
    for key_id, at_ms, program in (("b", 3, "x"), ("a", 2, "x"), ("c", 1, "y")):
        key = a_program_key(key_id, created_ms=at_ms, program_id=program_id(program))
        assert await storage.programs.add_key(key)
        assert not await storage.programs.add_key(key)
    assert ids(await storage.programs.keys_of(program_id("x"))) == ["a", "b"]
    assert ids(await storage.programs.all_keys()) == ["c", "a", "b"]


async def test_a_revocation_ends_a_key_and_can_only_come_sooner(storage: Stores) -> None:
    await storage.programs.add_key(a_program_key())
    assert await storage.programs.revoke("unknown", at_ms=5_000) is None
    for at_ms, ends_ms in ((5_000, 5_000), (6_000, 5_000), (4_000, 4_000)):
        await storage.programs.revoke("7h2kQ0aZ", at_ms=at_ms)
        key = await storage.programs.key("7h2kQ0aZ")
        assert key is not None
        assert key.revoked_ms == ends_ms
        assert key.is_live(ends_ms - 1)
        assert not key.is_live(ends_ms)
    assert await storage.programs.key("unknown") is None


def ids(keys: object) -> list[str]:
    assert isinstance(keys, list)
    return [key.id for key in keys if isinstance(key, ProgramKeyRecord)]


async def test_a_name_is_taken_once(storage: Stores) -> None:
    taken = await asyncio.gather(
        *(storage.programs.add(a_program(owner_id=f"U{n}")) for n in range(5))
    )
    assert sorted(taken) == [False, False, False, False, True]
    assert await storage.programs.add(a_program("other"))
