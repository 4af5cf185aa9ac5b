"""What a witness puts on record of calls, as the runtime tells of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from agents import ToolOutcome
from agents.core.observers import CallFinished, WorkInDoubt, WorkStarted
from agents.models import call
from bot.approvals.disclosure import Surface
from bot.records.approval import Approval, Decision, Status
from bot.threads.runs.executions import ExecutionRecorder
from storage.documents import update_or_none
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, THREAD_ID, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"


@dataclass
class Marks:
    """An approval store that notes each state which is put on record."""

    store: Any
    states: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    async def replace(self, document: Approval, *, based_on: Approval, **more: Any) -> object:
        if document.run is not None and document.run != based_on.run:
            self.states.append(document.run.state)
        return await self.store.replace(document, based_on=based_on, **more)


async def marked(office: Office, quick: timedelta) -> tuple[ExecutionRecorder, Marks, str]:
    """A witness of a call that people have let run; with its address."""
    await office.hear(ASK)
    approval = await office.the_approval()
    decided = await office.approvals.decide(
        approval,
        Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=approval.digest),
        surface=Surface.CARD,
    )
    marks: Any = Marks(office.storage.approvals)
    witness = ExecutionRecorder(
        marks, office.storage.audit, office.clock, lambda _: None, quick=quick
    )
    await witness.watch(approval.checkpoint_id, known=[decided])
    return witness, marks, approval.address


TURN = f"{THREAD_ID}#1"


def started(at: str, *, is_news: bool = True) -> WorkStarted:
    return WorkStarted(checkpoint_id=TURN, address=at, is_news=is_news)


def finished(at: str, *, outcome: ToolOutcome = ToolOutcome.RAN) -> CallFinished:
    return CallFinished(checkpoint_id=TURN, address=at, outcome=outcome, text="paid")


async def test_of_a_quick_call_only_the_end_is_told(storage: SqliteStores) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(seconds=60))
    (approval,) = witness.watched(TURN)
    await witness.noted(started(at))
    assert marks.states == []
    await witness.noted(finished(at))
    assert marks.states == ["ran"]
    (newest,) = witness.watched(approval.checkpoint_id)
    assert newest == await storage.approvals.get(approval.approval_id)


async def test_of_a_slow_call_it_is_told_that_it_runs(storage: SqliteStores) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(milliseconds=1))
    await witness.noted(started(at))
    async with asyncio.timeout(60):
        await asyncio.wait(list(witness._turns[TURN].starting.values()))
    await witness.noted(finished(at))
    assert marks.states == ["running", "ran"]


async def test_a_start_that_a_dead_process_left_is_told_at_once(storage: SqliteStores) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(seconds=60))
    await witness.noted(started(at, is_news=False))
    assert marks.states == ["running"]


async def test_nothing_is_told_any_more_of_a_turn_that_is_forgotten(
    storage: SqliteStores,
) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(milliseconds=1))
    await witness.noted(started(at))
    (task,) = witness._turns[TURN].starting.values()
    witness.forget(TURN)
    await asyncio.wait([task])
    assert marks.states == []


async def test_a_database_that_is_away_keeps_no_call_from_running(storage: SqliteStores) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(milliseconds=1))

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("away")

    store, marks.store = marks.store, SimpleNamespace(known=marks.store.known, replace=away)
    await witness.noted(started(at))
    await asyncio.wait(list(witness._turns[TURN].starting.values()))
    marks.store = store
    await witness.noted(finished(at))
    assert marks.states == ["running", "ran"]


@pytest.mark.parametrize("outcome", [ToolOutcome.RAN, ToolOutcome.FAILED])
async def test_a_quick_call_that_people_let_run_again_shows_how_it_ended(
    storage: SqliteStores, outcome: ToolOutcome
) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(seconds=60))
    await witness.noted(WorkInDoubt(checkpoint_id=TURN, address=at))
    await witness.noted(started(at))
    await witness.noted(finished(at, outcome=outcome))
    assert marks.states == ["doubt", str(outcome)]


async def test_a_call_that_is_stopped_before_it_runs_again_may_still_have_run(
    storage: SqliteStores,
) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(seconds=60))
    await witness.noted(WorkInDoubt(checkpoint_id=TURN, address=at))
    await witness.noted(finished(at, outcome=ToolOutcome.REFUSED))
    assert marks.states == ["doubt"]


async def test_an_outcome_is_stored_although_others_write_for_long(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness, marks, at = await marked(Office(storage, [PAY]), timedelta(seconds=60))
    tries: list[str] = []

    async def patient(*arguments: Any, **options: Any) -> Approval | None:
        tries.append("")
        return None if len(tries) < 3 else await update_or_none(*arguments, **options)

    monkeypatch.setattr("bot.threads.runs.executions.update_or_none", patient)
    await witness.noted(started(at))
    await witness.noted(finished(at))
    assert marks.states == ["ran"]
