"""Reminders and messages to backup people: one at a time, and none that is no longer so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from agents.models import call, say
from bot.approvals.changes import edited, redrawn
from bot.approvals.model import UNKNOWN_TS, Approval, Status
from bot.errors import DeliveryError
from tests.support.decided import failing_at, write
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, RULES, KilledError, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
LADDER = replace(RULES, escalate_after=timedelta(hours=1), escalate_to=(BEN,))
LINK = "https://acme.slack.com/archives/C1/p1800000000000001?thread_ts=1.0&cid=C1"
GONE = DeliveryError("chat.update", "is_archived", took_no_effect=True)


async def asked(storage: SqliteStores, **changes: object) -> tuple[Office, Approval]:
    office = Office(storage, [PAY, say("It is over.")], **{"rules": LADDER, **changes})  # type: ignore[arg-type]
    await office.hear(ASK)
    return office, await office.the_approval()


async def later(office: Office, **forward: float) -> None:
    office.clock.forward(**forward)
    await office.sweep.tick()
    await office.queue.run()


def kinds(office: Office) -> list[tuple[str, str]]:
    """What stands beside the card: kind, and whether it asks, or how it ended."""
    return [(kind, state) for kind, _, state in office.notifier.nudges.values()]


async def test_the_next_reminder_takes_the_place_of_the_one_before(storage: SqliteStores) -> None:
    office, approval = await asked(storage)
    await later(office, minutes=15)
    first = (await office.the_approval()).reminder_ts
    await later(office, minutes=30)
    second = (await office.the_approval()).reminder_ts
    assert office.notifier.reminders == [approval.approval_id] * 2
    assert [*office.notifier.nudges] == [second]
    assert first != second


async def test_each_reminder_comes_after_twice_as_long_as_the_one_before(
    storage: SqliteStores,
) -> None:
    office, approval = await asked(storage, rules=replace(RULES, escalate_after=None))
    for number, minutes in enumerate((15, 30, 60), start=1):
        await later(office, minutes=minutes - 1)
        assert len(office.notifier.reminders) == number - 1
        await later(office, minutes=1)
        assert office.notifier.reminders == [approval.approval_id] * number


async def test_after_a_decision_no_message_asks_any_more(storage: SqliteStores) -> None:
    office, approval = await asked(storage)
    await later(office, minutes=15)
    await later(office, hours=1)
    assert kinds(office) == [("escalation", "asks"), ("reminder", "asks")]
    await office.decide(approval, by=ADA)
    assert kinds(office) == []
    done = await storage.approvals.get(approval.approval_id)
    assert (done.reminder_ts, done.escalation_ts, done.due_ms) == ("", "", None)


async def test_after_the_expiry_no_message_asks_any_more(storage: SqliteStores) -> None:
    office, _ = await asked(storage)
    for _ in range(9):
        await later(office, hours=1)
    assert kinds(office) == []


@pytest.mark.parametrize("fault", [DeliveryError("x", "fatal_error"), GONE])
async def test_a_message_that_cannot_be_removed_now_is_removed_later(
    storage: SqliteStores, fault: DeliveryError
) -> None:
    office, approval = await asked(storage)
    await later(office, minutes=15)
    office.notifier.failing.add("take back")
    office.notifier.faults["take back"] = fault
    await office.decide(approval, by=ADA)
    assert kinds(office) == [("reminder", "asks")]
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    office.notifier.failing.clear()
    await later(office, minutes=5)
    assert kinds(office) == ([("reminder", "asks")] if fault is GONE else [])
    done = await storage.approvals.get(approval.approval_id)
    assert (done.reminder_ts, done.due_ms) == ("", None)


Step = Callable[..., Awaitable[object]]


def dying(step: Step, *, after: bool) -> Step:
    async def die(*args: object, **options: object) -> object:
        if after:
            await step(*args, **options)
        raise KilledError

    return die


def counts(new: Approval, old: Approval) -> bool:
    return new.reminders > old.reminders


def notes(new: Approval, old: Approval) -> bool:
    return new.reminders == old.reminders and new.reminder_ts != old.reminder_ts


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["remind", "count", "note"])
async def test_a_crash_around_a_reminder_leaves_one(
    storage: SqliteStores, step: str, *, after: bool
) -> None:
    first, approval = await asked(storage)
    if step == "remind":
        first.notifier.remind = dying(first.notifier.remind, after=after)  # type: ignore[assignment,method-assign]
        over: Callable[[], object] = partial(vars(first.notifier).pop, step)
    else:
        matches = counts if step == "count" else notes
        over = failing_at(storage.approvals, matches, KilledError, after=after)
    with pytest.raises(KilledError):
        await later(first, minutes=15)
    first.queue.drop()
    over()
    second = Office(
        storage,
        [],
        rules=LADDER,
        clock=first.clock,
        notifier=first.notifier,
        owner="second",
    )
    second.model = first.model
    await later(second, seconds=16)
    assert kinds(second) == [("reminder", "asks")]
    assert second.notifier.reminders == [approval.approval_id]
    assert (await second.the_approval()).reminders == 1
    await second.decide(approval, by=ADA)
    assert kinds(second) == []


async def test_a_reminder_that_a_crash_left_unknown_is_found_when_it_is_decided(
    storage: SqliteStores,
) -> None:
    first, approval = await asked(storage)
    over = failing_at(storage.approvals, notes, KilledError)
    with pytest.raises(KilledError):
        await later(first, minutes=15)
    first.queue.drop()
    over()
    assert (await first.the_approval()).reminder_ts == UNKNOWN_TS
    first.clock.forward(seconds=16)
    await first.decide(approval, by=ADA)
    assert kinds(first) == []


async def test_a_message_to_backup_people_that_was_not_recorded_is_removed(
    storage: SqliteStores,
) -> None:
    first, approval = await asked(storage)
    over = failing_at(
        storage.approvals, lambda new, old: new.escalation_told > old.escalation_told, KilledError
    )
    await later(first, minutes=15)
    with pytest.raises(KilledError):
        await later(first, hours=1)
    first.queue.drop()
    over()
    first.clock.forward(seconds=16)
    await first.decide(approval, by=BEN)
    assert kinds(first) == []


async def test_a_decision_in_the_moment_of_the_reminder(storage: SqliteStores) -> None:
    office, approval = await asked(storage)
    remind = office.notifier.remind

    async def decided_meanwhile(*args: object, **options: object) -> str:
        await office.decide_meanwhile(approval, by=ADA)
        return await remind(*args, **options)  # type: ignore[arg-type]

    office.notifier.remind = decided_meanwhile  # type: ignore[method-assign]
    await later(office, minutes=15)
    assert office.notifier.reminders == []
    assert (await storage.approvals.get(approval.approval_id)).reminder_ts == ""


async def test_when_an_edit_asks_other_people_the_old_messages_go(storage: SqliteStores) -> None:
    office, approval = await asked(storage)
    await later(office, minutes=15)
    await later(office, hours=1)
    assert len(kinds(office)) == 2
    waiting = await office.the_approval()
    changed = waiting.changed(digest="e" * 64, escalate_ms=None, remind_ms=None)
    await write(
        storage.approvals,
        waiting.key,
        edited,
        judged=changed,
        found=waiting,
        now_ms=office.clock(),
    )
    await office.approvals.attendance.attend(approval.approval_id)
    assert kinds(office) == []
    after = await office.the_approval()
    assert (after.reminder_ts, after.escalation_ts) == ("", "")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["remind", "escalate"])
async def test_an_edit_in_the_moment_of_a_message_has_the_new_people_told(
    storage: SqliteStores, step: str, *, after: bool
) -> None:
    office, _ = await asked(storage)
    await later(office, minutes=14)
    wait = {"minutes": 2} if step == "remind" else {"hours": 1}
    send = getattr(office.notifier, step)
    about: list[str] = []

    async def told(approval: Approval, **options: object) -> object:
        ts = await send(approval, **options)
        if ts:
            about.append(approval.digest)
        return ts

    async def edited_meanwhile(approval: Approval, **options: object) -> object:
        setattr(office.notifier, step, told)
        ts = await send(approval, **options) if after else None
        waiting = await office.the_approval()
        now = office.clock()
        changed = waiting.changed(digest="e" * 64, remind_ms=now, escalate_ms=now + 60_000)
        await write(
            storage.approvals,
            waiting.key,
            edited,
            judged=changed,
            found=waiting,
            now_ms=now,
        )
        return ts if after else await told(approval, **options)

    setattr(office.notifier, step, edited_meanwhile)
    await later(office, **wait)
    assert kinds(office) == [("reminder", "asks")]  # the new people's, and no other
    await later(office, minutes=2)
    assert dict(kinds(office))["escalation"] == "asks"
    now = await office.the_approval()
    assert (now.reminders, now.escalation_told) == (1, True)
    assert about == ["e" * 64]


async def test_without_a_card_nobody_is_reminded_and_the_number_goes_on(
    storage: SqliteStores,
) -> None:
    office, _ = await asked(storage, rules=RULES)
    waiting = await office.the_approval()
    now = office.clock()
    await write(storage.approvals, waiting.approval_id, redrawn, now_ms=now)
    office.notifier.failing.add("update")
    office.notifier.faults["update"] = GONE
    await later(office, minutes=15)
    approval = await office.the_approval()
    assert (approval.reminders, approval.undeliverable) == (1, "is_archived")
    assert office.notifier.reminders == []
