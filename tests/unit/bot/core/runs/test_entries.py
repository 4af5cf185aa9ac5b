"""Entries of the audit that wait for the next one: none is lost, and none comes too late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from agents import CheckpointStatus
from agents.memory import MemoryCheckpointStore
from agents.models import call, say
from bot.core.runs.entries import HeldEntries, NotedFirst, WriteTimer, _later
from storage.errors import RecordRefusedError, StoreUnavailableError
from storage.records import AuditEntry, Status
from storage.sqlite import SqliteStorage
from tests.contract.builders import an_entry
from tests.support.fakes import Queue
from tests.unit.bot.office import ADA, THREAD_ID, KilledError, Office

ASK = "<@UBOT> pay Mia"
PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
THREAD = "T1:C1:1"


class Minutes:
    """An audit that counts its commands; it may be away, or slow."""

    def __init__(self) -> None:
        self.writes: list[list[str]] = []
        self.kept: list[AuditEntry] = []
        self.is_away = False
        self.refused: set[str] = set()
        self.gate: asyncio.Event | None = None
        self.going_on = self.at_once = 0

    async def append(self, entry: AuditEntry) -> None:
        await self.append_all([entry])

    async def append_all(self, entries: Sequence[AuditEntry]) -> None:
        self.going_on += 1
        self.at_once = max(self.at_once, self.going_on)
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        self.going_on -= 1
        names = [entry.entry_id for entry in entries]
        if self.is_away:
            raise StoreUnavailableError("away")
        if self.refused & {*names}:
            raise RecordRefusedError("no database can hold it")
        self.writes.append(names)
        self.kept += entries

    async def of_thread(self, thread_id: str, *, limit: int) -> Sequence[AuditEntry]:
        return [entry for entry in self.kept if entry.thread_id == thread_id][:limit]


def one(name: str, thread_id: str = THREAD) -> AuditEntry:
    return an_entry(entry_id=name, thread_id=thread_id)


async def test_the_next_entry_takes_along_what_is_held_of_its_thread() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    entries.hold(THREAD, [one("decided"), one("resumed")])
    entries.hold("T1:C1:2", [one("other", "T1:C1:2")])
    await entries.append(one("started"))
    await entries.append(one("executed"))
    assert minutes.writes == [["decided", "resumed", "started"], ["executed"]]
    await entries.append_all([one("more", "T1:C1:2")])
    await entries.write(THREAD)
    assert minutes.writes[2:] == [["other", "more"]]


@dataclass
class Alarms:
    """Alarms that ring when the test lets them.

    Attributes:
        waits: How long each waits, in seconds.
    """

    waits: list[float] = field(default_factory=list)
    _set: list[Callable[[], None]] = field(default_factory=list)

    def __call__(self, seconds: float, call: Callable[[], None]) -> WriteTimer:
        alarms = self

        class Ringing:
            def cancel(self) -> None:
                if call in alarms._set:
                    alarms._set.remove(call)

        self.waits.append(seconds)
        self._set.append(call)
        return Ringing()

    def ring(self) -> None:
        """Let the only alarm ring."""
        (call,) = self._set
        self._set.clear()
        call()


async def test_what_nothing_takes_along_is_written_soon() -> None:
    minutes, queue, alarms = Minutes(), Queue(), Alarms()
    HeldEntries(minutes, queue.spawn, alarms).hold(THREAD, [one("decided")])
    assert 0 < alarms.waits[0] <= 1
    alarms.ring()
    await queue.run()
    assert minutes.writes == [["decided"]]


async def test_an_alarm_of_the_loop_rings_by_itself() -> None:
    rang = asyncio.Event()
    _later(0, rang.set)
    await rang.wait()


async def test_what_cannot_be_written_is_tried_again_later_and_later() -> None:
    minutes, queue, alarms = Minutes(), Queue(), Alarms()
    entries = HeldEntries(minutes, queue.spawn, alarms)
    minutes.is_away = True
    entries.hold(THREAD, [one("decided")])
    for _ in range(12):
        alarms.ring()
        with suppress(StoreUnavailableError):
            await queue.run()
    assert alarms.waits[:5] == sorted(alarms.waits[:5])
    assert alarms.waits[3] > 4
    assert alarms.waits[-1] <= 40
    minutes.is_away = False
    alarms.ring()
    await queue.run()
    assert minutes.writes == [["decided"]]
    entries.hold(THREAD, [one("resumed")])
    assert alarms.waits[-1] <= 1  # what failed before is forgotten


async def test_what_comes_after_a_failure_waits_for_one_alarm() -> None:
    minutes, alarms = Minutes(), Alarms()
    minutes.gate, minutes.is_away = asyncio.Event(), True
    entries = HeldEntries(minutes, Queue().spawn, alarms)
    entries.hold(THREAD, [one("decided")])
    writes = asyncio.create_task(entries.write(THREAD))
    await asyncio.sleep(0)
    entries.hold(THREAD, [one("resumed")])
    minutes.gate.set()
    with pytest.raises(StoreUnavailableError):
        await writes
    assert len(alarms._set) == 1


async def test_what_could_not_be_written_is_still_held() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    minutes.is_away = True
    with pytest.raises(StoreUnavailableError):
        await entries.append(one("started"))
    minutes.is_away = False
    await entries.append(one("started again"))
    assert minutes.writes == [["decided", "started again"]]


async def test_what_could_not_be_written_stands_before_what_came_meanwhile() -> None:
    minutes = Minutes()
    minutes.gate, minutes.is_away = asyncio.Event(), True
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    writes = asyncio.create_task(entries.write(THREAD))
    await asyncio.sleep(0)
    entries.hold(THREAD, [one("resumed")])
    minutes.gate.set()
    with pytest.raises(StoreUnavailableError):
        await writes
    minutes.is_away = False
    await entries.append(one("started"))
    assert minutes.writes == [["decided", "resumed", "started"]]


async def test_at_the_stop_all_that_is_held_is_written() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    entries.hold("T1:C1:2", [one("other", "T1:C1:2")])
    minutes.is_away = True
    await entries.write_all()
    minutes.is_away = False
    await entries.write_all()
    assert minutes.writes == [["decided"], ["other"]]


async def test_what_is_never_taken_keeps_nothing_else_from_being_written_at_the_stop() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    minutes.refused = {"broken"}
    entries.hold("T1:C1:0", [one("broken", "T1:C1:0")])
    entries.hold(THREAD, [one("decided")])
    await entries.write_all()
    assert minutes.writes == [["decided"]]


async def test_of_a_hundred_starts_one_takes_the_entries_along_and_the_others_go_side_by_side() -> (
    None
):
    minutes = Minutes()
    minutes.gate = asyncio.Event()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one(f"decided {number}") for number in range(100)])
    starts = [asyncio.create_task(entries.append(one(f"started {n}"))) for n in range(100)]
    await asyncio.sleep(0)
    assert minutes.at_once == 1
    minutes.gate.set()
    await asyncio.gather(*starts)
    assert (len(minutes.writes[0]), len(minutes.writes)) == (101, 100)
    assert minutes.at_once > 50
    assert len({name for names in minutes.writes for name in names}) == 200


async def test_of_what_is_noted_twice_what_was_held_counts() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    held = replace(one("allowed"), detail={"edited_by": "UADA"})
    entries.hold(THREAD, [held])
    await entries.append_all([one("allowed"), one("started")])
    assert minutes.kept == [held, one("started")]


async def test_a_database_that_takes_nothing_is_still_read() -> None:
    minutes = Minutes()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    minutes.is_away = True
    assert await entries.of_thread(THREAD, limit=9) == []
    minutes.is_away = False
    assert await entries.of_thread(THREAD, limit=9) == [one("decided")]


async def test_a_second_start_waits_for_the_entries_that_the_first_takes_along() -> None:
    """Both rest on what is held: neither begins before that is in the audit."""
    minutes = Minutes()
    minutes.gate = asyncio.Event()
    entries = HeldEntries(minutes, Queue().spawn)
    entries.hold(THREAD, [one("decided")])
    starts = [asyncio.create_task(entries.append(one(name))) for name in ("first", "second")]
    await asyncio.sleep(0)
    minutes.gate.set()
    await asyncio.gather(*starts)
    assert minutes.writes == [["decided", "first"], ["second"]]


async def test_nothing_of_a_run_is_kept_before_what_is_held() -> None:
    minutes, store = Minutes(), MemoryCheckpointStore()
    entries = HeldEntries(minutes, Queue().spawn)
    checkpoints, running = NotedFirst(store, entries), CheckpointStatus.RUNNING

    async def notes_first(name: str) -> None:
        assert minutes.writes.pop() == [name]
        entries.hold(THREAD, [one("next")])

    entries.hold(THREAD, [one("first")])
    version = await checkpoints.save(f"{THREAD}#1", "{}", status=running, expected_version=0)
    await notes_first("first")
    await checkpoints.append(f"{THREAD}#1", "{}", base=1, index=0)
    await notes_first("next")
    version = await checkpoints.amend(f"{THREAD}#1", "{}", expected_version=version)
    await notes_first("next")
    version = await checkpoints.claim(f"{THREAD}#1", "{}", expected_version=version)
    assert minutes.writes == []  # the claim itself says what the run is told
    minutes.is_away = True
    with pytest.raises(StoreUnavailableError):
        await checkpoints.close(f"{THREAD}#1", expected_version=version)
    stored = await checkpoints.load(f"{THREAD}#1")
    assert stored is not None
    assert stored.status is running


async def test_one_write_says_what_was_decided_resumed_and_started(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear(ASK)
    writes: list[list[str]] = []
    append_all = storage.audit.append_all

    async def seen(entries: Sequence[AuditEntry]) -> None:
        writes.append([entry.action for entry in entries])
        await append_all(entries)

    storage.audit.append_all = seen  # type: ignore[method-assign]
    await office.decide(await office.the_approval())
    assert writes == [["voted", "decided", "resumed", "started"]]


async def die_after_the_claim(office: Office) -> None:
    """Approve, and die before anything of it is in the audit: the claim alone is kept."""

    async def dies(entries: Sequence[AuditEntry]) -> None:
        raise KilledError

    audit = office.entries.audit
    append_all = audit.append_all
    audit.append_all = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.decide(await office.the_approval())
    office.queue.drop()
    audit.append_all = append_all  # type: ignore[method-assign]


async def test_a_process_that_dies_after_the_claim_leaves_no_hole(storage: SqliteStorage) -> None:
    """Nobody had written yet what was decided, and that the run was told: the claim tells it."""
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear(ASK)
    await die_after_the_claim(office)
    assert office.ran == []
    other = Office(storage, [say("Paid.")], clock=office.clock, owner="other")
    other.clock.forward(minutes=1)
    await other.sweep.tick()
    await other.queue.run()
    assert len(other.ran) == 1
    noted = [entry.action for entry in await storage.audit.of_thread(THREAD_ID, limit=100)]
    for act in ("voted", "decided", "resumed", "started", "executed"):
        assert noted.count(act) == 1, act


async def test_a_turn_that_is_given_up_after_a_claim_says_what_its_run_was_told(
    storage: SqliteStorage,
) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    await die_after_the_claim(office)
    other = Office(storage, [], clock=office.clock, owner="other")
    other.clock.forward(minutes=1)
    now = other.clock()
    thread = await storage.threads.claim(
        THREAD_ID, owner="other", now_ms=now, until_ms=now + 15_000
    )
    assert thread is not None
    await other.turns.ending.give_up(thread, "It cannot go on.")
    noted = {entry.action for entry in await storage.audit.of_thread(THREAD_ID, limit=100)}
    assert {"decided", "resumed"} <= noted


@pytest.mark.parametrize("status", [Status.APPROVED, Status.REJECTED])
async def test_who_decided_is_on_record_also_when_the_turn_ends_before_its_run_is_told(
    storage: SqliteStorage, status: Status
) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)

    async def dies(*_: object, **__: object) -> int:
        raise KilledError

    claim = storage.checkpoints.claim
    storage.checkpoints.claim = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.decide(await office.the_approval(), status)
    office.queue.drop()
    storage.checkpoints.claim = claim  # type: ignore[method-assign]
    other = Office(storage, [], clock=office.clock, owner="other")
    other.clock.forward(minutes=1)
    now = other.clock()
    thread = await storage.threads.claim(
        THREAD_ID, owner="other", now_ms=now, until_ms=now + 15_000
    )
    assert thread is not None
    await other.turns.ending.give_up(thread, "It cannot go on.")
    noted = [
        (entry.action, entry.actor_id)
        for entry in await storage.audit.of_thread(THREAD_ID, limit=100)
    ]
    assert {one for one in noted if one[1] == ADA} == {("voted", ADA), ("decided", ADA)}


async def test_that_a_decision_has_lapsed_follows_what_was_decided(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    approval = await office.the_approval()

    async def dies(*_: object, **__: object) -> int:
        raise KilledError

    claim = storage.checkpoints.claim
    storage.checkpoints.claim = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.decide(approval)
    office.queue.drop()
    storage.checkpoints.claim = claim  # type: ignore[method-assign]
    other = Office(storage, [], clock=office.clock, owner="other")
    other.clock.forward(seconds=other.rules.max_age.total_seconds() + 60)
    writes: list[str] = []
    append, append_all = storage.audit.append, storage.audit.append_all

    async def seen(entry: AuditEntry) -> None:
        writes.append(entry.action)
        await append(entry)

    async def all_seen(entries: Sequence[AuditEntry]) -> None:
        writes.extend(entry.action for entry in entries)
        await append_all(entries)

    storage.audit.append, storage.audit.append_all = seen, all_seen  # type: ignore[method-assign]
    await other.threads.work(THREAD_ID)
    assert other.ran == []
    assert [act for act in writes if act in {"decided", "resumed", "lapsed"}] == [
        "decided",
        "resumed",
        "lapsed",
    ]


async def test_a_rejection_is_on_record_before_the_agent_is_asked(storage: SqliteStorage) -> None:
    office = Office(storage, [PAY, say("Then not.")])
    await office.hear(ASK)
    approval = await office.the_approval()
    kept: list[str] = []
    append = storage.checkpoints.append

    async def seen(*args: object, **more: object) -> None:
        noted = await storage.audit.of_thread(THREAD_ID, limit=100)
        kept.extend(entry.action for entry in noted)
        storage.checkpoints.append = append  # type: ignore[method-assign]
        await append(*args, **more)  # type: ignore[arg-type]

    storage.checkpoints.append = seen  # type: ignore[method-assign]
    await office.decide(approval, Status.REJECTED)
    assert {"decided", "resumed"} <= set(kept)
