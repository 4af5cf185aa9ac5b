"""11.7, 11.8: start numbers and freezes on each database, by one process and by several."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bot.errors import AlreadyConfirmedError, UnknownFreezeError
from bot.freezes.alerts import FreezeAlerts
from bot.freezes.rights import ADMINS_ONLY
from bot.freezes.rules import CallScope
from bot.freezes.running import running_in
from bot.freezes.service import Freezes
from bot.freezes.starts import FreezeFile, Frozen, StartSwitch
from bot.records.approval import Execution, ExecutionState, Kind, Status
from bot.records.switch import SWITCH_ID, FreezeScope, ScopeKind, SwitchRecord
from bot.stores import Stores
from storage.errors import RecordFormatError, RecordNotFoundError, StoreUnavailableError
from tests.contract.builders import an_approval
from tests.contract.conftest import TIMEOUT
from tests.contract.spoiling import spoil
from tests.cost.counting import Count, counting, watching
from tests.support.fakes import FakeClock, FakeNotices
from tests.support.mongo import MongoServer
from tests.support.stores import MongoStores, SqliteStores

ADA, BEN = "U0ADA", "U0BEN"
SEARCH = CallScope(agents=frozenset({"clerk"}), tool="search", channel="C0OPS")
DEPLOY = CallScope(
    agents=frozenset({"clerk", "deployer"}), tool="deploy", tags=frozenset({"change"})
)
ALL, SQL = FreezeScope(), FreezeScope(kind=ScopeKind.TOOL, name="sql")
CHANGE = FreezeScope(kind=ScopeKind.TAG, name="change")


@dataclass
class Process:
    """One process at the database."""

    storage: Stores
    file: Path | None = None
    freezes: Freezes = field(init=False)
    starts: StartSwitch = field(init=False)

    def __post_init__(self) -> None:
        clock = FakeClock()
        self.freezes = Freezes(
            switches=self.storage.switches, audit=self.storage.audit, clock=clock, team="T1"
        )
        file = FreezeFile(path=self.file, clock=clock)
        self.starts = StartSwitch(self.freezes, file, owner="host:1")

    async def acts(self) -> list[tuple[str, Any]]:
        entries = await self.storage.audit.of_thread("", limit=99)
        return [(entry.action, entry.detail["freeze"]) for entry in entries]


@pytest.fixture
def process(storage: Stores) -> Process:
    return Process(storage)


async def test_numbers_rise_by_one(process: Process) -> None:
    assert [await process.starts.take_number(SEARCH) for _ in range(3)] == [1, 2, 3]
    assert await process.starts.take_number(DEPLOY, count=4) == 4
    assert await process.starts.take_number(SEARCH) == 8


async def test_a_freeze_stops_its_scope_and_nothing_else(process: Process) -> None:
    await process.freezes.freeze(CHANGE, by=ADA, why="wild")
    answer = await process.starts.take_number(DEPLOY)
    assert isinstance(answer, Frozen)
    assert (answer.freeze.id, answer.freeze.by, answer.freeze.why) == ("f1", ADA, "wild")
    assert await process.starts.take_number(SEARCH) == 1


async def test_a_lifted_freeze_stops_nothing(process: Process) -> None:
    await process.freezes.freeze(ALL, by=ADA, why="wild")
    lifted = await process.freezes.lift("f1", by=BEN, why="mended")
    assert (lifted.freeze.id, lifted.missing, lifted.rest) == ("f1", 0, ())
    assert await process.starts.take_number(SEARCH) == 1


async def test_one_scope_is_frozen_once(process: Process) -> None:
    first = await process.freezes.freeze(ALL, by=ADA, why="wild")
    again = await process.freezes.freeze(ALL, by=BEN, why="wild, too")
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.freeze.id, again.freeze.by) == ("f1", ADA)
    assert [freeze.id for freeze in await process.freezes.in_force()] == ["f1"]


async def test_two_people_lift(process: Process) -> None:
    await process.freezes.freeze(ALL, by=ADA, why="wild")
    assert (await process.freezes.lift("f1", by=ADA, why="mended", count=2)).missing == 1
    with pytest.raises(AlreadyConfirmedError):
        await process.freezes.lift("f1", by=ADA, why="mended", count=2)
    assert (await process.freezes.lift("", by=BEN, why="mended", count=2)).missing == 0
    with pytest.raises(UnknownFreezeError):
        await process.freezes.lift("f1", by=BEN, why="mended", count=2)


async def test_i12_each_act_is_in_the_audit_once(process: Process) -> None:
    await process.freezes.freeze(ALL, by=ADA, why="wild")
    await process.freezes.lift("f1", by=ADA, why="mended", count=2)
    await process.freezes.lift("f1", by=BEN, why="mended", count=2)
    assert await process.acts() == [("frozen", "f1"), ("unfrozen", "f1"), ("unfrozen", "f1")]
    assert (await process.freezes.read()).acts == ()


class DeadAudit:
    """The process dies before it writes to the audit."""

    async def append(self, *_: object) -> None:
        raise StoreUnavailableError("dead")


async def test_i12_the_next_start_records_what_a_dead_process_did_not(process: Process) -> None:
    dead: Any = DeadAudit()
    await replace(process.freezes, audit=dead).freeze(ALL, by=BEN, why="wild")
    assert await process.acts() == []
    for _ in range(2):  # the second one is answered after the first one has recorded
        assert isinstance(await process.starts.take_number(SEARCH), Frozen)
    assert await process.acts() == [("frozen", "f1")]
    assert (await process.freezes.read()).acts == ()


async def test_nothing_starts_if_the_switch_is_unreadable(process: Process) -> None:
    await process.freezes.freeze(ALL, by=ADA, why="wild")
    await spoil(process.storage, "switches", SWITCH_ID, freezes="damaged")
    with pytest.raises(RecordFormatError):
        await process.starts.take_number(SEARCH)
    with pytest.raises(RecordFormatError):
        await process.starts.covering(SEARCH)


async def test_nothing_starts_if_somebody_deletes_the_switch(process: Process) -> None:
    await process.starts.take_number(SEARCH)
    await process.storage.switches.delete({"id": SWITCH_ID}, limit=1)
    for _ in range(2):
        with pytest.raises(RecordNotFoundError):
            await process.starts.take_number(SEARCH)
    with pytest.raises(RecordNotFoundError):
        await process.starts.covering(SEARCH)


async def test_a_look_takes_no_number(process: Process) -> None:
    assert await process.starts.covering(SEARCH) is None
    await process.freezes.freeze(ALL, by=ADA, why="wild")
    assert await process.starts.covering(SEARCH, turns=True) is None
    running = await process.starts.covering(SEARCH)
    assert running is not None
    assert running.freeze.id == "f1"
    await process.freezes.freeze(ALL, by=BEN, why="wild", turns=True)
    assert await process.starts.covering(SEARCH, turns=True) is not None


async def test_a_start_that_nobody_waits_for_harms_no_other(process: Process) -> None:
    gone = asyncio.create_task(process.starts.take_number(SEARCH))
    kept = asyncio.create_task(process.starts.take_number(SEARCH))
    await asyncio.sleep(0)
    gone.cancel()
    assert await kept in {1, 2}


async def pause_after(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch, *, seconds: float, fails: bool = False
) -> float:
    """How long a process lets others write after a write of its own that took so many seconds."""
    loop = asyncio.get_running_loop()
    now, passed, paused = loop.time, [0.0], loop.create_future()
    monkeypatch.setattr(loop, "time", lambda: now() + passed[0])

    async def pause(seconds: float) -> None:
        paused.set_result(seconds)

    class Slow(Freezes):
        async def change(self, *args: Any, **options: Any) -> SwitchRecord | None:
            passed[0] += seconds
            if fails:
                raise StoreUnavailableError("away")
            return await super().change(*args, **options)

    clock = FakeClock()
    slow = Slow(switches=storage.switches, audit=storage.audit, clock=clock, team="T1")
    file = FreezeFile(path=None, clock=clock)
    with suppress(StoreUnavailableError):
        await StartSwitch(slow, file, owner="host:1", sleep=pause).take_number(SEARCH)
    return float(await paused)


async def test_a_process_leaves_others_as_much_time_as_its_own_write_takes(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a slow database lets only the process write that has just written."""
    assert await pause_after(storage, monkeypatch, seconds=5) >= 5


