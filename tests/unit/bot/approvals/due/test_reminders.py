"""Reminders and messages to backup people: one at a time, and none that is no longer so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.changes import edited, redrawn
from bot.approvals.due.quiet_hours import NeverQuiet
from bot.errors import DeliveryError
from bot.people.approvers import approvers_of, backups_of
from bot.records.approval import Approval, ApprovalMessage, Status
from tests.support.decided import failing_at, write
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, ROSA, RULES, KilledError, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
LADDER = replace(RULES, escalate_after=timedelta(hours=1), escalate_to=(BEN,))
GONE = DeliveryError("chat.update", "is_archived", took_no_effect=True)


async def asked(storage: SqliteStores, **changes: object) -> tuple[Office, Approval]:
    office = Office(storage, [PAY, say("It is over.")], **{"rules": LADDER, **changes})  # type: ignore[arg-type]
    await office.hear(ASK)
    return office, await office.the_approval()


def kinds(office: Office) -> list[str]:
    """The messages beside the card."""
    return [kind for kind, _ in office.notifier.nudges.values()]


@pytest.mark.parametrize("fault", [DeliveryError("x", "fatal_error"), GONE])
async def test_a_message_that_cannot_be_removed_now_is_removed_later(
    storage: SqliteStores, fault: DeliveryError
) -> None:
    office, approval = await asked(storage)
    await office.later(minutes=15)
    office.notifier.failing.add("remove")
    office.notifier.faults["remove"] = fault
    await office.decide(approval, by=ADA)
    assert kinds(office) == ["reminder"]
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    office.notifier.failing.clear()
    await office.later(minutes=5)
    assert kinds(office) == (["reminder"] if fault is GONE else [])
    done = await storage.approvals.get(approval.approval_id)
    assert (done.reminders, done.due_ms) == ((), None)


Step = Callable[..., Awaitable[object]]


def dying(step: Step, *, after: bool) -> Step:
    async def die(*args: object, **options: object) -> object:
        if after:
            await step(*args, **options)
        raise KilledError

    return die


def counts(new: Approval, old: Approval) -> bool:
    return new.escalation.reminders > old.escalation.reminders


def notes(new: Approval, old: Approval) -> bool:
    return bool(new.reminders) and old.reminders[-1:] != new.reminders[-1:] and has_posted(new)


def has_posted(approval: Approval) -> bool:
    return all(reminder.is_posted for reminder in approval.reminders)


async def test_a_reminder_that_a_crash_left_unknown_is_found_when_it_is_decided(
    storage: SqliteStores,
) -> None:
    first, approval = await asked(storage)
    over = failing_at(storage.approvals, notes, KilledError)
    with pytest.raises(KilledError):
        await first.later(minutes=15)
    first.queue.drop()
    over()
    assert [reminder.ts for reminder in (await first.the_approval()).reminders] == [""]
    first.clock.forward(seconds=16)
    await first.decide(approval, by=ADA)
    assert kinds(first) == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["reminder", "escalation"])
async def test_an_edit_in_the_moment_of_a_message_has_the_new_people_told(
    storage: SqliteStores, step: str, *, after: bool
) -> None:
    office, _ = await asked(storage)
    await office.later(minutes=14)
    wait = {"minutes": 2} if step == "reminder" else {"hours": 1}
    nudge = office.notifier.nudge
    about: list[tuple[str, str]] = []

    async def recording_nudge(
        approval: Approval, message: ApprovalMessage, **options: Any
    ) -> object:
        sent = await nudge(approval, message, **options)
        if sent is not None:
            about.append((message.kind, approval.digest))
        return sent

    async def edited_meanwhile(
        approval: Approval, message: ApprovalMessage, **options: Any
    ) -> object:
        office.notifier.nudge = recording_nudge  # type: ignore[method-assign,assignment]
        sent = await nudge(approval, message, **options) if after else None
        waiting = await office.the_approval()
        now = office.clock()
        changed = waiting.changed(digest="e" * 64, escalation=waiting.escalation.restarted(now))
        await write(
            storage.approvals, waiting.key, edited, judged=changed, unedited=waiting, now_ms=now
        )
        return sent if after else await recording_nudge(approval, message, **options)

    office.notifier.nudge = edited_meanwhile  # type: ignore[method-assign,assignment]
    await office.later(**wait)
    await office.later(seconds=1)
    assert kinds(office) == ["mention"]  # the new people's, and no other
    await office.later(hours=1)
    assert kinds(office) == ["mention", "escalation"]
    now = await office.the_approval()
    assert now.escalation.steps == 1
    assert {digest for _, digest in about} == {"e" * 64}


async def test_without_a_card_nobody_is_reminded_and_the_number_goes_on(
    storage: SqliteStores,
) -> None:
    office, _ = await asked(storage, rules=RULES)
    waiting = await office.the_approval()
    now = office.clock()
    await write(storage.approvals, waiting.approval_id, redrawn, now_ms=now)
    office.notifier.failing.add("update")
    office.notifier.faults["update"] = GONE
    await office.later(minutes=15)
    approval = await office.the_approval()
    assert (approval.escalation.reminders, approval.card.error) == (1, "is_archived")
    assert office.notifier.reminders == []


# ---- questions -----------------------------------------------------------------------------------

ASKS = call("ask_people", {"questions": ["How much?"]}, id="q1")


async def a_question(storage: SqliteStores, **changes: object) -> Office:
    office = Office(storage, [ASKS, say("I see.")], rules=LADDER, **changes)  # type: ignore[arg-type]
    await office.hear(ASK)
    return office


async def test_a_question_reminds_its_requester_in_the_thread(storage: SqliteStores) -> None:
    office = await a_question(storage)
    for number, minutes in enumerate((15, 30, 60), start=1):
        await office.later(minutes=minutes - 1)
        assert len(office.notifier.told) == number - 1
        await office.later(minutes=1)
        assert office.notifier.told == [("reminder", (ROSA,), "")] * number
        assert kinds(office) == ["reminder"]
    question = await office.the_approval()
    assert (question.copies, question.elsewhere, question.escalation.steps) == ((), "", 0)
    assert (approvers_of(question), backups_of(question)) == ((ROSA, "channel"), ())
    assert await office.acts() == ["requested", *["reminded"] * 3]


@dataclass
class Asleep(NeverQuiet):
    """The requester's quiet hours end at a time."""

    until_ms: int = 0
    clock: Callable[[], int] = int

    async def later(self, approval: Approval, user_id: str) -> int:
        return self.until_ms if user_id == ROSA and self.clock() < self.until_ms else 0


async def test_a_reminder_of_a_question_waits_for_the_end_of_quiet_hours(
    storage: SqliteStores,
) -> None:
    office = await a_question(storage)
    asleep = Asleep(office.clock() + 100 * 60_000, office.clock)
    office.attendance = replace(office.attendance, consideration=asleep)
    office.approvals = replace(office.approvals, attendance=office.attendance)
    for minutes in (15, 30, 54):
        await office.later(minutes=minutes)
        assert office.notifier.told == []
    await office.later(minutes=1)
    assert office.notifier.told == [("reminder", (ROSA,), "")]
    await office.later(minutes=5)  # the third reminder
    assert office.notifier.told == [("reminder", (ROSA,), "")] * 2
    assert kinds(office) == ["reminder"]
