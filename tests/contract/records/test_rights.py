"""Rights that people hand on: delegations, absences and standing grants, on each database."""

import asyncio

import pytest

from bot.records.people import Grant
from bot.stores import Stores
from storage.errors import RecordNotFoundError
from tests.contract.builders import THREAD_ID, a_delegation, a_grant

GRANT = a_grant().grant_id


async def test_a_delegation_is_added_once(storage: Stores) -> None:
    assert await storage.delegations.add(a_delegation())
    assert not await storage.delegations.add(a_delegation(delegate_id="U9"))
    assert await storage.delegations.current("T1", now_ms=1_000) == [a_delegation()]


async def test_a_delegation_holds_until_its_end(storage: Stores) -> None:
    await storage.delegations.add(a_delegation())
    assert await storage.delegations.current("T1", now_ms=8_999) == [a_delegation()]
    assert await storage.delegations.current("T1", now_ms=9_000) == []
    assert await storage.delegations.current("T2", now_ms=1_000) == []


async def test_a_delegation_can_be_ended_once(storage: Stores) -> None:
    await storage.delegations.add(a_delegation())
    assert await storage.delegations.end("delegation-1", now_ms=2_000)
    assert not await storage.delegations.end("delegation-1", now_ms=3_000)
    assert not await storage.delegations.end("another", now_ms=3_000)
    assert await storage.delegations.current("T1", now_ms=2_000) == []


async def test_delegations_come_in_the_order_in_which_they_were_made(storage: Stores) -> None:
    for name, created_ms in [("b", 3), ("a", 2), ("c", 2)]:
        await storage.delegations.add(a_delegation(name, created_ms=created_ms))
    delegations = await storage.delegations.current("T1", now_ms=5)
    assert [delegation.delegation_id for delegation in delegations] == ["a", "c", "b"]


async def test_all_delegations_can_be_ended(storage: Stores) -> None:
    for number in range(3):
        await storage.delegations.add(a_delegation(f"d{number}"))
    await storage.delegations.end("d1", now_ms=2_000)
    assert await storage.delegations.end_all(now_ms=3_000) == 2
    assert await storage.delegations.end_all(now_ms=3_000) == 0
    assert await storage.delegations.current("T1", now_ms=3_000) == []


async def test_delegations_that_are_long_over_are_erased(storage: Stores) -> None:
    for number in range(3):
        await storage.delegations.add(a_delegation(f"d{number}", until_ms=1_000 + number))
    assert await storage.delegations.erase(before_ms=1_002, limit=1) == 1
    assert await storage.delegations.erase(before_ms=1_002, limit=9) == 1
    assert await storage.delegations.erase(before_ms=1_002, limit=9) == 0
    assert len(await storage.delegations.current("T1", now_ms=0)) == 1


async def test_a_grant_is_added_once(storage: Stores) -> None:
    assert await storage.grants.add(a_grant())
    assert not await storage.grants.add(a_grant(max_uses=99))
    assert await storage.grants.get(GRANT) == a_grant()
    assert await storage.grants.current(THREAD_ID, now_ms=1_000) == [a_grant()]
    assert await storage.grants.current("T1:C1:9", now_ms=1_000) == []


async def test_grants_of_a_program_are_found_until_they_end(storage: Stores) -> None:
    for name, program in (("a", "prg_1"), ("b", "prg_1"), ("c", "prg_2"), ("d", "")):
        await storage.grants.add(a_grant(name, program=program))
    await storage.grants.end("b", by="U1", now_ms=2_000)
    for now_ms, names in ((8_999, ["a"]), (9_000, [])):
        grants = await storage.grants.of_program("prg_1", now_ms=now_ms)
        assert [grant.grant_id for grant in grants] == names


async def test_there_is_no_grant_of_another_id(storage: Stores) -> None:
    with pytest.raises(RecordNotFoundError):
        await storage.grants.get("nothing")


async def test_a_grant_is_used_for_so_many_calls_and_no_more(storage: Stores) -> None:
    await storage.grants.add(a_grant())
    first = await storage.grants.use(a_grant(), call="one", now_ms=2_000)
    assert first == a_grant(uses=("one",), used_ms=2_000, revision=1)
    assert first is not None
    second = await storage.grants.use(first, call="two", now_ms=2_500)
    assert second == a_grant(uses=("one", "two"), used_ms=2_500, revision=2)
    assert second is not None
    assert await storage.grants.use(second, call="three", now_ms=2_000) is None


@pytest.mark.parametrize("now_ms", [9_000, 9_001])
async def test_a_grant_ends_by_itself(storage: Stores, now_ms: int) -> None:
    await storage.grants.add(a_grant())
    assert await storage.grants.use(a_grant(), call="one", now_ms=now_ms) is None
    assert await storage.grants.current(THREAD_ID, now_ms=now_ms) == []