async def test_after_a_write_that_failed_at_its_limit_the_next_one_begins_at_once(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await pause_after(storage, monkeypatch, seconds=5, fails=True) < 1


# ---- cost ----------------------------------------------------------------------------------------


@pytest.fixture
async def counted(new_storage: Callable[[], Stores]) -> AsyncIterator[Process]:
    with watching():
        storage = new_storage()
        await storage.open()
        yield Process(storage)
        await storage.close()


def of_switch(count: Count) -> int:
    return sum(command.target == "switches" for command in count.commands)


async def test_an_undisturbed_start_costs_one_command(counted: Process) -> None:
    await counted.starts.take_number(SEARCH)
    with counting() as count:
        await counted.starts.take_number(SEARCH)
    assert of_switch(count) == 1


async def test_a_hundred_starts_at_once_cost_a_few_commands(counted: Process) -> None:
    await counted.starts.take_number(SEARCH)
    with counting() as count:
        numbers = await asyncio.gather(*(counted.starts.take_number(SEARCH) for _ in range(100)))
    assert sorted(numbers, key=str) == sorted(range(2, 102), key=str)
    assert of_switch(count) <= 3


# ---- several processes ---------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=pytest.mark.mongo)])
async def two(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Process]]:
    """Two processes at one database: both bots, or a bot and a command."""
    storages: list[Stores]
    if request.param == "mongo":
        server: MongoServer = request.getfixturevalue("mongo_server")
        name = server.new_database()
        storages = [MongoStores(server.uri, database=name, timeout=TIMEOUT) for _ in range(2)]
        await storages[1].open()
    else:
        storages = [SqliteStores(tmp_path / "data") for _ in range(2)]
    await storages[0].open()
    await storages[1].open_beside()
    yield [Process(storage) for storage in storages]
    for storage in reversed(storages):
        await storage.close()


