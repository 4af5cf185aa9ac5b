"""What an attendance hands on: the card to a reminder, refusals to the audit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from agents.models import call, say
from bot.audit.acts import Act
from bot.audit.report import story
from bot.errors import ApprovalClosedError, DeliveryError, NotApproverError, OutdatedCardError
from bot.records.approval import Approval, ApprovalMessage
from tests.support.fakes import FakeNotifier
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, CHANNEL, ROSA, THREAD_ID, Office, an_actor

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"
ARCHIVED = DeliveryError("card", "is_archived", took_no_effect=True)


@dataclass
class AttentiveNotifier(FakeNotifier):
    """Notes where reminders point."""

    links: list[str] = field(default_factory=list)

    async def nudge(
        self,
        approval: Approval,
        message: ApprovalMessage,
        *,
        look_first: bool,
        may_post: Callable[[], Awaitable[bool]],
    ) -> ApprovalMessage | None:
        self.links.append(approval.thread_card.ts)
        return await super().nudge(approval, message, look_first=look_first, may_post=may_post)


async def refusals(storage: SqliteStores) -> list[tuple[str, object]]:
    return [
        (entry.actor_id, entry.detail.get("why"))
        for entry in await story(storage, thread_id=THREAD_ID)
        if entry.action == Act.REFUSED
    ]


async def test_a_reminder_links_to_a_card_that_came_only_just_now(storage: SqliteStores) -> None:
    notifier = AttentiveNotifier(failing={"card"}, faults={"card": ARCHIVED})
    office = Office(storage, [PAY, say("Paid.")], notifier=notifier)
    await office.hear(ASK)
    assert (await office.the_approval()).thread_card.ts == ""
    notifier.failing.clear()
    await office.later(minutes=15)
    assert notifier.links == [(await office.the_approval()).thread_card.ts]
    assert notifier.links != [""]


async def test_i12_why_an_edit_was_refused_is_on_record(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    changed = approval.changed(digest="d" * 64)
    counted = approval.changed(counted=(ADA,))
    with pytest.raises(NotApproverError) as refused:
        await office.approvals.check_editor(counted, an_actor(ADA))
    outdated = approval.changed(digest="e" * 64)
    with pytest.raises(OutdatedCardError) as late:
        await office.approvals.rebind(outdated, changed, actor=an_actor(BEN))
    assert await refusals(storage) == [(ADA, str(refused.value)), (BEN, str(late.value))]
    assert late.value.approval_id == approval.approval_id


async def test_an_approval_is_closed_from_the_moment_of_its_expiry(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    approval = await office.asked(ASK)
    name, shown = approval.approval_id, approval.digest
    office.clock.forward(seconds=(approval.expires_ms - office.clock() - 1) / 1000)
    await office.approvals.get_decidable(name, an_actor(ADA), shown=shown)
    office.clock.forward(seconds=0.001)
    assert office.clock() == approval.expires_ms
    with pytest.raises(ApprovalClosedError):
        await office.approvals.get_decidable(name, an_actor(ADA), shown=shown)


async def test_a_reminder_finds_a_requester_who_left_unseen(storage: SqliteStores) -> None:
    office = Office(storage, [PAY, say("Paid.")])
    await office.hear(ASK)
    office.directory.add(ROSA, is_deleted=True)  # no event has arrived
    await office.later(minutes=16)
    assert (await office.the_approval()).requester_gone == "workspace"
    office.directory.add(ROSA)
    office.directory.channels[CHANNEL] -= {ROSA}
    await office.attendance.look_who_asked(ROSA)
    assert (await office.the_approval()).requester_gone == "channel"
    office.directory.is_down = True
    await office.attendance.look_who_asked(ROSA)
    assert (await office.the_approval()).requester_gone == "channel"
