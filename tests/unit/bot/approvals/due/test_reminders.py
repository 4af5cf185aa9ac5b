"""Reminders and messages to backup people: one at a time, and none that is no longer so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.changes import edited, redrawn
from bot.errors import DeliveryError
from bot.records.approval import Approval, ApprovalMessage, Status
from tests.support.decided import write
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, RULES, Office

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
