"""Clicks and forms beside a vote: claim, let go, snooze, ask back, a yes with a note."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from bot.approvals.comments import LONGEST_ASKED, MOST_KEPT
from bot.approvals.secondary_actions import SecondaryActions
from bot.audit.report import story
from bot.errors import DeliveryError, OutdatedCardError
from bot.layout.action_ids import ActionId
from bot.records.approval import Approval, CardClaim, Status
from storage.errors import StoreUnavailableError
from tests.support.stores import SqliteStores
from tests.unit.bot.approvals.test_votes import CLEO, MIA, TOM, TWO, asked
from tests.unit.bot.counter_stage import (
    Counter,
    Proxy,
    a_click,
    a_submission,
    an_event,
    picked,
    typed,
)
from tests.unit.bot.office import ADA, BEN, ROOT, ROSA, THREAD_ID, an_actor

REASONS: dict[str, Any] = {
    **TWO,
    "reason": {"approve": "required"},
    "reasons": ["Planned", "Urgent"],
}


async def a_counter(
    storage: SqliteStores, ask: dict[str, Any] | None = None
) -> tuple[Counter, Approval]:
    office = await asked(storage, ask or TWO)
    return Counter.on(office), await office.the_approval()


async def press(counter: Counter, action: ActionId, by: str) -> Approval:
    counter.office.clock.forward(seconds=1)
    approval = await counter.office.the_approval()
    assert (await counter.send(a_click(approval, action, by))).status == 200
    return await counter.office.storage.approvals.get(approval.approval_id)


async def codes(counter: Counter) -> list[str]:
    entries = await story(counter.office.storage, thread_id=THREAD_ID)
    return [str(entry.detail["code"]) for entry in entries if entry.action == "refused"]


async def acts(counter: Counter) -> list[str]:
    entries = await story(counter.office.storage, thread_id=THREAD_ID)
    return [entry.action for entry in entries if entry.action not in {"requested", "opened"}]


def a_choice(approval: Approval, value: object, by: str = ADA) -> dict[str, Any]:
    """A click on an option of the menu."""
    click = a_click(approval, ActionId.MORE, by)
    (action,) = click["actions"]
    del action["value"]
    click["actions"] = [{**action, "type": "overflow", "selected_option": {"value": value}}]
    return click


def chosen(number: object) -> dict[str, Any]:
    value = {"type": "static_select", "selected_option": {"value": number}}
    return {"canned": {"countersign:value": value}}


async def test_who_lets_go_of_what_they_do_not_have_reads_who_has_it(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    await press(counter, ActionId.CLAIM, ADA)
    await press(counter, ActionId.LET_GO, BEN)
    assert counter.private_text(BEN) == "Someone else is already on it. You can still decide."
    await press(counter, ActionId.LET_GO, ADA)
    await press(counter, ActionId.LET_GO, ADA)
    assert counter.private_text(ADA) == "No one is on it right now, so there's nothing to change."


async def test_a_vote_ends_a_claim_and_others_can_vote_meanwhile(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    await press(counter, ActionId.CLAIM, ADA)
    voted = await press(counter, ActionId.APPROVE, BEN)

    claim = voted.claim
    assert (claim.by, claim.past) == ("", (ADA,))
    assert len(voted.votes) == 1


async def test_of_two_who_claim_at_once_one_has_it(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage)
    await asyncio.gather(
        *(counter.send(a_click(approval, ActionId.CLAIM, by)) for by in (ADA, BEN, CLEO))
    )

    left = await storage.approvals.get(approval.approval_id)
    assert len(left.claim.past) == 1
    assert await codes(counter) == ["claimed_by_other"] * 2
    assert (await acts(counter)).count("claimed") == 1


async def test_i12_an_action_of_a_process_that_died_is_in_the_audit(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage)
    office, name = counter.office, approval.approval_id

    async def die(*_: object) -> None:
        raise StoreUnavailableError("the process died here")

    dead = Proxy(storage, {"audit": Proxy(storage.audit, {"append": die})})  # type: ignore[arg-type]
    actions = SecondaryActions(dead, office.approvals, office.clock)  # type: ignore[arg-type]
    with suppress(StoreUnavailableError):
        await actions.claim(name, an_actor(ADA), shown=approval.digest)
    assert "claimed" not in await acts(counter)

    for _ in range(2):
        await office.later()
        assert (await acts(counter)).count("claimed") == 1
    assert (await acts(counter)).count("claimed") == 1
    assert (await storage.approvals.get(name)).acts == ()


async def test_what_changes_all_the_time_is_said(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage)
    office, get = counter.office, storage.approvals.get
    revisions = count(approval.revision + 1)

    async def changed_again(key: str) -> Approval:
        return (await get(key)).changed(revision=next(revisions))

    busy = Proxy(storage, {"approvals": Proxy(storage.approvals, {"get": changed_again})})  # type: ignore[arg-type]
    approvals = replace(office.approvals, storage=busy)  # type: ignore[arg-type]
    actions = SecondaryActions(busy, approvals, office.clock)  # type: ignore[arg-type]
    with pytest.raises(OutdatedCardError):
        await actions.claim(approval.approval_id, an_actor(ADA), shown=approval.digest)
    assert (await office.the_approval()).claim == CardClaim()


@pytest.mark.parametrize(
    "state", [{}, {"selected_date_time": None}, {"selected_date_time": "soon"}, {"x": 1}]
)
async def test_what_is_no_time_is_said_at_the_form(
    storage: SqliteStores, state: dict[str, object]
) -> None:
    counter, approval = await a_counter(storage)
    values = {**picked("when", "other"), "until": {"countersign:value": state}}
    sent = a_submission(approval, ActionId.SNOOZE_MODAL, values, ADA)
    answer = json.loads((await counter.send(sent)).body)

    assert answer["errors"] == {"until": "Choose a date and a time"}
    assert (await storage.approvals.get(approval.approval_id)).snoozes == {}


async def test_a_time_that_is_over_is_said_at_the_form(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage)
    past = {"until": {"countersign:value": {"selected_date_time": 5}}}
    for values, place in (
        ({**picked("when", "other"), **past}, "until"),
        (picked("when", "at.5000"), "when"),
        (picked("when", "in.0"), "when"),
    ):
        sent = a_submission(approval, ActionId.SNOOZE_MODAL, values, ADA)
        answer = json.loads((await counter.send(sent)).body)
        assert answer["errors"] == {place: "Choose a time in the future"}


@pytest.mark.parametrize(
    "value", ["", "in", "in.", "in.-5", "on.5", "in.1e3", "in." + "9" * 50, 5, None, "in.\u0665"]
)
async def test_a_forged_time_is_refused(storage: SqliteStores, value: object) -> None:
    counter, approval = await a_counter(storage)
    sent = a_submission(approval, ActionId.SNOOZE_MODAL, picked("when", value), ADA)

    assert "isn't one I made" in str((await counter.send(sent)).body)
    assert (await storage.approvals.get(approval.approval_id)).snoozes == {}


@pytest.mark.parametrize("hours", [8, 9])
async def test_nobody_snoozes_beyond_the_deadline(storage: SqliteStores, hours: int) -> None:
    counter, approval = await a_counter(storage)
    values = picked("when", f"in.{hours * 3_600_000}")
    answer = json.loads(
        (await counter.send(a_submission(approval, ActionId.SNOOZE_MODAL, values, ADA))).body
    )

    assert "after the deadline" in answer["errors"]["when"]
    assert await codes(counter) == ["beyond_deadline"]


async def test_who_may_not_decide_gets_no_form_and_submits_none(storage: SqliteStores) -> None:
    counter, approval = await a_counter(storage)
    for action in (ActionId.SNOOZE, ActionId.ASK_BACK):
        await press(counter, action, TOM)
    assert counter.views.opened == []
    forms = [
        (ActionId.SNOOZE_MODAL, picked("when", "in.3600000")),
        (ActionId.ASK_BACK_MODAL, typed("question", "why?")),
        (ActionId.REVIEW_MODAL, typed("reason", "fine")),
    ]
    for modal, values in forms:
        counter.office.clock.forward(seconds=1)
        assert "not an approver" in str(
            (await counter.send(a_submission(approval, modal, values, TOM))).body
        )

    kept = await storage.approvals.get(approval.approval_id)
    counted = {"shown_revision", "shown_ms", "revision", "due_ms"}
    assert kept.model_dump(exclude=counted) == approval.model_dump(exclude=counted)
    assert await codes(counter) == ["not_approver"] * 5


async def test_a_refused_vote_finds_out_that_nobody_is_left_once_a_minute(
    storage: SqliteStores,
) -> None:
    counter, approval = await a_counter(storage)
    office = counter.office
    office.directory.groups["S0SRE"] = frozenset()
    assert not approval.stuck

    await press(counter, ActionId.APPROVE, TOM)
    await office.later()

    stuck = await storage.approvals.get(approval.approval_id)
    assert stuck.stuck
    await press(counter, ActionId.APPROVE, TOM)
    assert (
        await storage.approvals.get(approval.approval_id)
    ).shown_revision == stuck.shown_revision


async def ask_back(counter: Counter, text: str = "why now?", by: str = ADA) -> Approval:
    counter.office.clock.forward(seconds=1)
    approval = await counter.office.the_approval()
    sent = a_submission(approval, ActionId.ASK_BACK_MODAL, typed("question", text), by)
    assert (await counter.send(sent)).body == ""
    return await counter.office.storage.approvals.get(approval.approval_id)


def a_reply(counter: Counter, text: str, **changes: object) -> dict[str, Any]:
    ts = f"{counter.office.clock() / 1_000:.6f}"
    return an_event(text=text, thread_ts=ROOT, ts=ts, **changes)


async def test_a_question_is_asked_in_the_thread_and_answered_on_the_card(
    storage: SqliteStores,
) -> None:
    counter, _ = await a_counter(storage)
    await press(counter, ActionId.ASK_BACK, ADA)
    assert counter.views.opened[-1]["callback_id"] == ActionId.ASK_BACK_MODAL
    approval = await ask_back(counter)
    ((ts, by, text, mentions),) = counter.office.notifier.questions.values()
    assert (by, text, mentions) == (ADA, "why now?", (ROSA,))
    (question,) = approval.dialog
    assert (question.ts, question.is_open) == (ts, True)

    counter.office.clock.forward(seconds=1)
    reply = a_reply(counter, "the customer waits")
    for _ in range(2):  # Slack may send it twice
        await counter.send(reply)

    answered = await counter.office.the_approval()
    (question,) = answered.dialog
    assert (question.answer, question.answered_by) == ("the customer waits", ROSA)
    assert "the customer waits" in str(counter.office.notifier.cards[answered.approval_id].dialog)
    assert counter.office.notifier.closed_questions == [(ts, "why now?", "answered")]
    assert answered.said == ()
    assert await acts(counter) == ["asked_back", "asked_back"]
    assert await storage.inbox.new(THREAD_ID, limit=10) == []  # the agent does not read it
    assert counter.private_text(ROSA).startswith("Your answer is on the card.")
    assert answered.requesters == approval.requesters
    assert answered.expires_ms == approval.expires_ms


async def test_a_question_that_cannot_be_closed_now_is_closed_later(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    await ask_back(counter)
    office = counter.office
    office.notifier.failing.add("close question")
    office.clock.forward(seconds=1)
    await counter.send(a_reply(counter, "the customer waits"))
    assert office.notifier.closed_questions == []
    office.notifier.failing.clear()
    await office.later(minutes=5)
    assert [question[2] for question in office.notifier.closed_questions] == ["answered"]


async def test_only_a_requester_answers_and_each_question_once(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    early = a_reply(counter, "written before")
    await ask_back(counter, "first?")
    await ask_back(counter, "second?", by=MIA)
    counter.office.clock.forward(seconds=1)
    await counter.send(early)
    await counter.send(a_reply(counter, "not mine", user=BEN))
    assert all(question.is_open for question in (await counter.office.the_approval()).dialog)
    for text in ("one", "two", "three"):
        counter.office.clock.forward(seconds=1)
        await counter.send(a_reply(counter, text))

    dialog = (await counter.office.the_approval()).dialog
    assert [(question.text, question.answer) for question in dialog] == [
        ("first?", "one"),
        ("second?", "two"),
    ]
    texts = [message.text for message in await storage.inbox.new(THREAD_ID, limit=10)]
    assert texts == ["written before", "three"]  # for the agent, as ever


async def test_an_answer_that_loses_a_race_is_not_lost(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    await ask_back(counter)
    counter.office.clock.forward(seconds=1)
    approval = await counter.office.the_approval()
    await asyncio.gather(
        counter.send(a_reply(counter, "because")),
        counter.send(a_click(approval, ActionId.CLAIM, BEN)),
        counter.send(a_click(approval, ActionId.APPROVE, ADA)),
    )

    left = await counter.office.the_approval()
    assert left.dialog[0].answer == "because"
    assert [vote.by for vote in left.votes] == [ADA]


async def test_secrets_in_questions_and_answers_are_masked(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    secret = "xoxb-" + "1234567890-1234567890-abcdefghijklmnopqrstuvwx"
    await ask_back(counter, f"is it {secret}? {'x' * 3_000}")
    counter.office.clock.forward(seconds=1)
    await counter.send(a_reply(counter, f"yes, {secret}"))

    approval = await counter.office.the_approval()
    entries = await story(storage, thread_id=THREAD_ID)
    assert secret not in str(approval.dialog) + str(entries)
    assert len(approval.dialog[0].text) <= LONGEST_ASKED


@pytest.mark.parametrize("text", ["", "   ", "\u200b", None, 7])
async def test_a_question_without_words_is_not_asked(storage: SqliteStores, text: object) -> None:
    counter, approval = await a_counter(storage)
    sent = a_submission(approval, ActionId.ASK_BACK_MODAL, typed("question", text), ADA)

    assert "Enter your question" in str((await counter.send(sent)).body)
    assert (await counter.office.the_approval()).dialog == ()


async def test_a_question_that_slack_never_takes_stands_on_the_card(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    notifier = counter.office.notifier
    notifier.failing.add("ask back")
    notifier.faults["ask back"] = DeliveryError("chat.postMessage", "is_archived")
    approval = await ask_back(counter)

    assert (approval.dialog[0].ts, approval.dialog[0].closed) == ("", True)
    assert counter.office.notifier.cards[approval.approval_id].dialog != ()


async def test_only_the_newest_questions_are_kept(storage: SqliteStores) -> None:
    counter, _ = await a_counter(storage)
    for number in range(MOST_KEPT + 2):
        await ask_back(counter, f"question {number}")

    dialog = (await counter.office.the_approval()).dialog
    assert [question.text for question in dialog] == [
        f"question {n}" for n in range(2, MOST_KEPT + 2)
    ]


@pytest.mark.parametrize("value", [None, 7, "", "countersign:approve", {"a": 1}])
async def test_a_forged_option_does_nothing(storage: SqliteStores, value: object) -> None:
    counter, approval = await a_counter(storage)
    await counter.send(a_choice(approval, value))
    plain = a_click(approval, ActionId.APPROVE)["actions"][0]["value"]
    await counter.send(a_choice(approval, f"countersign:approve={plain}"))

    assert await storage.approvals.get(approval.approval_id) == approval
    assert "isn't one I made" in counter.private_text(ADA)


async def test_a_needed_reason_of_a_yes_is_typed_and_none_of_a_rejection_is_offered(
    storage: SqliteStores,
) -> None:
    counter, approval = await a_counter(storage, REASONS)
    await press(counter, ActionId.APPROVE, ADA)
    (block,) = [
        view_block
        for view_block in counter.views.opened[-1]["blocks"]
        if view_block["type"] == "input"
    ]
    assert (block["block_id"], block["optional"]) == ("reason", False)
    assert "Planned" not in str(counter.views.opened[-1])
    await counter.send(
        a_submission(approval, ActionId.REVIEW_MODAL, typed("reason", "own words"), ADA)
    )

    (vote,) = (await counter.office.the_approval()).votes
    assert vote.note == "own words"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "needs a reason"),
        (typed("reason", " \u200b "), "needs a reason"),
        (chosen("0"), "needs a reason"),
    ],
)
async def test_a_missing_or_forged_reason_decides_nothing(
    storage: SqliteStores, values: dict[str, Any], words: str
) -> None:
    counter, approval = await a_counter(storage, REASONS)
    sent = a_submission(approval, ActionId.REVIEW_MODAL, values, ADA)

    assert words in str((await counter.send(sent)).body)
    left = await counter.office.the_approval()
    assert (left.status, left.votes) == (Status.PENDING, ())
