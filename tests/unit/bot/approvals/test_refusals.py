"""Cards and texts that Slack does not take: tried again with patience, or marked and left."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from agents.models import call, say
from bot.approvals.due import worker as visits_module
from bot.clock import backoff, milliseconds
from bot.errors import DeliveryError
from bot.records.approval import Approval, ApprovalMessage, Status
from storage.errors import RecordConflictError
from tests.support.decided import failing_at
from tests.support.stores import SqliteStores
from tests.unit.bot.office import RULES, THREAD_ID, KilledError, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
ARCHIVED = DeliveryError("chat.postMessage", "is_archived", took_no_effect=True)


async def later(office: Office, *, seconds: float) -> int:
    """Time passes; return how much work the sweep found."""
    office.clock.forward(seconds=seconds)
    count = await office.sweep.tick()
    await office.queue.run()
    return count


def undeliverable(office: Office, *what: str, error: DeliveryError = ARCHIVED) -> None:
    for name in what:
        office.notifier.failing.add(name)
        office.notifier.faults[name] = error


async def test_a_card_that_slack_will_not_take_is_marked_and_left(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    undeliverable(office, "card")
    approval = await office.asked(ASK)
    assert approval.card.error == "is_archived"
    assert approval.status is Status.PENDING
    assert approval.due_ms == approval.created_ms + 15 * 60_000  # the first reminder
    assert await later(office, seconds=60) == 0
    records = [record for record in caplog.records if "card_undeliverable" in str(vars(record))]
    assert len(records) == 1
    entries = await storage.audit.of_thread(THREAD_ID, limit=99)
    (entry,) = [entry for entry in entries if entry.action == "undeliverable"]
    assert entry.detail["why"] == "is_archived"

    await office.decide(approval)  # from elsewhere
    assert len(office.ran) == 1
    assert office.shown()[-1] == "Paid."
    settled = await storage.approvals.get(approval.approval_id)
    assert (settled.due_ms, settled.card.error) == (None, "is_archived")


async def test_the_next_reminder_tries_the_card_again(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    undeliverable(office, "card", error=DeliveryError("chat.postMessage", "not_in_channel"))
    approval = await office.asked(ASK)
    assert approval.card.error == "not_in_channel"
    office.notifier.failing.clear()  # somebody has invited the bot again
    assert await later(office, seconds=15 * 60) == 1
    approval = await office.the_approval()
    assert approval.card.error == ""
    assert office.notifier.posts == [approval.approval_id]


async def test_a_text_that_slack_will_not_take_does_not_stop_the_agent(
    storage: SqliteStores,
) -> None:
    looks = call("look", {"what": "payments"}, id="c1")
    office = Office(storage, [looks, say("All fine."), say("Yes?")])
    undeliverable(office, "say")
    await office.hear(ASK)
    assert office.ran == [("look", "payments")]
    thread = await storage.threads.get(THREAD_ID)
    assert (thread.turn_open, thread.due_ms, thread.attempts) == (False, None, 0)
    assert await storage.posts.unfinished(THREAD_ID) == []
    entries = await storage.audit.of_thread(THREAD_ID, limit=99)
    assert [e.detail["why"] for e in entries if e.action == "undeliverable"] == ["is_archived"]
    assert await later(office, seconds=3600) == 0
    office.notifier.failing.clear()
    await office.hear("<@UBOT> hello?", ts="1800000000.000002")
    assert office.shown() == ["Yes?"]


async def test_faults_that_may_pass_are_tried_less_and_less_often(storage: SqliteStores) -> None:
    rules = replace(RULES, remind_after=timedelta(hours=7))  # a reminder is never delayed
    office = Office(storage, [PAY], rules=rules)
    office.notifier.failing.add("card")
    await office.hear(ASK)
    waits: list[int] = []
    for _ in range(8):
        approval = await office.the_approval()
        assert approval.due_ms is not None
        waits.append(approval.due_ms - office.clock())
        await later(office, seconds=waits[-1] / 1000)
    assert waits[:6] == sorted(waits[:6])
    assert 8_000 <= waits[0] <= 10_000
    assert 300_000 <= waits[-1] <= 375_000
    office.notifier.failing.clear()
    await later(office, seconds=400)
    approval = await office.the_approval()
    assert (approval.attempts, approval.card.revision) == (0, 1)


async def test_a_call_that_waits_its_turn_has_not_failed(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    soon = DeliveryError("chat.postMessage", "x", retry_after=timedelta(seconds=3))
    undeliverable(office, "card", error=soon)
    approval = await office.asked(ASK)
    assert approval.due_ms == office.clock() + 3_000
    assert approval.attempts == 0


async def test_a_reminder_that_waits_its_turn_is_not_lost(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    soon = DeliveryError("chat.postMessage", "x", retry_after=timedelta(seconds=3))
    undeliverable(office, "wait to remind", error=soon)
    await later(office, seconds=15 * 60)
    assert office.notifier.reminders == []
    office.notifier.failing.clear()
    await later(office, seconds=3)
    assert len(office.notifier.reminders) == 1


async def test_a_reminder_that_slack_never_takes_waits_for_the_next(storage: SqliteStores) -> None:
    office = Office(storage, [PAY])
    await office.hear(ASK)
    undeliverable(office, "remind")
    await later(office, seconds=15 * 60)
    approval = await office.the_approval()
    assert (approval.escalation.reminders, approval.reminders) == (1, ())
    assert approval.due_ms == approval.created_ms + 45 * 60_000


# ---- a card that somebody deleted ----------------------------------------------------------------


async def deleted(storage: SqliteStores) -> tuple[Office, Approval]:
    """A decided approval whose card is gone, and not drawn again yet."""
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    office.notifier.failing.add("update")
    await office.decide(approval)
    office.notifier.failing.clear()
    office.notifier.deleted.add(approval.approval_id)
    return office, approval


async def test_a_crash_while_it_is_posted_again_posts_once(storage: SqliteStores) -> None:
    office, approval = await deleted(storage)
    post_card = office.notifier.post_card

    async def dies(*args: object, **more: object) -> ApprovalMessage:
        await post_card(*args, **more)  # type: ignore[arg-type]
        raise KilledError

    office.notifier.post_card = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await later(office, seconds=60)
    office.queue.drop()
    stored = await storage.approvals.get(approval.approval_id)
    assert stored.thread_card in stored.messages
    assert stored.thread_card.ts == ""
    office.notifier.post_card = post_card  # type: ignore[method-assign]
    await later(office, seconds=60)
    assert office.notifier.posts == [approval.approval_id] * 2


async def test_a_lease_lost_meanwhile_posts_nothing(storage: SqliteStores) -> None:
    office, approval = await deleted(storage)
    failing_at(
        storage.approvals,
        lambda new, old: new.thread_card.ts != old.thread_card.ts,
        RecordConflictError("approval", approval.key),
    )
    await later(office, seconds=60)
    assert office.notifier.posts == [approval.approval_id]


# ---- how long an attendance may take -------------------------------------------------------------


async def test_an_attendance_is_timed_from_its_claim(
    storage: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(storage, [PAY])
    approval = await office.asked(ASK)
    monkeypatch.setattr(visits_module, "ATTENDANCE", timedelta(milliseconds=30))

    async def slow(*_: object, **__: object) -> None:
        await asyncio.Event().wait()  # long before the card is drawn

    wake = office.storage.threads.wake
    storage.threads.wake = slow  # type: ignore[method-assign]
    office.clock.forward(hours=9)  # it expires, and its thread is woken before the card is drawn
    async with asyncio.timeout(60):
        await office.approvals.attendance.attend(approval.approval_id)
    stored = await storage.approvals.get(approval.approval_id)
    assert stored.leased_until_ms == 0
    assert stored.due_ms is not None
    assert stored.attempts >= 1
    storage.threads.wake = wake  # type: ignore[method-assign]


def test_backoff_spreads_and_has_a_limit() -> None:
    first, most = timedelta(seconds=8), timedelta(minutes=5)
    waits = [backoff(4, first=first, most=most, key=f"apr_{number}") for number in range(200)]
    assert len(set(waits)) > 100
    assert all(128_000 <= wait <= 160_000 for wait in waits)
    assert backoff(10_000, first=first, most=most, key="x") <= milliseconds(most) * 5 // 4
