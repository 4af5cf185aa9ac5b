"""Buttons and forms of every way of asking, right and wrong: an effect only for what fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agents.core.errors import ArgumentError, InvalidArgumentsError
from bot.layout.action_ids import PICKS, ActionId
from bot.ports.threads import CheckedCall
from bot.records.approval import Approval, Status
from tests.scenario import asking
from tests.scenario.asking import RAN
from tests.support.stores import SqliteStores
from tests.unit.bot.counter_stage import Counter, a_click, a_submission, an_event, picked, typed
from tests.unit.bot.office import ADA, Office

Values = dict[str, Any]


@pytest.fixture
async def opened(storage: SqliteStores) -> Callable[[str], Any]:
    RAN.clear()

    async def open_one(agent: str) -> tuple[Counter, Approval]:
        counter = Counter.on(Office(storage, [], make_agent=getattr(asking, agent)))
        await counter.send(an_event(text="<@UBOT> go"))
        return counter, await counter.office.the_approval()

    return open_one


def body_of(answer: Any) -> Any:
    return json.loads(answer.body) if answer.body else {}


BUTTONS = (*PICKS, *(getattr(ActionId, name) for name in ("ACCEPT", "RESPOND", "IGNORE", "CHOOSE")))
FITTING = {
    "choose": {*PICKS[:3], ActionId.CHOOSE},
    "feedback": {ActionId.ACCEPT},
    "human_all": {ActionId.IGNORE, ActionId.RESPOND},
    "free": set(),
    "graph_break": set(),
    "machine": set(),
}


@pytest.mark.parametrize("agent", sorted(FITTING))
async def test_button_of_another_card_does_nothing(
    opened: Callable[[str], Any], agent: str, subtests: pytest.Subtests
) -> None:
    counter, approval = await opened(agent)
    for action in (action for action in BUTTONS if action not in FITTING[agent]):
        with subtests.test(action=action):
            counter.office.notifier.whispers.clear()
            await counter.send(a_click(approval, action) | {"trigger_id": action})
            assert "isn't one I made" in counter.private_text(ADA)
            assert (await counter.office.the_approval()).status is Status.PENDING
            assert counter.views.opened == []
            assert RAN == []


@pytest.mark.parametrize(
    ("agent", "modal", "values"),
    [
        ("choose", ActionId.ANSWER_MODAL, typed("answer_0", "Rome")),
        ("free", ActionId.CHOOSE_MODAL, picked("choice", "0")),
        ("free", ActionId.RESPOND_MODAL, typed("response", "x")),
        ("free", ActionId.REJECT_MODAL, {}),
        ("choose_place", ActionId.RESPOND_MODAL, typed("response", "x")),
        ("machine", ActionId.ANSWER_MODAL, typed("answer_0", "20")),
        ("human_strict", ActionId.EDIT_MODAL, {}),
        ("human_strict", ActionId.REJECT_MODAL, {}),
        ("staged", ActionId.EDIT_MODAL, {}),
        ("graph_break", ActionId.ANSWER_MODAL, typed("answer_0", "x")),
    ],
)
async def test_form_of_another_card_does_nothing(
    opened: Callable[[str], Any], agent: str, modal: ActionId, values: Values
) -> None:
    counter, approval = await opened(agent)
    answer = body_of(await counter.send(a_submission(approval, modal, values)))
    assert answer["response_action"] == "update"
    assert "isn't one I made" in str(answer["view"])
    assert (await counter.office.the_approval()).status is Status.PENDING
    assert RAN == []


@pytest.mark.parametrize(
    ("agent", "modal", "values", "block"),
    [
        ("choose", ActionId.CHOOSE_MODAL, {}, "choice"),
        ("choose", ActionId.CHOOSE_MODAL, picked("choice", "7"), "choice"),
        ("choose_several", ActionId.CHOOSE_MODAL, picked("choice", "0"), "choice"),
        ("human_all", ActionId.RESPOND_MODAL, typed("response", "  "), "response"),
        ("feedback", ActionId.ANSWER_MODAL, typed("answer_0", ""), "answer_0"),
        ("free", ActionId.ANSWER_MODAL, {}, "answer_0"),
        ("graph_number", ActionId.ANSWER_MODAL, typed("argument_0", "many"), "argument_0"),
        ("complete", ActionId.ANSWER_MODAL, typed("argument_0", "many"), "argument_0"),
    ],
)
async def test_fault_is_said_in_the_form(
    opened: Callable[[str], Any], agent: str, modal: ActionId, values: Values, block: str
) -> None:
    counter, approval = await opened(agent)
    answer = body_of(await counter.send(a_submission(approval, modal, values)))
    assert answer["response_action"] == "errors"
    assert block in answer["errors"]
    assert (await counter.office.the_approval()).status is Status.PENDING


async def test_tool_has_the_last_word_about_what_is_filled_in(opened: Callable[[str], Any]) -> None:
    counter, approval = await opened("complete")
    seen: list[dict[str, Any]] = []

    async def check(_: Approval, arguments: dict[str, Any]) -> CheckedCall:
        seen.append(arguments)
        if arguments["seats"] > 4:
            raise InvalidArgumentsError([ArgumentError(("seats",), "There are only four.")])
        return CheckedCall(arguments={**arguments, "meals": ["rice"]}, title="Book 4 seats")

    counter = Counter.on(counter.office, check)
    empty = typed("argument_1", "")
    wrong = a_submission(approval, ActionId.ANSWER_MODAL, {**typed("argument_0", "5"), **empty})
    errors = body_of(await counter.send(wrong))["errors"]
    assert errors == {"argument_0": "There are only four."}
    assert seen == [{"place": "Rome", "window": False, "seats": 5, "meals": None}]
    assert RAN == []
    fine = a_submission(approval, ActionId.ANSWER_MODAL, {**typed("argument_0", "4"), **empty})
    await counter.send(fine)
    assert RAN == [("book", "Rome", 4, ["rice"], False)]
    done = await counter.office.storage.approvals.get(approval.approval_id)
    assert done.decision is not None
    assert done.decision.title == "Book 4 seats"
