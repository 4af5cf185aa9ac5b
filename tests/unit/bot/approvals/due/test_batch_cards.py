"""One card for several approvals: which are on it, who keeps it, what leaves it, who speaks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agents.models import Turn, call, say
from bot.approvals.due.batch_cards import MOST_ON_CARD, stays, together
from bot.errors import DeliveryError
from bot.records.approval import (
    BATCH,
    Approval,
    ApprovalMessage,
    CardClaim,
    Comment,
    Kind,
    Restored,
    Status,
    StoredBatch,
    StoredEdits,
)
from bot.records.terms import Group, Requirement, Stage, Terms
from tests.support.fakes import FakeBatchCards, FakeNotifier
from tests.support.force import Forced, forced
from tests.support.stores import SqliteStores
from tests.unit.bot.office import ADA, BEN, Office
from tests.unit.bot.slack.cards.samples import an_approval

GONE = DeliveryError("chat.postMessage", "invalid_blocks", took_no_effect=True)


def by_sre(**more: object) -> Forced:
    ask = {"approve": [{"from": ["sre"]}], "edit": "yes", **more}
    return forced(default={"ask": ask}, groups={"sre": {"users": [ADA, BEN]}})


def an_office(storage: SqliteStores, *names: str, **more: Any) -> Office:
    calls = [call("look", {"what": name}, id=f"c{name[:9]}") for name in names]
    notifier = FakeNotifier()
    policy = more.pop("policy", None) or by_sre()
    turns: list[Turn] = [calls, say("done")] if calls else []
    return Office(
        storage, turns, policy=policy, notifier=notifier, batches=FakeBatchCards(notifier), **more
    )


async def asked(storage: SqliteStores, *names: str, **more: Any) -> tuple[Office, list[Approval]]:
    office = an_office(storage, *names, **more)
    await office.hear("<@UBOT> look")
    return office, await office.open_approvals()


def shown(office: Office) -> FakeBatchCards:
    assert isinstance(office.batches, FakeBatchCards)
    return office.batches


def drawn(office: Office) -> dict[str, Status]:
    """What the newest card of several shows."""
    (items,) = shown(office).cards.values()
    return {str(approval.arguments["what"]): approval.status for approval in items}


@pytest.mark.parametrize(
    "more",
    [{"always_ask": "yes"}, {"approve": [{"from": ["sre"], "count": 2}]}, {"route": "dm"}],
    ids=["always_ask", "two", "dm"],
)
async def test_what_people_must_see_one_by_one_has_cards_of_its_own(
    storage: SqliteStores, more: dict[str, object]
) -> None:
    office, cards = await asked(storage, "a", "b", policy=by_sre(**more))
    assert {card.batch.owner_id for card in cards} == {""}
    assert shown(office).posts == []


async def test_news_of_one_card_is_drawn_at_most_every_second_and_a_half(
    storage: SqliteStores,
) -> None:
    office, cards = await asked(storage, "a", "b", "c", "d")
    await office.decide(cards[1], Status.REJECTED, reason="no")
    assert office.paused == []
    office.clock.forward(seconds=1)
    await office.decide(cards[2], Status.REJECTED, reason="no")
    assert office.paused == [0.5]
    office.clock.forward(seconds=2)
    await office.decide(cards[3], Status.REJECTED, reason="no")
    assert office.paused == [0.5]


async def test_more_than_a_hundred_have_a_second_card(storage: SqliteStores) -> None:
    office, cards = await asked(storage, *(f"n{number}" for number in range(MOST_ON_CARD + 3)))
    card_owners = [card.batch.owner_id for card in cards]
    assert card_owners[:MOST_ON_CARD] == [cards[0].approval_id] * MOST_ON_CARD
    assert card_owners[MOST_ON_CARD:] == [cards[MOST_ON_CARD].approval_id] * 3
    assert shown(office).posts == [cards[0].approval_id, cards[MOST_ON_CARD].approval_id]


async def test_a_split_that_nobody_followed_is_made_good_by_the_clock(
    storage: SqliteStores,
) -> None:
    office, cards = await asked(storage, "a", "b", "c", "d")
    shared = office.attendance.shared
    assert shared is not None
    assert await shared.split(cards[0]) == [card.approval_id for card in cards]
    heir = an_office(storage, clock=office.clock, owner="heir")
    shown(heir).shown = shown(office).shown
    await heir.later(seconds=1)
    assert sorted(heir.notifier.posts) == sorted(card.approval_id for card in cards)
    assert shown(heir).cards == {cards[0].approval_id: []}


async def test_a_card_that_is_gone_is_posted_again(storage: SqliteStores) -> None:
    office, cards = await asked(storage, "a", "b")
    shown(office).deleted.add(cards[0].approval_id)
    await office.attendance.redraw(cards[1].approval_id)
    assert shown(office).posts == [cards[0].approval_id] * 2
    kept = await storage.approvals.get(cards[0].approval_id)
    assert kept.batch_card.ts == "1800000000.000002"


async def test_a_card_whose_answer_was_lost_is_found(storage: SqliteStores) -> None:
    office = an_office(storage, "a", "b")
    office.notifier.lost.add("batch")
    await office.hear("<@UBOT> look")
    office.notifier.lost.clear()
    first = (await office.open_approvals())[0]
    assert first.batch_card.ts == ""
    await office.later(minutes=1)
    assert shown(office).posts == [first.approval_id]
    assert (
        await storage.approvals.get(first.approval_id)
    ).batch_card.ts == f"found-{first.approval_id}"


async def test_another_process_finds_the_card_that_a_dead_one_posted(storage: SqliteStores) -> None:
    office = an_office(storage, "a", "b")

    async def die() -> None:
        raise asyncio.CancelledError

    shown(office).meanwhile = die
    with pytest.raises(asyncio.CancelledError):
        await office.hear("<@UBOT> look")
    office.queue.drop()
    heir = an_office(storage, clock=office.clock, owner="heir")
    shown(heir).cards = shown(office).cards
    await heir.later(minutes=1)
    assert shown(heir).posts == []
    assert office.notifier.posts == heir.notifier.posts == []
    assert len(drawn(heir)) == 2


async def test_a_card_that_slack_never_takes_is_split(storage: SqliteStores) -> None:
    office = an_office(storage, "a", "b")
    office.notifier.failing.add("batch")
    office.notifier.faults["batch"] = GONE
    await office.hear("<@UBOT> look")
    cards = await office.open_approvals()
    assert sorted(office.notifier.posts) == sorted(card.approval_id for card in cards)
    assert all(approval.batch.left and approval.thread_card.ts for approval in cards)


REMINDING = by_sre(remind="15m", expires="8h")


async def test_one_reminder_speaks_for_all(storage: SqliteStores) -> None:
    office, cards = await asked(storage, "a", "b", "c", policy=REMINDING)
    await office.later(minutes=15)
    await office.later(seconds=5)
    sent = [message for message in office.notifier.asking.values() if message.kind == "reminder"]
    assert len(sent) == 1
    waiting = await office.open_approvals()
    assert [approval.escalation.reminders for approval in waiting] == [1, 1, 1]
    assert [bool(approval.reminders) for approval in waiting] == [True, False, False]
    await office.decide(cards[0])
    assert len(office.notifier.asking) == 1
    await office.decide(cards[1])
    await office.decide(cards[2], Status.REJECTED, reason="no")
    await office.later(seconds=11)
    assert (office.notifier.asking, office.notifier.closed) == ({}, [])


async def test_the_next_that_waits_is_reminded_of_when_the_first_is_decided(
    storage: SqliteStores,
) -> None:
    office, cards = await asked(storage, "a", "b", policy=REMINDING)
    await office.decide(cards[0])
    await office.later(minutes=15)
    sent = [message for message in office.notifier.asking.values() if message.kind == "reminder"]
    assert len(sent) == 1


# ---- which are on one card -----------------------------------------------------------------


def terms(risk: str, group: str, count: int, *, always: bool) -> Terms:
    return Terms(
        rules=("one",),
        stages=(Stage(approve=(Requirement(name="who", groups=(group,), count=count),)),),
        groups={group: Group(users=("U1",))},
        risk=risk,  # type: ignore[arg-type]
        always_ask=always,
    )


@st.composite
def approvals(draw: st.DrawFn) -> Approval:
    number = draw(st.integers(0, 2**64))
    return an_approval().changed(
        approval_id=f"apr_{number:032x}",
        tool=draw(st.sampled_from(["pay", "refund"])),
        expires_ms=draw(st.sampled_from([1_000, 2_000])),
        requesters=draw(st.sampled_from([("U1",), ("U1", "U2")])),
        kind=draw(st.sampled_from([Kind.APPROVAL, Kind.APPROVAL, Kind.QUESTION, Kind.DOUBT])),
        status=draw(st.sampled_from([Status.PENDING, Status.PENDING, Status.UNDECIDABLE])),
        elsewhere=draw(st.sampled_from(["", "", "dm", "C9"])),
        stuck=draw(st.sampled_from(["", "", "nobody"])),
        messages=draw(st.sampled_from([(), (), (ApprovalMessage(key="card:U1", kind="card"),)])),
        asked_again=draw(st.sampled_from(["", "", "restored"])),
        terms=draw(
            st.builds(
                terms,
                st.sampled_from(["low", "medium", "medium", "high", "critical"]),
                st.sampled_from(["ops", "sre"]),
                st.sampled_from([1, 1, 1, 2]),
                always=st.sampled_from([False, False, True]),
            )
        ),
    )


@settings(max_examples=60)
@given(
    st.lists(approvals(), max_size=12, unique_by=lambda approval: approval.approval_id), st.data()
)
def test_a_card_holds_only_what_is_alike(originals: list[Approval], data: st.DataObject) -> None:
    refused = {approval.approval_id for approval in originals if data.draw(st.booleans())}
    made = together(originals, lambda approval: approval.approval_id not in refused)
    own = [tuple(message for message in each.messages if message.key != BATCH) for each in made]
    alone = [
        approval.changed(batch=StoredBatch(), messages=own[at]) for at, approval in enumerate(made)
    ]
    assert alone == originals
    for keeper_id in {approval.batch.owner_id for approval in made} - {""}:
        items = [approval for approval in made if approval.batch.owner_id == keeper_id]
        assert 2 <= len(items) <= MOST_ON_CARD
        assert items[0].approval_id == keeper_id
        keeps = [approval.message(BATCH) is not None for approval in items]
        assert keeps == [True, *([False] * (len(items) - 1))]
        assert (
            len({(approval.tool, approval.terms.text, approval.expires_ms) for approval in items})
            == 1
        )
        assert len({approval.requesters for approval in items}) == 1
        for member in items:
            read = member.terms
            assert read.risk in {"low", "medium"}
            assert not read.always_ask
            assert sum(need.count for need in read.stages[0].approve) == 1
            assert (member.status, member.kind, member.elsewhere) == (
                Status.PENDING,
                Kind.APPROVAL,
                "",
            )
            assert (member.stuck, member.copies, member.asked_again) == ("", (), "")
            assert member.approval_id not in refused
            assert stays(member)
    alone = [
        approval
        for approval in made
        if not approval.batch.owner_id and approval.approval_id not in refused
    ]
    alike = {
        (approval.tool, approval.terms.text, approval.expires_ms, approval.requesters)
        for approval in alone
    }
    assert alike or not alone


@pytest.mark.parametrize(
    "changes",
    [
        {"edits": StoredEdits(by=BEN)},
        {"edits": StoredEdits(original={})},
        {"dialog": (Comment(by="U1", text="Why?", at_ms=1),)},
        {"claim": CardClaim().taken(ADA, 1)},
        {"restored": Restored(to_ms=5)},
        {"asked_again": "why"},
        {"stage": 1},
        {"batch": StoredBatch(owner_id="apr_1", left=True)},
        {"batch": StoredBatch()},
    ],
)
def test_what_is_not_like_the_others_any_more_leaves(changes: dict[str, Any]) -> None:
    approval = an_approval().changed(batch=StoredBatch(owner_id="apr_1"))
    assert stays(approval)
    assert not stays(approval.changed(**changes))
