"""Whoever asked can always take it back, and what they write since stands on the card."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from agents.models import call, say
from bot.approvals.withdrawals import LONGEST_MESSAGE, MOST_MESSAGES, looks_like_withdrawal
from bot.audit.report import story
from bot.errors import ApprovalClosedError, InvalidInputError, NotApproverError, OutdatedCardError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, Kind, Status
from bot.slack.cards.card_for import card_for
from bot.slack.side_messages.private import withdrawal_card
from bot.stores import Stores
from bot.threads.message_event import NO_TURN
from storage.errors import RecordConflictError, RecordFormatError, RecordNotFoundError
from tests.support.decided import failing_at
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, Proxy, a_click, a_submission, typed
from tests.unit.bot.office import (
    ADA,
    BEN,
    ROSA,
    THREAD_ID,
    KilledError,
    Office,
    an_actor,
    an_incoming,
)

PAY = call("pay", {"to": "Mia", "amount": 5}, id="c1")
ASK = "<@UBOT> pay Mia"


def ts(number: int) -> str:
    return f"1800000000.{number:06d}"


async def an_office(storage: SqliteStores) -> Office:
    office = Office(storage, [PAY, say("I see.")])
    await office.hear(ASK)
    return office


def drawn(approval: Approval) -> str:
    return json.dumps(card_for(approval, approvers_text="").blocks, ensure_ascii=False)


async def acts(storage: Stores) -> list[tuple[str, str]]:
    return [(entry.action, entry.actor_id) for entry in await story(storage, thread_id=THREAD_ID)]


async def test_i9_the_button_asks_why_and_the_agent_hears_who_and_why(counter: Counter) -> None:
    office = counter.office
    approval = await office.the_approval()
    await counter.send(a_click(approval, ActionId.WITHDRAW, ROSA))
    assert counter.views.opened[-1]["callback_id"] == ActionId.WITHDRAW_MODAL
    assert (await office.the_approval()).status is Status.PENDING

    sent = a_submission(approval, ActionId.WITHDRAW_MODAL, typed("reason", "use 6"), ROSA)
    assert (await counter.send(sent)).body == ""

    prompt = str(office.model.inputs[-1])
    assert "The request was withdrawn by the requester" in prompt
    assert "This is not a rejection. Reason: use 6" in prompt
    assert office.ran == []
    card = office.notifier.cards[approval.approval_id]
    assert "*Withdrawn by <@UROSA>*" in drawn(card)
    assert '"type": "actions"' not in drawn(card)
    assert ("withdrawn", ROSA) in await acts(office.storage)


async def test_any_requester_can_withdraw_and_nobody_else(storage: SqliteStores) -> None:
    office = Office(storage, [say("I wait."), PAY, say("I see.")])
    await office.hear("<@UBOT> when somebody says go, pay Mia", user_id=ROSA)
    await office.hear("<@UBOT> go on", user_id=BEN, ts=ts(2))
    name = (await office.the_approval()).approval_id
    withdrawals = office.approvals.withdrawals

    with pytest.raises(NotApproverError, match="Only the requester"):
        await withdrawals.withdraw(name, an_actor(ADA), reason="")
    withdrawn = await withdrawals.withdraw(name, an_actor(ROSA), reason="")

    assert withdrawn.status is Status.WITHDRAWN
    with pytest.raises(ApprovalClosedError, match="<@UROSA> was first: withdrawn"):
        await withdrawals.withdraw(name, an_actor(BEN), reason="")
    assert ("refused", ADA) in await acts(storage)


async def test_a_withdrawal_needs_no_look_up_and_no_fresh_card(storage: SqliteStores) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    office.directory.is_down = True
    withdrawals = office.approvals.withdrawals
    assert await withdrawals.add_words(approval, by=ROSA, text="stop", at_ms=1)

    withdrawn = await withdrawals.withdraw(approval.approval_id, an_actor(ROSA), reason="")

    assert withdrawn.status is Status.WITHDRAWN


async def test_after_the_deadline_there_is_nothing_to_withdraw(storage: SqliteStores) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    office.clock.now_ms = approval.expires_ms
    with pytest.raises(ApprovalClosedError):
        await office.approvals.withdrawals.withdraw(approval.approval_id, an_actor(ROSA), reason="")


async def test_what_has_begun_to_run_is_not_taken_back(storage: SqliteStores) -> None:
    office = await an_office(storage)
    doubt = (await office.the_approval()).changed(approval_id=f"apr_{'d' * 32}", kind=Kind.DOUBT)
    await storage.approvals.insert(doubt)
    with pytest.raises(InvalidInputError):
        await office.approvals.withdrawals.get_withdrawable(doubt.approval_id, an_actor(ROSA))
    assert "Withdraw" not in drawn(doubt)


async def test_i3_what_changes_meanwhile_is_read_again(storage: SqliteStores) -> None:
    office = await an_office(storage)
    name = (await office.the_approval()).approval_id
    failing_at(
        storage.approvals,
        lambda new, _: new.status is Status.WITHDRAWN,
        RecordConflictError("approval", name),
        times=2,
    )
    withdrawn = await office.approvals.withdrawals.withdraw(name, an_actor(ROSA), reason="")
    assert withdrawn.status is Status.WITHDRAWN
    assert await storage.approvals.get(name) == withdrawn


async def test_i3_what_is_edited_all_the_time_is_not_withdrawn(storage: SqliteStores) -> None:
    office = await an_office(storage)
    name = (await office.the_approval()).approval_id
    get, edits = storage.approvals.get, count()

    async def edited(key: str) -> Approval:
        return (await get(key)).changed(digest=f"edit {next(edits)}")

    busy = Proxy(storage, {"approvals": Proxy(storage.approvals, {"get": edited})})  # type: ignore[arg-type]
    withdrawals = replace(office.approvals.withdrawals, storage=busy)  # type: ignore[arg-type]
    with pytest.raises(OutdatedCardError):
        await withdrawals.withdraw(name, an_actor(ROSA), reason="")
    assert (await office.the_approval()).status is Status.PENDING


async def test_a_call_that_waits_for_values_is_withdrawn_by_who_asked(
    storage: SqliteStores,
) -> None:
    office = await an_office(storage)
    asked = (await office.the_approval()).changed(approval_id=f"apr_{'e' * 32}", kind=Kind.QUESTION)
    await storage.approvals.insert(asked)
    withdrawals = office.approvals.withdrawals
    assert await withdrawals.is_own(asked.approval_id, an_actor(ROSA))
    assert not await withdrawals.is_own(asked.approval_id, an_actor(ADA))


# ---- words ------------------------------------------------------------------------------------


async def test_what_a_requester_writes_is_on_the_card_in_two_seconds_and_reaches_the_agent(
    storage: SqliteStores,
) -> None:
    office = Office(storage, [PAY, say("Paid."), say("I read it.")])
    await office.hear(ASK)
    approval, heard_ms = await office.the_approval(), office.clock()
    await office.hear("it is *6*, <!channel>", ts=ts(2))

    card = office.notifier.cards[approval.approval_id]
    assert office.clock() - heard_ms <= 2_000  # by the message's own work: no tick was needed
    assert [(message.by, message.text) for message in card.said] == [(ROSA, "it is *6*, @channel")]
    shown = drawn(card)
    assert "*<@UROSA>* added a message. Read it first" in shown
    assert '{"type": "text", "text": "it is *6*, @channel"}' in shown
    who, whisper = office.notifier.whispers[-1]
    assert (who, "select *Withdraw…*" in whisper) == (ROSA, True)
    assert office.notifier.offered[-1] == [approval.approval_id]

    await office.decide(await office.the_approval(), by=ADA)
    assert "it is *6*" in str(office.model.inputs[-1])


async def test_the_newest_words_are_kept_masked_and_cut(storage: SqliteStores) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    withdrawals = office.approvals.withdrawals
    for number in (3, 1, 5, 4):
        newest = await storage.approvals.get(approval.approval_id)
        await withdrawals.add_words(newest, by=ROSA, text=f"{number}" * 2_000, at_ms=number)
    newest = await storage.approvals.get(approval.approval_id)
    assert not await withdrawals.add_words(newest, by=ROSA, text="late", at_ms=2)
    assert [message.at_ms for message in newest.said] == [3, 4, 5]
    assert len(newest.said) == MOST_MESSAGES
    assert {len(message.text) for message in newest.said} == {LONGEST_MESSAGE}

    await withdrawals.add_words(newest, by=ROSA, text="password: hunter2hunter2", at_ms=9)
    newest = await storage.approvals.get(approval.approval_id)
    assert "hunter2" not in str(newest.said)


async def test_words_are_given_up_when_the_record_changes_all_the_time(
    storage: SqliteStores,
) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    get, revisions = storage.approvals.get, count(approval.shown_revision + 1)

    async def changed_again(key: str) -> Approval:
        return (await get(key)).changed(shown_revision=next(revisions))

    busy = Proxy(storage, {"approvals": Proxy(storage.approvals, {"get": changed_again})})  # type: ignore[arg-type]
    withdrawals = replace(office.approvals.withdrawals, storage=busy)  # type: ignore[arg-type]
    outdated = approval.changed(shown_revision=0)
    assert not await withdrawals.add_words(outdated, by=ROSA, text="6", at_ms=1)
    assert (await office.the_approval()).said == ()


@pytest.mark.parametrize("text", ["cancel", "Undo!", "<@UBOT> never mind", "please cancel that."])
async def test_a_reply_that_would_stop_it_is_not_kept_silently(
    storage: SqliteStores, text: str
) -> None:
    office = await an_office(storage)
    await office.hear(text, ts=ts(2))

    who, whisper = office.notifier.whispers[-1]
    assert (who, "Select *Withdraw…*" in whisper) == (ROSA, True)
    approval = await office.the_approval()
    assert office.notifier.offered[-1] == [approval.approval_id]
    assert len(approval.said) == 1
    assert await storage.inbox.new(THREAD_ID, limit=9) == []
    assert len(await storage.inbox.of_turn(THREAD_ID, NO_TURN)) == 1
    assert ("message_refused", ROSA) in await acts(storage)


@pytest.mark.parametrize(
    "text", ["stop the payments service", "cancel order 7", "do not stop", "the stop", "canceled?"]
)
def test_an_instruction_is_no_withdrawal(text: str) -> None:
    assert not looks_like_withdrawal(text)


async def test_a_message_of_an_odd_time_is_shown_with_ours(storage: SqliteStores) -> None:
    office = await an_office(storage)
    await office.hear("it is 6", ts="odd")
    (said,) = (await office.the_approval()).said
    assert said.at_ms == office.clock.now_ms


async def test_the_withdrawal_of_what_has_begun_is_told_so_without_a_button(
    storage: SqliteStores,
) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    office.dies_in_tools = True
    with pytest.raises(KilledError):
        await office.decide(approval)
    office.queue.drop()
    await office.later(minutes=1)
    assert (await office.the_approval()).kind is Kind.DOUBT
    await office.hear("cancel", ts=ts(2))
    assert "can't withdraw it" in office.notifier.whispers[-1][1]
    assert office.notifier.offered[-1] == []


async def test_the_button_comes_though_the_process_dies(storage: SqliteStores) -> None:
    office = await an_office(storage)
    approval = await office.the_approval()
    await office.inbox.receive(an_incoming("cancel", ts=ts(2)))
    office.queue.drop()
    second = Office(storage, [], clock=office.clock, owner="second")
    await second.later(minutes=1)
    assert [who for who, _ in second.notifier.whispers] == [ROSA]
    assert second.notifier.offered == [[approval.approval_id]]


@pytest.mark.parametrize("error", [RecordNotFoundError, RecordFormatError])
async def test_what_cannot_be_read_any_more_has_no_button(
    storage: SqliteStores, error: type[Exception]
) -> None:
    office = await an_office(storage)
    await office.inbox.receive(an_incoming("cancel", ts=ts(2)))
    office.queue.drop()
    (left,) = await storage.ephemeral_messages.due(now_ms=10**15, limit=9)

    async def gone(approval_id: str) -> Approval:
        raise error("approval", approval_id)

    away = Proxy(storage, {"approvals": Proxy(storage.approvals, {"get": gone})})  # type: ignore[arg-type]
    office.clock.forward(minutes=1)
    outbox = replace(office.outbox, storage=away)  # type: ignore[arg-type]
    await outbox.tell(left.message_id)
    assert office.notifier.offered == [[]]


async def test_a_button_far_below_its_card_opens_the_same_form(counter: Counter) -> None:
    approval = await counter.office.the_approval()
    value = drawn_withdrawal([approval])[1]["accessory"]["value"]
    click = a_click(approval, ActionId.WITHDRAW, ROSA)
    click["actions"][0]["value"] = value
    click["container"] = {"type": "message", "message_ts": "9.2", "is_ephemeral": True}
    del click["message"]
    await counter.send(click)
    assert counter.views.opened[-1]["callback_id"] == ActionId.WITHDRAW_MODAL


async def test_each_request_has_a_button_with_its_title_up_to_five(storage: SqliteStores) -> None:
    approval = await (await an_office(storage)).the_approval()
    many = [approval.changed(title=f"Pay <{number}>") for number in range(7)]

    words, *offers = drawn_withdrawal(many[:5])
    assert words["text"]["text"] == "Really?"
    assert [offer["text"] for offer in offers] == [
        {"type": "plain_text", "text": f"Pay <{number}>", "emoji": False} for number in range(5)
    ]
    assert [offer["accessory"]["action_id"] for offer in offers] == [ActionId.WITHDRAW] * 5
    assert offers[0]["accessory"]["accessibility_label"] == "Withdraw: Pay <0>"

    assert "1 more is waiting" in str(drawn_withdrawal(many[:6])[-1])
    *offers, rest = drawn_withdrawal(many)
    assert "2 more are waiting." in str(rest)
    assert str(offers).count(ActionId.WITHDRAW) == 5


def drawn_withdrawal(approvals: list[Approval]) -> list[dict[str, Any]]:
    return withdrawal_card("Really?", approvals).blocks
