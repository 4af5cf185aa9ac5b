"""The order of a start, and what is put on record of a call, as the runtime tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents import ToolOutcome
from agents.core.errors import CheckpointConflictError
from agents.core.observers import CallFinished, WorkInDoubt, WorkStarted
from agents.core.scope import StartingCall
from agents.models import call
from bot.approvals.disclosure import Surface
from bot.records.approval import Approval, Decision, ExecutionState, Status
from bot.records.switch import FreezeScope
from bot.records.thread import Thread
from bot.threads.runs.call_records import CallRecords
from bot.threads.runs.calls import Calls
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, THREAD_ID, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
TURN = f"{THREAD_ID}#1"
QUICK = timedelta(seconds=60)


class Payment:
    """A call that people have let run, and what its process and its card see of it."""

    def __init__(self, office: Office, approval: Approval) -> None:
        self.office, self.approval, self.storage = office, approval, office.storage
        self.drawn: list[str] = []
        self.records = CallRecords(
            storage=office.storage, clock=office.clock, redraw=self.drawn.append, quick=QUICK
        )
        self.calls = replace(office.calls, records=self.records, redraw=self.drawn.append)

    @classmethod
    async def approved(cls, storage: SqliteStores) -> Payment:
        office = Office(storage, [PAY])
        approval = await office.asked("<@UBOT> pay Mia")
        decided = await office.approvals.decide(
            approval,
            Decision(status=Status.APPROVED, by=ADA, at_ms=office.clock(), digest=approval.digest),
            surface=Surface.CARD,
        )
        payment = cls(office, decided)
        await payment.watch(fence=1)
        return payment

    async def watch(self, *, fence: int) -> Thread:
        """Claim the thread, and read what it has decided."""
        thread = await self.storage.threads.get(THREAD_ID)
        claimed = thread.changed(fence=fence)
        await self.records.watch(claimed)
        return claimed

    async def taken_over(self) -> Calls:
        """Let a second process have the thread; the calls of the first one, which stood still."""
        first = self.calls
        self.records = replace(self.records, _turns={})
        self.calls = replace(first, owner="second", records=self.records)
        await self.watch(fence=2)
        return first

    async def start(self, *, again: Approval | None = None, **more: Any) -> object:
        return await self.calls.start(
            StartingCall(
                checkpoint_id=TURN,
                address=self.approval.address,
                tool="pay",
                arguments={"to": "Mia", "amount": 5},
                decisions=((again or self.approval).interrupt_id,),
                **more,
            )
        )

    async def end(self, outcome: ToolOutcome = ToolOutcome.RAN) -> None:
        at = self.approval.address
        notice = CallFinished(checkpoint_id=TURN, address=at, outcome=outcome, text="paid")
        await self.records.noted(notice)

    async def doubt(self) -> None:
        at = self.approval.address
        await self.records.noted(WorkInDoubt(checkpoint_id=TURN, address=at))

    async def state(self) -> ExecutionState:
        return (await self.storage.approvals.get(self.approval.approval_id)).execution.state

    async def started(self) -> int:
        entries = await self.storage.audit.of_thread(THREAD_ID, limit=99)
        return [entry.action for entry in entries].count("started")


def _failing(calls: Calls, step: str) -> Callable[[], None]:
    """Let the database be away from a step of the start on, until it is called."""
    store: Any = calls.storage.approvals if step == "approval" else calls.storage.audit
    name = "replace" if step == "approval" else "append"
    real: Callable[..., Awaitable[Any]] = getattr(store, name)

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("away")

    setattr(store, name, away)
    return lambda: setattr(store, name, real)


@pytest.mark.parametrize("step", ["approval", "audit"])
async def test_without_a_record_nothing_starts_and_the_decision_stays(
    storage: SqliteStores, step: str
) -> None:
    payment = await Payment.approved(storage)
    back = _failing(payment.calls, step)
    with pytest.raises(StoreUnavailableError):
        await payment.start()
    back()
    assert (await payment.state(), await payment.started()) == (ExecutionState.READY, 0)
    assert isinstance(await payment.start(), dict)
    assert await payment.started() == 1


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_process_that_stood_still_starts_no_call_that_another_one_has_started(
    storage: SqliteStores, is_late: bool
) -> None:
    payment = await Payment.approved(storage)
    first = await payment.taken_over()
    assert isinstance(await payment.start(may_park=True), dict)
    stored = await storage.approvals.get(payment.approval.approval_id)
    freezes = payment.office.freezes
    await freezes.freeze(FreezeScope(), by=ADA, why="Incident.")
    if is_late:  # the decision has become too old, and would lapse
        payment.office.clock.forward(hours=3)
    payment.calls = first
    with pytest.raises(CheckpointConflictError):
        await payment.start(may_park=True)
    assert await storage.approvals.get(stored.approval_id) == stored
    entries = [entry.action for entry in await storage.audit.of_thread(THREAD_ID, limit=99)]
    assert not {"parked", "lapsed"} & {*entries}


async def test_a_lost_lease_does_not_end_the_records_of_a_newer_one(storage: SqliteStores) -> None:
    payment = await Payment.approved(storage)
    old = await payment.watch(fence=1)
    await payment.watch(fence=2)
    await payment.start()
    payment.records.forget(old)
    await payment.end()
    assert await payment.state() is ExecutionState.ENDED


async def test_a_start_that_a_dead_process_left_is_told_at_once(storage: SqliteStores) -> None:
    payment = await Payment.approved(storage)
    await payment.records.noted(
        WorkStarted(
            checkpoint_id=TURN,
            address=payment.approval.address,
            is_news=False,
            frozen={"start_number": 7},
        )
    )
    [newest] = payment.records.watched(TURN)
    assert (newest.execution.state, newest.execution.number) == (ExecutionState.STARTED, 7)
    assert payment.drawn == [newest.approval_id]
