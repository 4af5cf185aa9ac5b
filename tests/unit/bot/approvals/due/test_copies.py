"""Cards by direct message for people who have asked for them in their Home."""

from __future__ import annotations

from typing import Any

import pytest

from bot.approvals.secondary_actions import SecondaryActions
from bot.errors import DeliveryError
from bot.records.approval import BATCH, Approval, ApprovalMessage, Status
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.due.test_batch_cards import an_office as a_batch_office, shown
from tests.unit.bot.approvals.due.test_escalation import (
    ASK,
    MIA,
    SAM,
    SRE,
    an_office,
    mentioned,
    notified,
)
from tests.unit.bot.notifications.people import keep
from tests.unit.bot.office import ADA, BEN, GUS, ROSA, KilledError, Office, an_actor

SECURITY: dict[str, Any] = {"approve": [{"from": ["security"]}]}
HERE: dict[str, Any] = {"everybody": {"here": True}}


async def wish(office: Office, *people: str, has_copies: bool = True) -> None:
    for user_id in people:
        await office.preferences.set(an_actor(user_id), team_id="T1", has_copies=has_copies)


async def asked(storage: SqliteStores, rules: dict[str, Any], *wishing: str, **more: Any) -> Office:
    """An office where some wish for cards, and something was asked after that."""
    office = an_office(storage, rules, **more)
    await wish(office, *wishing)
    await office.hear(ASK)
    return office


async def claim(office: Office, approval: Approval, by: str) -> None:
    actions = SecondaryActions(office.storage, office.approvals, office.clock)
    done = await actions.claim(approval.approval_id, an_actor(by), shown=approval.digest)
    await office.approvals.follow_up(done)
    await office.queue.run()


def copies(approval: Approval) -> list[str]:
    return [copy.user for copy in approval.copies]


@pytest.mark.parametrize("is_found", [True, False])
async def test_a_copy_that_was_deleted_comes_back_once_though_its_process_dies(
    storage: SqliteStores, *, is_found: bool
) -> None:
    office = await asked(storage, SECURITY, MIA)
    approval, post = await office.the_approval(), office.notifier.post_card
    office.notifier.copies.clear()

    async def dies(*args: Any, **more: Any) -> ApprovalMessage:
        if is_found:
            await post(*args, **more)
        raise KilledError

    office.notifier.post_card = dies  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        await office.attendance.redraw(approval.approval_id)
    assert [copy.ts for copy in (await office.the_approval()).copies] == [""]
    office.notifier.post_card = post  # type: ignore[method-assign]
    await office.later(minutes=1)
    assert notified(office) == [("card", [MIA], MIA)] * 2
    assert [bool(copy.ts) for copy in (await office.the_approval()).copies] == [True]


async def test_who_asks_for_none_any_more_gets_none_and_what_they_have_stays_true(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    await wish(office, MIA, SAM)
    await wish(office, SAM, has_copies=False)
    await office.hear(ASK)
    await wish(office, MIA, has_copies=False)
    assert copies(await office.the_approval()) == [MIA]
    await office.later(minutes=15)
    assert notified(office)[1:] == [("reminder", [MIA, SAM], "")]
    await office.decide(await office.the_approval(), by=SAM)
    assert [approval.status for _, approval in office.notifier.copies.values()] == [Status.APPROVED]


async def test_nobody_gets_a_card_about_which_they_do_not_decide(storage: SqliteStores) -> None:
    """Rosa asked, Mia is of another group, Gus is a guest: all of them like messages."""
    office = an_office(storage, SRE)
    office.directory.groups["S0SRE"] = frozenset({BEN, ROSA, GUS})
    await wish(office, ROSA, MIA)
    await keep(office, GUS, has_copies=True)
    await office.hear(ASK)
    assert copies(await office.the_approval()) == []


async def test_of_whom_nothing_can_be_looked_up_is_mentioned_and_gets_no_card(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    await wish(office, MIA)
    del office.directory.people[MIA]
    approval = await office.asked(ASK)
    assert (mentioned(approval), copies(approval)) == ([MIA, SAM], [])


async def test_who_takes_it_on_gets_the_card_if_they_ask_for_cards(storage: SqliteStores) -> None:
    office = await asked(storage, {"approve": [{"from": ["everybody"]}]}, ADA, groups=HERE)
    approval = await office.the_approval()
    assert copies(approval) == [], "all of a channel are nobody by name"
    await claim(office, approval, ADA)
    assert copies(await office.the_approval()) == [ADA]
    await office.later(minutes=1)
    assert notified(office) == [("card", [ADA], ADA)], "once"


async def test_a_card_that_somebody_only_wished_for_keeps_none_in_the_thread_back(
    storage: SqliteStores,
) -> None:
    office = an_office(storage, SECURITY)
    await wish(office, MIA)
    office.notifier.failing.add("copy")
    approval = await office.asked(ASK)
    assert approval.thread_card.ts, "all others see it"
    assert approval.card.revision < approval.shown_revision, "and it is tried again"
    office.notifier.failing.clear()
    await office.later(minutes=1)
    assert ("card", [MIA], MIA) in notified(office)
    assert office.notifier.posts == [approval.approval_id], "once"


class TestOneCardForSeveral:
    """What a person's wish means where calls of one turn are on one card."""

    @staticmethod
    async def asked(storage: SqliteStores, *names: str) -> tuple[Office, list[Approval]]:
        office = a_batch_office(storage, *names)
        await wish(office, ADA)
        await office.hear("<@UBOT> look")
        return office, await office.open_approvals()

    async def test_who_had_it_gets_the_card_of_what_leaves_it(self, storage: SqliteStores) -> None:
        office, cards = await self.asked(storage, "a", "b", "c")
        await claim(office, cards[0], BEN)
        await office.later(seconds=5)
        first = await storage.approvals.get(cards[0].approval_id)
        assert first.batch.left
        assert [(copy.kind, copy.user) for copy in first.copies] == [(BATCH, ADA), ("card", ADA)]
        assert notified(office) == [("card", [ADA], ADA)]
        assert len(next(iter(shown(office).copies.values()))) == 2

    async def test_a_copy_that_fails_is_made_up_for(self, storage: SqliteStores) -> None:
        office = a_batch_office(storage, "a", "b")
        await wish(office, ADA)
        office.notifier.failing.add("copy")
        await office.hear("<@UBOT> look")
        assert len(shown(office).posts) == 1
        assert shown(office).copied == []
        office.notifier.failing.clear()
        await office.later(minutes=1)
        assert shown(office).copied == [ADA]
        assert len(shown(office).posts) == 1, "the card of all stands once"

    async def test_a_copy_that_slack_never_takes_is_left_out(self, storage: SqliteStores) -> None:
        office = a_batch_office(storage, "a", "b")
        await wish(office, ADA)
        office.notifier.failing.add("copy")
        office.notifier.faults["copy"] = DeliveryError("conversations.open", "missing_scope")
        await office.hear("<@UBOT> look")
        (first, _) = await office.open_approvals()
        assert (first.copies, first.batch_card.ts != "") == ((), True)
        assert first.card.revision == first.shown_revision
