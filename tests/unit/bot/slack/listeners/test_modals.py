"""Signed submissions, right and wrong: an effect only for what our modals send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from tests.unit.bot.counter_stage import (
    Counter,
    a_submission,
    is_untouched,
    typed,
)


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
