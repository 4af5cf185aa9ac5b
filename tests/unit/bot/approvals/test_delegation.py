"""Rights that people hand on: who may, for how long, and what becomes of votes by them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bot.approvals.delegation import Delegating
from bot.errors import RefusalError, UserFacingError
from bot.records.approval import Status
from bot.records.people import DelegationRecord, DelegationStore
from storage.audit import AuditEntry
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import MIA, TOM, asked, refused
from tests.unit.bot.counter_stage import Proxy
from tests.unit.bot.office import ADA, GUS, Office, an_actor

ONE: dict[str, Any] = {"approve": [{"from": ["security"]}]}
HOUR_MS = 3_600_000


def delegating(office: Office) -> Delegating:
    return Delegating(office.storage, office.access, office.cards, office.clock)


async def hand_over(
    office: Office, owner: str, to: str, *, hours: int = 8, group: str = ""
) -> DelegationRecord:
    office.clock.forward(seconds=1)
    return await delegating(office).hand_over(
        an_actor(owner),
        team_id="T1",
        delegate_id=to,
        until_ms=office.clock() + hours * HOUR_MS,
        group=group,
    )


async def entries(office: Office) -> list[AuditEntry]:
    return list(await office.storage.audit.of_thread("", limit=100))


async def test_an_owner_who_is_no_member_any_more_hands_nothing_on(
    storage: SqliteStores,
) -> None:
    office = await asked(storage, ONE)
    await hand_over(office, MIA, TOM)
    office.directory.people[MIA] = replace(office.directory.people[MIA], is_deleted=True)

    assert await refused(office, TOM) == "not_approver"


@pytest.mark.parametrize(
    ("owner", "to", "more", "code"),
    [
        (MIA, MIA, {}, "bad_delegate"),
        (MIA, GUS, {}, "bad_delegate"),
        (GUS, MIA, {}, "guest"),
        (MIA, TOM, {"hours": 31 * 24}, "bad_delegate"),
        (MIA, TOM, {"hours": 0}, "bad_delegate"),
        (MIA, TOM, {"group": "unknown"}, "bad_delegate"),
    ],
)
async def test_what_cannot_be_handed_on_is_refused_and_on_record(
    storage: SqliteStores, owner: str, to: str, more: dict[str, Any], code: str
) -> None:
    office = await asked(storage, ONE)

    with pytest.raises(RefusalError) as error:
        await hand_over(office, owner, to, **more)

    assert error.value.code == code
    (entry,) = await entries(office)
    assert (entry.action, entry.actor_id, entry.detail["code"]) == ("refused", owner, code)
    assert await storage.delegations.current("T1", now_ms=office.clock()) == []


async def test_a_failed_look_up_hands_nothing_on(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    office.directory.is_down = True

    with pytest.raises(UserFacingError) as error:
        await hand_over(office, MIA, TOM)

    assert error.value.code == "lookup_failed"
    assert await storage.delegations.current("T1", now_ms=office.clock()) == []


async def test_of_two_that_close_a_ring_at_once_one_stands(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    both = await asyncio.gather(
        hand_over(office, MIA, TOM), hand_over(office, TOM, MIA), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in both) == [
        "DelegationRecord",
        "RefusalError",
    ]
    (left,) = await storage.delegations.current("T1", now_ms=office.clock())
    (kept,) = [outcome for outcome in both if isinstance(outcome, DelegationRecord)]
    assert left == kept


async def test_a_ring_that_was_closed_meanwhile_is_opened_again(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    quicker = DelegationRecord(
        delegation_id="dlg_a",
        team_id="T1",
        owner_id=TOM,
        delegate_id=MIA,
        group_name="",
        created_ms=office.clock(),
        until_ms=office.clock() + HOUR_MS,
    )

    class Meanwhile:
        """Puts another one on record right before it adds one."""

        def __init__(self, store: DelegationStore) -> None:
            self.current, self.end = store.current, store.end
            self._store = store

        async def add(self, new: DelegationRecord) -> bool:
            await self._store.add(quicker)
            return await self._store.add(new)

    slow = Proxy(storage, {"delegations": Meanwhile(storage.delegations)})
    office.clock.forward(seconds=1)
    use_case = Delegating(slow, office.access, office.cards, office.clock)  # type: ignore[arg-type]
    with pytest.raises(RefusalError) as error:
        await use_case.hand_over(
            an_actor(MIA), team_id="T1", delegate_id=TOM, until_ms=office.clock() + HOUR_MS
        )

    assert error.value.code == "bad_delegate"
    assert list(await storage.delegations.current("T1", now_ms=office.clock())) == [quicker]


async def test_who_comes_back_is_away_no_more(storage: SqliteStores) -> None:
    office = await asked(storage, ONE)
    use_case = delegating(office)
    for hours in (24, 48):
        office.clock.forward(seconds=1)
        until_ms = office.clock() + hours * HOUR_MS
        await use_case.go_away(an_actor(MIA), team_id="T1", until_ms=until_ms)
    assert len(await storage.delegations.current("T1", now_ms=office.clock())) == 1

    assert await use_case.come_back(an_actor(MIA), team_id="T1")
    assert not await use_case.come_back(an_actor(MIA), team_id="T1")

    assert await storage.delegations.current("T1", now_ms=office.clock()) == []
    assert [entry.action for entry in await entries(office)] == ["away", "away", "away"]


@pytest.mark.parametrize(("who", "hours"), [(MIA, 0), (MIA, 31 * 24), (GUS, 24)])
async def test_nobody_is_away_for_ever(storage: SqliteStores, who: str, hours: int) -> None:
    office = await asked(storage, ONE)
    until_ms = office.clock() + hours * HOUR_MS

    with pytest.raises(UserFacingError):
        await delegating(office).go_away(an_actor(who), team_id="T1", until_ms=until_ms)

    assert await storage.delegations.current("T1", now_ms=office.clock()) == []
    assert [entry.action for entry in await entries(office)] == ["refused"]


@pytest.mark.parametrize(
    ("editor", "code"), [(ADA, "not_approver"), (TOM, "own_edit")], ids=["owner", "delegate"]
)
async def test_who_has_edited_approves_through_nobody(
    storage: SqliteStores, editor: str, code: str
) -> None:
    rule = {"approve": [{"from": ["sre"]}], "exclude": ["requesters", "editors"], "edit": "yes"}
    office = await asked(storage, rule)
    await hand_over(office, ADA, TOM)
    changed = {"to": "Mia", "amount": 6, "how": "card"}
    edited = await office.decide(await office.the_approval(), by=editor, edited=changed)
    assert edited.status is Status.PENDING
    assert await refused(office, TOM) == code
    assert office.ran == []