async def test_nothing_starts_by_a_grant_that_was_ended(storage: Stores) -> None:
    await storage.grants.add(a_grant())
    ended = await storage.grants.end(GRANT, by="U5", now_ms=2_000)
    assert ended == a_grant(ended_ms=2_000, ended_by="U5", revision=1)
    assert await storage.grants.end(GRANT, by="U6", now_ms=3_000) is None
    assert await storage.grants.use(a_grant(), call="one", now_ms=2_000) is None
    assert await storage.grants.current(THREAD_ID, now_ms=2_000) == []


async def test_all_grants_end_at_once(storage: Stores) -> None:
    for number in range(3):
        await storage.grants.add(a_grant(f"{THREAD_ID}:grant:{number}", due_ms=9_000))
    await storage.grants.end(f"{THREAD_ID}:grant:1", by="U5", now_ms=2_000)
    assert await storage.grants.end_all(now_ms=3_000) == 2
    assert await storage.grants.current(THREAD_ID, now_ms=3_000) == []
    drawn = await storage.grants.due(now_ms=3_000, limit=9)
    assert {grant.grant_id[-1] for grant in drawn} >= {"0", "2"}


async def test_the_message_of_a_grant_is_remembered(storage: Stores) -> None:
    await storage.grants.add(a_grant())
    await storage.grants.mark_card(a_grant(card_ts="1.1"), due_ms=9_000)
    grant: Grant = await storage.grants.get(GRANT)
    assert (grant.card_ts, grant.due_ms) == ("1.1", 9_000)
    await storage.grants.mark_card(grant, due_ms=None)
    assert (await storage.grants.get(GRANT)).due_ms is None


async def test_a_message_that_shows_less_than_happened_stays_due(storage: Stores) -> None:
    await storage.grants.add(a_grant())
    used = await storage.grants.use(a_grant(), call="one", now_ms=2_000, due_ms=2_015)
    await storage.grants.mark_card(a_grant(card_ts="1.1"), due_ms=9_000)
    assert used is not None
    assert (used.uses, used.used_ms, used.due_ms) == (("one",), 2_000, 2_015)
    grant = await storage.grants.get(GRANT)
    assert grant == used.changed(card_ts="1.1", revision=grant.revision)
    ended = await storage.grants.end(GRANT, by="U5", now_ms=2_020, due_ms=2_035)
    assert ended is not None
    await storage.grants.mark_card(used, due_ms=9_000)
    assert (await storage.grants.get(GRANT)).due_ms == 2_035


async def test_of_those_who_take_a_due_message_one_draws_it(storage: Stores) -> None:
    for name, due_ms in [("a", 3_000), ("b", 2_000), ("c", None), ("d", 3_001)]:
        await storage.grants.add(a_grant(f"{THREAD_ID}:grant:{name}", due_ms=due_ms))
    grants = await storage.grants.due(now_ms=3_000, limit=9)
    assert [grant.grant_id[-1] for grant in grants] == ["b", "a"]
    assert len(await storage.grants.due(now_ms=3_000, limit=1)) == 1
    taken = await asyncio.gather(
        *(storage.grants.claim_update(grants[0], until_ms=5_000) for _ in range(3))
    )
    assert sorted(taken) == [False, False, True]
    assert await storage.grants.due(now_ms=3_000, limit=9) == [grants[1]]


async def test_nobody_takes_a_message_that_is_not_due_any_more(storage: Stores) -> None:
    grant = a_grant(due_ms=None)
    await storage.grants.add(grant)
    assert not await storage.grants.claim_update(grant, until_ms=5_000)
    assert await storage.grants.get(GRANT) == grant


async def test_of_uses_at_once_each_is_counted(storage: Stores) -> None:
    await storage.grants.add(a_grant(max_uses=3))

    async def use(call: str) -> bool:
        return await storage.grants.use(a_grant(max_uses=3), call=call, now_ms=2_000) is not None

    outcomes = await asyncio.gather(*(use(f"call-{number}") for number in range(6)))
    assert sorted(outcomes) == [False, False, False, True, True, True]
    assert len((await storage.grants.get(GRANT)).uses) == 3


async def test_a_call_uses_a_grant_once(storage: Stores) -> None:
    """It may be asked about again after a crash between the use and the start."""
    await storage.grants.add(a_grant(max_uses=1))
    first = await storage.grants.use(a_grant(max_uses=1), call="one", now_ms=2_000)
    assert first is not None
    again = await storage.grants.use(first, call="one", now_ms=3_000)
    assert again is not None
    assert (again.uses, again.used_ms) == (("one",), 2_000)
