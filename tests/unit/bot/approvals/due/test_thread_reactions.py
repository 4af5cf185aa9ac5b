"""The sign at the root of a thread: what waits in it, and each way in which that can end."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agents.models import call, say
from bot.approvals.due.thread_reactions import SHARED, STARTS, WAITS, sign_of
from bot.errors import DeliveryError
from bot.records.approval import Approval, Decision, Execution, ExecutionState, Status
from tests.contract.builders import an_approval
from tests.support.decided import decide
from tests.support.named import asked_at
from tests.support.stores import SqliteStores
from tests.unit.bot.office import THREAD_ID, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
PAY_BEN = call("pay", {"to": "Ben", "amount": 7}, id="c2")
ASK = "<@UBOT> pay Mia"
SLOW_DOWN = DeliveryError("reactions.add", "ratelimited", retry_after=timedelta(seconds=3))


def on_root(office: Office) -> list[str]:
    return office.roots.shown.get(THREAD_ID, [])


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (Status.PENDING, WAITS),
        (Status.APPROVED, STARTS),
        (Status.REJECTED, "rejected"),
        (Status.ANSWERED, "answered"),
        (Status.EXPIRED, "expired"),
        (Status.CANCELLED, "cancelled"),
        (Status.WITHDRAWN, "withdrawn"),
        (Status.UNDECIDABLE, "nobody"),
        (Status.SUPERSEDED, "cancelled"),
        (Status.DENIED, "denied"),
    ],
)
def test_each_status_has_its_sign(status: Status, end: str) -> None:
    assert sign_of(an_approval().changed(status=status)) == end


@pytest.mark.parametrize(
    ("state", "end"),
    [
        (ExecutionState.STARTED, "running"),
        (ExecutionState.ENDED, "ran"),
        (ExecutionState.FAILED, "failed"),
        (ExecutionState.LAPSED, "stopped"),
        (ExecutionState.DOUBT, "doubt"),
    ],
)
def test_the_run_goes_before_the_yes(state: ExecutionState, end: str) -> None:
    run = Execution(state=state, at_ms=1)
    assert sign_of(an_approval().changed(status=Status.APPROVED, execution=run)) == end


async def test_a_crash_before_the_sign_is_made_good(storage: SqliteStores) -> None:
    first = Office(storage, [PAY])
    first.roots.fault = SLOW_DOWN
    approval = await first.asked(ASK)
    assert (approval.sign, on_root(first)) == (WAITS, [])
    assert approval.due_ms == first.clock() + 5_000
    second = Office(storage, [], roots=first.roots, clock=first.clock)
    second.clock.forward(seconds=5)
    await second.attendance.attend(approval.approval_id)
    assert on_root(second) == [WAITS]
    assert first.roots.done == ["+waits looked"]


async def test_a_sign_that_hangs_holds_nothing_up(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    office = Office(storage, [PAY, say("Paid.")])
    monkeypatch.setattr("bot.approvals.due.thread_reactions.SIGN_PATIENCE", timedelta(0))

    async def hang(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(office.roots, "put", hang)
    await office.hear(ASK)
    await office.decide(await office.the_approval())
    assert office.shown()[-1] == "Paid."
    assert "will retry: no answer in time" in caplog.text


async def test_what_was_asked_while_another_process_took_the_sign_off_puts_it_on_again(
    storage: SqliteStores,
) -> None:
    first = Office(storage, [PAY])
    approval = await first.asked(ASK)
    second = Office(storage, [], roots=first.roots, clock=first.clock)

    async def ask() -> None:
        await storage.approvals.insert(a_waiting(approval))

    second.roots.meanwhile = ask
    await decide_only(second, approval)
    assert on_root(second) == [WAITS]
    assert second.roots.done[-3:] == ["-waits", "+waits again", "-rejected"]


async def test_what_is_asked_where_another_process_was_at_work_is_shown_twice(
    storage: SqliteStores,
) -> None:
    first = Office(storage, [PAY])
    approval = await first.asked(ASK)
    second = Office(storage, [PAY_BEN], roots=first.roots, clock=first.clock)
    await decide_only(second, approval)
    await second.threads.work(THREAD_ID)  # asks anew, while the first may be at the root
    await second.queue.run()
    (asked,) = await second.open_approvals()
    assert (asked.sign, asked.due_ms) == (SHARED, second.clock() + 5_000)
    first.roots.shown[THREAD_ID].remove(WAITS)  # late, by the first
    second.clock.forward(seconds=5)
    await second.attendance.attend(asked.approval_id)
    assert WAITS in on_root(second)
    assert (await storage.approvals.get(asked.approval_id)).sign == WAITS


async def decide_only(office: Office, approval: Approval) -> None:
    """Reject, draw, and leave the thread to itself."""
    decision = Decision(
        status=Status.REJECTED, by="UADA", at_ms=office.clock(), digest=approval.digest
    )
    await decide(office.storage.approvals, approval.approval_id, decision, digest=approval.digest)
    await office.storage.threads.wake(THREAD_ID, now_ms=office.clock())
    await office.attendance.attend(approval.approval_id, announced=approval)


def a_waiting(approval: Approval) -> Approval:
    """Another request of the same thread."""
    return asked_at(
        approval, approval_id="apr_other", interrupt_id="other", position=1, due_ms=None
    )


async def test_an_approval_without_a_sign_is_given_none(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("No.")])
    approval = await office.asked(ASK)
    plain = a_waiting(approval).changed(sign="", leased_until_ms=0, due_ms=office.clock())
    await storage.approvals.insert(plain)
    office.roots.done.clear()
    await office.attendance.attend(plain.approval_id)
    assert office.roots.done == []
