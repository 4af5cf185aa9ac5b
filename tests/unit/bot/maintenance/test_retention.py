"""Forgetting: all of a thread goes, its audit keeps who, what and when; nothing open is touched."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.audit.report import story
from bot.leases import FORGETTING_LEASE
from bot.maintenance.retention import Forgetting, Retention
from bot.records.approval_queries import newest_of
from storage.errors import RecordNotFoundError, StoreUnavailableError
from storage.ledger import KEPT
from tests.contract.builders import a_delegation, a_whisper
from tests.support.named import asked_at
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, ROOT, THREAD_ID, KilledError, Office, an_incoming

ASK = "<@UBOT> pay Mia the secret sum"
PAY = call("pay", {"to": "Mia", "amount": 471108150815}, id="c1")
DAY = timedelta(days=1)


def forgetting_of(office: Office, owner: str = "keeper", **changes: Any) -> Forgetting:
    made = Forgetting(storage=office.storage, clock=office.clock, owner=owner)
    return replace(made, **changes)


async def an_ended_thread(storage: SqliteStores) -> Office:
    office = Office(storage, [PAY, say("Paid."), say("Hello again.")])
    approval = await office.asked(ASK)
    await office.decide(approval, by=ADA, reason="fine by me")
    assert office.ran
    return office


async def everything(storage: SqliteStores) -> str:
    """All texts in the database."""
    tables = await storage._database.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")
    rows = [
        await storage._database.fetch(f"SELECT * FROM {table['name']}")  # noqa: S608
        for table in tables
    ]
    return json.dumps(rows)


async def test_i12_of_a_forgotten_thread_only_ids_names_and_times_are_left(
    storage: SqliteStores,
) -> None:
    office = await an_ended_thread(storage)
    before = await story(storage, thread_id=THREAD_ID)
    full = await everything(storage)
    assert all(word in full for word in ("471108150815", "secret sum", "fine by me"))

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")

    assert forecast.refusal == ""
    left = await everything(storage)
    assert not any(
        word in left for word in ("471108150815", "secret sum", "Paid", "Mia", "fine by me")
    )
    after = await story(storage, thread_id=THREAD_ID)
    same = [
        (entry.entry_id, entry.at_ms, entry.action, entry.approval_id, entry.actor_id)
        for entry in before
    ]
    *old, last = after
    assert [(o.entry_id, o.at_ms, o.action, o.approval_id, o.actor_id) for o in old] == same
    assert all(entry.erased for entry in after)
    digests = {entry.detail.get("digest") for entry in before} - {None}
    assert digests <= {entry.detail.get("digest") for entry in after}
    assert (last.action, last.detail["how"]) == ("forgotten", "forget")
    assert await storage.retention.counts(THREAD_ID) == {"audit": len(after)}


async def test_nothing_that_waits_for_people_is_forgotten(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear(ASK)
    before = await everything(storage)

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")

    assert forecast.refusal == "its turn is not over"
    assert await everything(storage) == before


async def test_a_thread_that_somebody_works_on_is_not_forgotten(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    await storage.threads.wake(THREAD_ID, now_ms=office.clock())
    now = office.clock()
    await storage.threads.claim(THREAD_ID, owner="b", now_ms=now, until_ms=now + 5_000)

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")
    assert forecast.refusal == "a process is working on it; try again"


async def test_a_message_that_nobody_has_read_keeps_its_thread(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    await office.inbox.receive(an_incoming("<@UBOT> hello", ts="1800000009.000001"))
    office.clock.forward(seconds=15)  # who took it has died

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")
    assert forecast.refusal == "a message has not been read yet"


async def test_work_that_is_due_keeps_its_thread(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    await storage.threads.wake(THREAD_ID, now_ms=office.clock())

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")
    assert forecast.refusal == "there is work to be done in it"


class Meddling:
    """A retention store in which something happens before or after a step."""

    def __init__(self, storage: Any, **steps: Any) -> None:
        self._storage = storage
        self._steps = steps
        self.retention = self

    def __getattr__(self, name: str) -> Any:
        if hasattr(self._storage.retention, name):
            method = getattr(self._storage.retention, name)
            step = self._steps.get(name)

            async def meddle(*args: Any, **values: Any) -> Any:
                result = await method(*args, **values)
                return result if step is None else await step(result)

            return meddle
        return getattr(self._storage, name)


async def test_i4_a_message_that_comes_meanwhile_is_read(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)

    async def somebody_writes(result: int) -> int:
        await office.inbox.receive(an_incoming("<@UBOT> wait", ts="1800000009.000001"))
        return result

    meddling: Any = Meddling(storage, strip=somebody_writes)
    forecast = await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")

    assert "a new message arrived" in forecast.refusal
    await office.later()
    assert office.shown()[-1] == "Hello again."
    assert "471108150815" not in await everything(storage)


async def test_what_comes_before_the_seal_keeps_all(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)

    async def somebody_writes(result: Any) -> Any:
        await office.inbox.receive(an_incoming("<@UBOT> wait", ts="1800000009.000001"))
        return result

    before = await storage.retention.counts(THREAD_ID)
    meddling: Any = Meddling(storage, seal=somebody_writes)
    forecast = await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")

    assert forecast.refusal == "a message has not been read yet"
    assert await storage.retention.counts(THREAD_ID) == before
    assert await office.sweep.tick() == 1  # its lease was given back


async def test_a_thread_that_is_woken_before_the_seal_is_kept(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)

    async def none(result: Any) -> Any:
        return None

    meddling: Any = Meddling(storage, seal=none)
    forecast = await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")
    assert forecast.refusal == "it was woken"
    assert "471108150815" in await everything(storage)


@pytest.mark.parametrize("step", ["seal", "erase", "strip"])
async def test_i4_a_forgetting_that_is_cut_off_is_finished_by_the_next(
    storage: SqliteStores, step: str
) -> None:
    office = await an_ended_thread(storage)

    async def die(_: Any) -> Any:
        raise KilledError

    meddling: Any = Meddling(storage, **{step: die})
    with pytest.raises(KilledError):
        await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")
    office.clock.forward(seconds=FORGETTING_LEASE.total_seconds() + 1)

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")

    assert forecast.refusal == ""
    assert set(await storage.retention.counts(THREAD_ID)) == {"audit"}
    assert "471108150815" not in await everything(storage)


async def test_what_a_thread_without_its_record_has_left_is_deleted(storage: SqliteStores) -> None:
    """As after the recipe of earlier releases, which left most of it."""
    office = await an_ended_thread(storage)
    await storage._database.fetch("DELETE FROM threads")

    forecast = await forgetting_of(office).forget(THREAD_ID, how="forget")

    assert forecast.refusal == ""
    assert set(await storage.retention.counts(THREAD_ID)) == {"audit"}


async def test_a_long_forgetting_keeps_its_lease(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)

    async def slow(result: int) -> int:
        office.clock.forward(seconds=FORGETTING_LEASE.total_seconds() / 2)
        return result

    meddling: Any = Meddling(storage, strip=slow)
    forecast = await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")
    assert forecast.refusal == ""


async def test_whoever_lost_the_lease_meanwhile_says_so(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)

    async def too_slow(result: int) -> int:
        office.clock.forward(minutes=2)
        now = office.clock()
        await storage.retention.seal(THREAD_ID, owner="b", now_ms=now, until_ms=now + 9)
        return result

    meddling: Any = Meddling(storage, erase=too_slow)
    forecast = await forgetting_of(office, storage=meddling).forget(THREAD_ID, how="forget")
    assert "another process has it now" in forecast.refusal
    await storage.threads.get(THREAD_ID)


LINK = "https://acme.slack.com/archives/C1/p1800000000000001"


@pytest.mark.parametrize(
    "name",
    [
        THREAD_ID,
        LINK,
        f"https://acme.slack.com/archives/C1/p1800000077000001?thread_ts={ROOT}&cid=C1",
    ],
)
async def test_a_thread_is_named_by_its_id_or_a_link(storage: SqliteStores, name: str) -> None:
    office = await an_ended_thread(storage)
    assert await forgetting_of(office).thread_id_of(name) == THREAD_ID


async def test_a_thread_is_named_by_an_approval(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    (approval,) = await newest_of(storage.approvals, THREAD_ID, limit=9)
    assert await forgetting_of(office).thread_id_of(approval.approval_id) == THREAD_ID


@pytest.mark.parametrize("name", ["apr_1", LINK.replace("C1", "C2")])
async def test_a_name_of_nothing_is_an_error(storage: SqliteStores, name: str) -> None:
    office = await an_ended_thread(storage)
    with pytest.raises(RecordNotFoundError):
        await forgetting_of(office).thread_id_of(name)


# ---- by age -------------------------------------------------------------------------------------


def retention_of(office: Office, **changes: Any) -> Retention:
    return Retention(forgetting=forgetting_of(office, **changes), keep=DAY)


async def test_without_a_retention_nothing_is_ever_forgotten(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    await office.later(hours=24 * 3_000)
    await storage.threads.get(THREAD_ID)


async def test_i14_what_cannot_be_forgotten_keeps_nothing_else(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    old = await storage.threads.get(THREAD_ID)
    for number in range(7):  # they rest, but their cards were never drawn
        thread_id = f"T1:C1:{number}"
        await storage.threads.ensure(old.changed(thread_id=thread_id, active_ms=5 + number))
        (approval,) = await newest_of(storage.approvals, THREAD_ID, limit=1)
        stuck = asked_at(approval, approval_id=f"apr_{number}", thread_id=thread_id, due_ms=1)
        await storage.approvals.insert(stuck)
    office.clock.forward(hours=25)
    retention = retention_of(office)

    await retention.step()
    await retention.step()

    assert set(await storage.retention.counts(THREAD_ID)) == {"audit"}
    assert len(await newest_of(storage.approvals, "T1:C1:3", limit=1)) == 1


async def test_i14_what_cannot_be_read_keeps_nothing_else(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    old = await storage.threads.get(THREAD_ID)
    await storage.threads.ensure(old.changed(thread_id="T1:C1:0", active_ms=5))
    await storage._database.fetch("UPDATE threads SET v = 9 WHERE id = 'T1:C1:0'")
    await storage._database.fetch("DROP TRIGGER audit_sealed")
    await storage._database.fetch(
        "UPDATE audit SET content = '471108150815' WHERE action = 'decided'"
    )
    office.clock.forward(hours=25)

    await retention_of(office).step()

    assert set(await storage.retention.counts(THREAD_ID)) == {"audit"}
    assert "471108150815" not in await everything(storage)
    with pytest.raises(RecordNotFoundError):  # it is forgotten, too
        await forgetting_of(office).forecast("T1:C1:0")


async def test_old_private_answers_and_delegations_go_with_the_rest(storage: SqliteStores) -> None:
    office = Office(storage, [])
    await storage.ephemeral_messages.insert(
        a_whisper("old", due_ms=None, created_ms=1, thread_ts="")
    )
    await storage.delegations.add(a_delegation(created_ms=1, until_ms=2))
    await retention_of(office).step()
    assert await storage.ephemeral_messages.insert(a_whisper("old"))
    assert await storage.delegations.add(a_delegation())


async def test_a_database_that_is_away_is_asked_again_later(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    office.clock.forward(hours=25)
    is_away = True

    async def away(result: Any) -> Any:
        if is_away:
            raise StoreUnavailableError("gone")
        return result

    meddling: Any = Meddling(storage, resting=away)
    retention = retention_of(office, storage=meddling)
    await retention.step()
    is_away = False
    await retention.step()
    await storage.threads.get(THREAD_ID)  # not at once

    office.clock.forward(minutes=2)
    await retention.step()
    assert set(await storage.retention.counts(THREAD_ID)) == {"audit"}


async def test_two_processes_forget_a_thread_once(storage: SqliteStores) -> None:
    office = await an_ended_thread(storage)
    office.clock.forward(hours=25)
    other = retention_of(office, owner="other")

    async def other_first(result: Any) -> Any:
        await other.step()
        return result

    meddling: Any = Meddling(storage, resting=other_first)
    await retention_of(office, storage=meddling).step()

    assert (await office.acts()).count("forgotten") == 1


def test_what_people_and_models_write_is_not_kept() -> None:
    assert not KEPT & {"reason", "edited", "answer", "arguments", "asked", "before", "why", "error"}