async def test_each_number_is_given_out_once(two: list[Process]) -> None:
    numbers = await asyncio.gather(*(two[n % 2].starts.take_number(SEARCH) for n in range(60)))
    assert sorted(numbers, key=str) == sorted(range(1, 61), key=str)


async def test_11_7_no_call_gets_a_number_after_a_confirmed_freeze(two: list[Process]) -> None:
    """Both processes start as fast as they can; a freeze comes in between."""
    is_confirmed, late = asyncio.Event(), 0

    async def start_all(process: Process) -> None:
        nonlocal late
        while True:
            was_confirmed = is_confirmed.is_set()
            answers = await asyncio.gather(*(process.starts.take_number(SEARCH) for _ in range(5)))
            late += was_confirmed and any(isinstance(answer, int) for answer in answers)
            if was_confirmed:
                return

    async def freeze() -> None:
        for number in range(20):
            scope = FreezeScope(kind=ScopeKind.TOOL, name=f"other{number}")
            await two[number % 2].freezes.freeze(scope, by=ADA, why="wild")
        await two[0].freezes.freeze(ALL, by=ADA, why="wild")
        is_confirmed.set()

    await asyncio.gather(*map(start_all, two), freeze())
    assert late == 0


async def test_a_freeze_of_another_process_holds_here(two: list[Process]) -> None:
    assert await two[0].starts.take_number(SEARCH) == 1
    await two[1].freezes.freeze(ALL, by=ADA, why="wild")
    assert isinstance(await two[0].starts.take_number(SEARCH), Frozen)
    await two[1].freezes.lift("f1", by=ADA, why="mended")
    assert await two[0].starts.take_number(SEARCH) == 2


# ---- the file ------------------------------------------------------------------------------------


async def test_nothing_starts_while_the_file_exists(storage: Stores, tmp_path: Path) -> None:
    process = Process(storage, tmp_path / "stop")
    assert await process.starts.take_number(SEARCH) == 1
    (tmp_path / "stop").touch()
    for _ in range(2):
        answer = await process.starts.take_number(SEARCH)
        assert isinstance(answer, Frozen)
        assert (answer.freeze.by, answer.freeze.turns) == ("file", True)
    assert await process.starts.covering(SEARCH, turns=True) is not None
    assert await process.acts() == [("frozen", "file")]
    (tmp_path / "stop").unlink()
    assert await process.starts.take_number(SEARCH) == 2


async def test_11_17_calls_that_run_or_are_in_doubt_are_found(storage: Stores) -> None:
    runs = an_approval(
        status=Status.APPROVED, execution=Execution(state=ExecutionState.STARTED, number=1)
    )
    doubt = an_approval(approval_id=f"apr_{'1' * 32}", kind=Kind.DOUBT)
    waits = an_approval(approval_id=f"apr_{'2' * 32}")
    ran = runs.changed(approval_id=f"apr_{'3' * 32}", open=False)
    for approval in (runs, doubt, waits, ran):
        await storage.approvals.insert(approval)
    running = await running_in(storage.approvals, ALL, {})
    assert {approval.approval_id for approval in running} == {runs.approval_id, doubt.approval_id}
    assert await running_in(storage.approvals, SQL, {}) == []


async def test_11_23_two_processes_post_one_alert(two: list[Process]) -> None:
    posted, works = FakeNotices(), list[Coroutine[Any, Any, None]]()
    rights = replace(ADMINS_ONLY, alert="C0ALERT")
    alerts = [
        FreezeAlerts(
            freezes=process.freezes, notices=posted, rights=lambda: rights, spawn=works.append
        )
        for process in two
    ]
    await two[0].freezes.freeze(ALL, by=ADA, why="wild")
    await asyncio.gather(*(each.post_due() for each in alerts))
    assert len(works) == 2
    await asyncio.gather(*works)
    assert [alert.freeze.id for alert in posted.freezes] == ["f1"]
    works.clear()
    await two[1].freezes.lift("f1", by=BEN, why="mended")
    await asyncio.gather(*(each.post_due() for each in alerts))
    await asyncio.gather(*works)
    assert [alert.lifted is None for alert in posted.freezes] == [True, False]
    assert (await two[0].freezes.read()).alerts == ()
