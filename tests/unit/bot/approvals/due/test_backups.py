"""When nobody decides, others are asked, too: on record first, told once, and never strangers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents.models import call, say
from bot.audit.report import story
from bot.errors import DeliveryError, NotApproverError
from bot.people.approvers import next_step_ms
from bot.records.approval import Approval, Status
from bot.stores import Stores
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, RULES, THREAD_ID, Office

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
LADDER = replace(
    RULES, approvers=(ADA,), escalate_after=timedelta(hours=1), escalate_to=(BEN, ROSA)
)
QUIET = replace(LADDER, remind_after=timedelta(hours=3))
"""No reminder comes between."""


def an_office(storage: Stores, *, owner: str = "office", **changes: object) -> Office:
    fields: dict[str, object] = {"rules": QUIET, "owner": owner, **changes}
    return Office(storage, [PAY, say("It is over.")], **fields)  # type: ignore[arg-type]


async def asked(office: Office) -> Approval:
    await office.hear(ASK)
    return await office.the_approval()


# ---- the ladder ----------------------------------------------------------------------------------


async def test_the_request_says_in_the_audit_who_will_be_asked(storage: SqliteStores) -> None:
    approval = await asked(an_office(storage))
    (entry, *_) = await story(storage, thread_id=THREAD_ID)
    assert entry.detail["backups"] == [BEN]
    assert entry.detail["escalates_ms"] == next_step_ms(approval)


# ---- who may decide ------------------------------------------------------------------------------


async def test_i1_the_backup_decides_after_the_escalation_and_not_before(
    storage: SqliteStores,
) -> None:
    office = an_office(storage)
    approval = await asked(office)
    with pytest.raises(NotApproverError, match="As a backup, you can decide from"):
        await office.decide(approval, by=BEN)
    await office.later(hours=1)
    for user_id in (ROSA, GUS):
        with pytest.raises(NotApproverError):
            await office.decide(approval, by=user_id)
    await office.decide(approval, by=BEN)

    assert office.ran == [("pay", ("Mia", 5, "card"))]
    assert office.notifier.cards[approval.approval_id].status is Status.APPROVED
    refused = [e for e in await story(storage, thread_id=THREAD_ID) if e.action == "refused"]
    assert [entry.actor_id for entry in refused] == [BEN, GUS, ROSA]


# ---- crashes and other processes -----------------------------------------------------------------


async def test_the_lease_is_lost_before_the_record(storage: SqliteStores) -> None:
    """Another process has put it on record, and is about to tell: that is not our business."""
    office = an_office(storage)
    approval = await asked(office)
    write, others = storage.approvals.replace, list[Approval]()

    async def late(document: Approval, *, based_on: Approval, **options: Any) -> Approval:
        if document.escalation.steps and not others:
            office.clock.forward(seconds=16)
            now = office.clock()
            other = await storage.approvals.claim(
                document.key, owner="other", now_ms=now, until_ms=now + 15_000
            )
            assert other is not None
            others.append(other)
            await write(document.changed(fence=other.fence), based_on=other, fence=other.fence)
        return await write(document, based_on=based_on, **options)

    storage.approvals.replace = late  # type: ignore[method-assign]
    await office.later(hours=1)
    vars(storage.approvals).pop("replace")
    assert office.notifier.escalations == []
    assert (await office.the_approval()).leased_by == "other"
    await office.later(seconds=16)
    assert office.notifier.escalations == [approval.approval_id]


# ---- a lame Slack, a database that is away -------------------------------------------------------


async def test_a_card_that_waits_does_not_delay_the_escalation(
    storage: SqliteStores, caplog: pytest.LogCaptureFixture
) -> None:
    office = an_office(storage)
    soon = DeliveryError("card", "has to wait its turn", retry_after=timedelta(hours=5))
    office.notifier.failing.add("card")
    office.notifier.faults["card"] = soon
    approval = await asked(office)
    assert approval.due_ms == next_step_ms(approval)
    await office.later(hours=1)
    assert (await office.the_approval()).escalation.begun_ms == office.clock()
    # A call that only waits for its turn is no failure; one that Slack refused is.
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    office.notifier.faults["card"] = DeliveryError("chat.postMessage", "fatal_error")
    await office.later(hours=5)
    assert "card update failed, will retry: " in caplog.text
