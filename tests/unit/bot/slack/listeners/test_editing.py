"""A form while it is filled in: its pages are turned, and choices are searched for."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bot.layout.action_ids import ActionId
from bot.layout.forms.pages import FormDraft
from bot.ports.threads import CheckedCall
from bot.questions.drawing import drawn_question
from bot.questions.inputs import InputsQuestion
from bot.records.approval import Approval, Status
from bot.records.origin import AgentRun
from tests.unit.bot.asked import form_of
from tests.unit.bot.counter_stage import Counter, a_click
from tests.unit.bot.layout.forms_stage import submitted
from tests.unit.bot.office import ADA

REGIONS = [f"region-{number:03}" for number in range(150)]
PROPERTIES: dict[str, Any] = {
    "region": {"enum": REGIONS},
    **{f"f{number}": {"type": "integer"} for number in range(120)},
}
ARGUMENTS = {"region": "region-001", **{f"f{number}": 1 for number in range(120)}}
STRANGER = "UTOM"


async def as_it_is(_: Approval, arguments: dict[str, Any]) -> CheckedCall:
    """The tool takes all arguments of the long form."""
    return CheckedCall(arguments=arguments)


async def a_long_form(counter: Counter, *, is_read: bool = True) -> Approval:
    """A pending call with more arguments than a modal has room for."""
    storage = counter.office.storage
    schema = {"type": "object", "properties": PROPERTIES, "required": [*PROPERTIES]}
    approval = (await counter.office.the_approval()).changed(
        approval_id=f"apr_{7:032x}",
        asker=AgentRun(interrupt_id=f"{7:032x}", address="agent:A;tool:pay:1"),
        form=schema,
        arguments=ARGUMENTS,
    )
    await storage.approvals.insert(approval)
    if is_read:
        await counter.office.approvals.note_details(approval, ADA)
    return await storage.approvals.get(approval.approval_id)


async def stored(counter: Counter, approval: Approval) -> Approval:
    return await counter.office.storage.approvals.get(approval.approval_id)


def opened(approval: Approval) -> dict[str, Any]:
    question = drawn_question(approval)
    assert isinstance(question, InputsQuestion)
    return form_of(approval, question.form_modal())


def on_page(
    approval: Approval, view: dict[str, Any], user_id: str = ADA, **changes: Any
) -> dict[str, Any]:
    """What Slack sends from an open form."""
    click = a_click(approval, ActionId.EDIT_PAGE, user_id)
    del click["channel"], click["message"]
    values = submitted(view["blocks"], **changes)
    shown = {**view, "id": "V1", "hash": "h1", "state": {"values": values}}
    return {**click, "container": {"type": "view", "view_id": "V1"}, "view": shown}


def turning(approval: Approval, view: dict[str, Any], page: object, **more: Any) -> dict[str, Any]:
    payload = on_page(approval, view, **more)
    action = {
        "type": "static_select",
        "action_id": ActionId.EDIT_PAGE,
        "block_id": "page",
        "selected_option": {"value": page},
    }
    return {**payload, "actions": [action]}


def searching(
    approval: Approval,
    view: dict[str, Any],
    typed: object,
    block_id: str = "argument_0",
    **more: Any,
) -> dict[str, Any]:
    payload = on_page(approval, view, **more)
    del payload["actions"]
    search = {"action_id": ActionId.VALUE, "block_id": block_id, "value": typed}
    return {**payload, "type": "block_suggestion", **search}


async def test_a_page_is_turned_with_what_was_typed(counter: Counter) -> None:
    approval = await a_long_form(counter)
    view = opened(approval)
    assert view["blocks"][1]["elements"][0]["action_id"] == ActionId.EDIT_PAGE

    answer = await counter.send(turning(approval, view, "1", argument_3="7"))

    assert answer.status == 200
    (update,) = counter.views.updated
    assert (update["view_id"], update["hash"]) == ("V1", "h1")
    kept = update["view"]["private_metadata"].partition("|")[2]
    assert FormDraft.read(kept) == FormDraft(page=1, changes={("f2",): 7})
    assert update["view"]["callback_id"] == ActionId.EDIT_MODAL


async def test_a_page_is_turned_only_by_who_has_opened_the_whole_call(counter: Counter) -> None:
    approval = await a_long_form(counter, is_read=False)
    await counter.send(turning(approval, opened(approval), "1", argument_3="7"))
    assert counter.views.updated == []


async def test_what_was_typed_on_all_pages_is_one_edit(counter: Counter) -> None:
    counter = Counter.on(counter.office, as_it_is)
    approval = await a_long_form(counter)
    await counter.send(turning(approval, opened(approval), "1", argument_3="7"))
    second = counter.views.updated[0]["view"]
    last = [block for block in second["blocks"] if block["type"] == "input"][-1]
    payload = on_page(approval, second, **{last["block_id"]: "9"})
    del payload["actions"]

    answer = await counter.send({**payload, "type": "view_submission"})

    assert answer.body == ""
    decided = await stored(counter, approval)
    edited = decided.decision.arguments if decided.decision else decided.arguments
    assert edited == {**ARGUMENTS, "f2": 7, "f119": 9}


async def test_a_faulty_page_stays_and_says_what_is_wrong(counter: Counter) -> None:
    approval = await a_long_form(counter)
    await counter.send(turning(approval, opened(approval), "1", argument_3="many"))
    view = counter.views.updated[0]["view"]
    assert view["blocks"][0]["type"] == "alert"
    assert view["blocks"][0]["text"]["text"] == "F2: Use a whole number, such as 3"
    # Slack keeps what was typed where the inputs have the ids of before.
    before = [block["block_id"] for block in opened(approval)["blocks"] if block["type"] == "input"]
    assert (
        [block["block_id"] for block in view["blocks"] if block["type"] == "input"] == before != []
    )
    assert "|" not in view["private_metadata"]


async def test_too_much_to_carry_is_said(counter: Counter) -> None:
    approval = await a_long_form(counter)
    texts = {f"t{number}": {"type": "string"} for number in range(120)}
    wide = approval.changed(
        approval_id=f"apr_{8:032x}",
        asker=AgentRun(interrupt_id=f"{8:032x}", address="agent:A;tool:pay:1"),
        form={"type": "object", "properties": texts},
        arguments=dict.fromkeys(texts, "a"),
    )
    await counter.office.storage.approvals.insert(wide)
    dice = random.Random(1)  # noqa: S311 - what cannot be made small
    noise = {f"argument_{n}": dice.randbytes(700).hex() for n in range(6)}
    await counter.send(turning(wide, opened(wide), "1", **noise))
    view = counter.views.updated[0]["view"]
    assert view["blocks"][0]["text"]["text"].startswith("Too many changes for one form.")


async def test_choices_are_searched(counter: Counter) -> None:
    approval = await a_long_form(counter)
    answer = await counter.send(searching(approval, opened(approval), "N-14"))
    options = json.loads(answer.body)["options"]
    assert [option["text"]["text"] for option in options] == REGIONS[140:150]
    assert [option["value"] for option in options] == [str(number) for number in range(140, 150)]
    everything = json.loads((await counter.send(searching(approval, opened(approval), ""))).body)
    assert len(everything["options"]) == 100


@pytest.mark.parametrize("typed", [None, 5, {"a": 1}, "x" * 100_000])
async def test_strange_searches_are_answered(counter: Counter, typed: object) -> None:
    approval = await a_long_form(counter)
    answer = await counter.send(searching(approval, opened(approval), typed))
    assert answer.status == 200
    assert "options" in json.loads(answer.body)


async def test_who_may_not_edit_turns_and_finds_nothing(counter: Counter) -> None:
    approval = await a_long_form(counter)
    view = opened(approval)
    assert (await counter.send(turning(approval, view, "1", user_id=STRANGER))).status == 200
    answer = await counter.send(searching(approval, view, "", user_id=STRANGER))
    assert json.loads(answer.body) == {"options": []}
    assert counter.views.updated == []


async def test_a_page_that_is_none_is_refused(counter: Counter, subtests: pytest.Subtests) -> None:
    cases: list[object] = ["", "-1", "1.5", "٣", "1" * 50, None, 1, "99999"]
    approval = await a_long_form(counter)
    for page in cases:
        with subtests.test(page=page):
            await counter.send(turning(approval, opened(approval), page))
            assert counter.views.updated == []


async def test_a_page_beyond_the_last_is_the_last(counter: Counter) -> None:
    approval = await a_long_form(counter)
    await counter.send(turning(approval, opened(approval), "999"))
    view = counter.views.updated[0]["view"]
    kept = FormDraft.read(view["private_metadata"].partition("|")[2])
    assert kept.page == 1


async def test_a_form_that_keeps_something_else_does_nothing(
    counter: Counter, subtests: pytest.Subtests
) -> None:
    cases: list[object] = [5, None, "nonsense", "|", "a.b|c"]
    approval = await a_long_form(counter)
    for kept in cases:
        with subtests.test(kept=kept):
            view = {**opened(approval), "private_metadata": kept}
            await counter.send(turning(approval, view, "1"))
            answer = await counter.send(searching(approval, view, ""))
            assert json.loads(answer.body) == {"options": []}
            assert counter.views.updated == []
            assert (await stored(counter, approval)).status is Status.PENDING


async def test_a_search_in_what_has_no_choices_finds_none(counter: Counter) -> None:
    approval = await a_long_form(counter)
    payload = searching(approval, opened(approval), "", block_id="argument_1")
    assert json.loads((await counter.send(payload)).body) == {"options": []}


async def test_a_form_that_slack_does_not_take_is_said(counter: Counter) -> None:
    approval = await a_long_form(counter)
    counter.views.failing = True
    answer = await counter.send(turning(approval, opened(approval), "1"))
    assert answer.status == 200
    assert counter.views.updated == []
    assert (await stored(counter, approval)).status is Status.PENDING
