"""Signed submissions, right and wrong: an effect only for what our modals send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.models import call, say
from bot.layout.action_ids import ActionId
from bot.records.approval import Status
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import (
    Counter,
    a_click,
    a_counter,
    a_submission,
    is_untouched,
    typed,
)
from tests.unit.bot.office import BEN, THREAD_ID


async def test_a_modal_that_is_not_ours(counter: Counter, subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"callback_id": ActionId.ANSWER_MODAL},
        {"callback_id": ActionId.RAN_MODAL},
        {"callback_id": ActionId.DETAILS_MODAL},
        {"callback_id": ActionId.NOTICE_MODAL},
        {"callback_id": "countersign:no_such_modal"},
        {"state": None},
        {"state": {}},
        {"state": {"values": []}},
        {"private_metadata": ""},
        {"private_metadata": None},
        {"private_metadata": "apr_x.y"},
    ]
    for changes in cases:
        with subtests.test(changes=changes):
            approval = await counter.office.the_approval()
            form = a_submission(approval, ActionId.REJECT_MODAL, typed("reason", "x"))
            form["view"] |= changes
            answer = await counter.send(form)
            assert answer.status == 200
            assert json.loads(answer.body)["response_action"] == "update"
            assert "isn't one I made" in answer.body
            await is_untouched(counter)


async def test_an_edit_without_its_fields(counter: Counter) -> None:
    form = a_submission(await counter.office.the_approval(), ActionId.EDIT_MODAL, {})
    answer = await counter.send(form)
    assert answer.status == 200
    assert "response_action" in answer.body
    await is_untouched(counter)


async def test_values_that_the_tool_does_not_take_are_on_record(counter: Counter) -> None:
    values = {**typed("argument_0", "Ben"), **typed("argument_1", "many")}
    form = a_submission(await counter.office.the_approval(), ActionId.EDIT_MODAL, values)
    answer = await counter.send(form)
    assert list(json.loads(answer.body)["errors"]) == ["argument_1", "argument_2"]
    await is_untouched(counter)
    entries = await counter.office.storage.audit.of_thread(THREAD_ID, limit=10)
    (refused,) = [entry for entry in entries if entry.action == "edit_refused"]
    assert refused.detail["code"] == "invalid_arguments"
    assert "many" not in str(refused.detail)


async def test_a_question_is_not_answered_by_nothing(storage: SqliteStores) -> None:
    asks = call("ask_people", {"questions": ["How much?"]}, id="q1")
    counter = await a_counter(storage, asks, say("Thanks."))
    question = await counter.office.the_approval()
    empty = await counter.send(a_submission(question, ActionId.ANSWER_MODAL, typed("answer_0", "")))
    assert json.loads(empty.body)["response_action"] == "errors"
    odd = await counter.send(a_submission(question, ActionId.ANSWER_MODAL, typed("answer_0", 5)))
    assert "response_action" in odd.body
    assert (await counter.office.the_approval()).status is Status.PENDING
    await counter.send(a_click(question, ActionId.ANSWER, BEN))
    assert counter.views.opened[-1]["callback_id"] == ActionId.ANSWER_MODAL
