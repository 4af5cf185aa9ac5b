"""What can be done with each kind of card, and what its forms say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.questions.choice import CHOICE as CHOICE_ID, selected_json
from bot.questions.drawing import drawn_question
from bot.questions.feedback import feedback_json
from bot.questions.form import AnswerForm, Form, Option
from bot.sandbox.blockkit.rules import view_errors
from bot.slack.cards.choose import card_for
from storage.records import Approval, Kind, Status
from tests.unit.bot.asked import (
    answer_modal,
    choose_modal,
    details_of,
    draft_of,
    errors_of,
    proposal_of,
    reject_modal,
)
from tests.unit.bot.slack.cards.samples import (
    CHOICE,
    TRIP,
    a_call_choice,
    a_choice,
    a_feedback,
    a_form,
    a_human,
    a_program,
    a_step,
    a_typed_question,
    an_approval,
    asking,
    decided,
)


def actions_of(card: Card) -> list[str]:
    found = [part["elements"] for part in card.blocks if part["type"] == "actions"]
    return [one["action_id"].removeprefix("countersign:") for row in found for one in row]


def draw(approval: Approval) -> Card:
    return card_for(approval, approvers_text="<@U0BEN>")


def said(card: Card) -> str:
    return json.dumps(card.blocks, ensure_ascii=False)


PICKS = ["pick_1", "pick_2", "pick_3"]


@pytest.mark.parametrize(
    ("approval", "actions"),
    [
        (a_human("accept"), ["approve", "more"]),
        (a_human("edit"), ["edit", "more"]),
        (a_human("response"), ["respond", "more"]),
        (a_human("ignore"), ["ignore", "more"]),
        (a_human(), ["more"]),
        (a_step(), ["approve", "reject", "edit", "more"]),
        (a_feedback(), ["accept", "answer", "more"]),
        (a_choice(), [*PICKS, "reject", "more"]),
        (a_choice(replace(CHOICE, can_decline=False)), [*PICKS, "more"]),
        (a_choice(replace(CHOICE, multiple=True)), ["choose", "reject", "more"]),
        (a_choice(replace(CHOICE, options=())), ["reject", "more"]),
        (a_call_choice(), [*PICKS, "reject", "more"]),
        (a_form(), ["answer", "reject", "more"]),
        (a_typed_question(), ["answer", "more"]),
        (a_program(), ["more"]),
    ],
)
def test_buttons(approval: Approval, actions: list[str]) -> None:
    assert actions_of(draw(approval)) == actions


@pytest.mark.parametrize("label", ["x" * 41, "\u202ehidden", "\u200b"])
def test_labels_that_do_not_fit_a_button_are_in_a_form(label: str) -> None:
    options = (Option(id="a", label=label), Option(id="b", label="B"))
    assert actions_of(draw(a_choice(replace(CHOICE, options=options)))) == [
        "choose",
        "reject",
        "more",
    ]


def many(count: int) -> Approval:
    options = tuple(Option(id=str(one), label=f"Option {one}") for one in range(count))
    return a_choice(replace(CHOICE, options=options))


def test_options_that_fit_a_menu() -> None:
    card = draw(many(100))
    assert actions_of(card) == ["choose", "reject", "more"]
    assert "20. " in said(card)
    assert "21. " not in said(card)
    view = choose_modal(many(100))
    assert view_errors(view) == []
    assert view["blocks"][1]["element"]["type"] == "static_select"
    assert "Option 99" in json.dumps(details_of(many(100)))


def test_more_options_than_a_menu_takes() -> None:
    card = draw(many(101))
    assert actions_of(card) == ["reject", "more"]
    assert "too many options" in said(card)
    assert "no form" in json.dumps(choose_modal(many(101)))


def test_yes_and_no_without_words_have_their_numbers() -> None:
    options = (Option(id="a", label="", value=True), Option(id="b", label=" ", value=False))
    view = choose_modal(a_choice(AnswerForm(form=Form.CHOICE, options=options)))
    assert view_errors(view) == []
    made = view["blocks"][1]["element"]["options"]
    assert [option["text"]["text"].strip() for option in made] == ["1.", "2."]


def test_menu_for_several_of_many() -> None:
    ask = replace(
        CHOICE, multiple=True, options=tuple(Option(id=str(n), label="x") for n in range(11))
    )
    element = choose_modal(a_choice(ask))["blocks"][1]["element"]
    assert element["type"] == "multi_static_select"
    assert [one["text"]["text"] for one in element["options"][:2]] == ["1. x", "2. x"]


def state(**fields: object) -> dict[str, Any]:
    return {CHOICE_ID: {ActionId.VALUE: fields}}


def value(index: object) -> dict[str, object]:
    return {"value": index}


@pytest.mark.parametrize(
    ("ask", "values", "ids"),
    [
        (CHOICE, state(selected_option=value("1")), ["b"]),
        (
            replace(CHOICE, multiple=True),
            state(selected_options=[value("2"), value("0")]),
            ["a", "c"],
        ),
    ],
)
def test_choice_is_read(ask: AnswerForm, values: dict[str, Any], ids: list[str]) -> None:
    draft = draft_of(a_choice(ask), ActionId.CHOOSE_MODAL, values)
    assert draft.answer_json == selected_json(ids)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {CHOICE_ID: 5},
        {CHOICE_ID: {ActionId.VALUE: None}},
        state(),
        state(selected_option=None),
        state(selected_option=value("3")),
        state(selected_option=value(["0"])),
        state(selected_option=value("a")),
        state(selected_options=[value("0")]),
    ],
)
def test_choice_that_is_none_is_refused(values: dict[str, Any]) -> None:
    assert list(errors_of(a_choice(), ActionId.CHOOSE_MODAL, values)) == [CHOICE_ID]


def test_several_that_are_none_or_twice_are_refused() -> None:
    several = a_choice(replace(CHOICE, multiple=True))
    for found in ([], [value("9")], [value("0"), value("0")], 5, None):
        values = state(selected_options=found)
        assert errors_of(several, ActionId.CHOOSE_MODAL, values)


def test_feedback_is_read() -> None:
    block = {"answer_0": {ActionId.VALUE: {"value": " Shorter. "}}}
    draft = draft_of(a_feedback(), ActionId.ANSWER_MODAL, block)
    assert draft.answer_json == feedback_json("Shorter.")
    assert list(errors_of(a_feedback(), ActionId.ANSWER_MODAL, {})) == ["answer_0"]


def test_fields_of_what_has_none() -> None:
    question = drawn_question(a_choice())
    for modal_id in (ActionId.ANSWER_MODAL, ActionId.EDIT_MODAL, "countersign:else_modal"):
        with pytest.raises(InvalidInputError):
            question.submit(modal_id, {})


def test_form_that_cannot_be_made() -> None:
    broken = asking(
        AnswerForm(form=Form.FIELDS, schema={"type": "nonsense"}),
        kind=Kind.QUESTION,
        tool="book",
        arguments_json="{}",
    )
    card = draw(broken)
    assert actions_of(card) == ["reject", "more"]
    assert "Can't be answered here" in said(card)
    assert "Can't be answered here" in json.dumps(answer_modal(broken))


def test_what_is_too_long_to_be_shown_is_not_accepted() -> None:
    long = json.dumps({"content": "x" * 400_000})
    assert actions_of(draw(replace(a_feedback(), arguments_json=long))) == ["more"]
    assert actions_of(draw(replace(a_step(), arguments_json=long))) == ["reject", "more"]
    human = replace(a_human("accept", "ignore", "response"), arguments_json=long)
    assert actions_of(draw(human)) == ["ignore", "more"]


def test_long_feedback_can_be_opened() -> None:
    text = "".join(f"{number:05d} " for number in range(1_000))
    approval = replace(a_feedback(), arguments_json=json.dumps({"content": text}))
    assert actions_of(draw(approval)) == ["accept", "answer", "more"]
    boxes = json.dumps(details_of(approval))
    assert "00999" in boxes


def test_damaged_content_is_said() -> None:
    assert "(nothing)" in said(draw(replace(a_feedback(), arguments_json="{")))


@pytest.mark.parametrize(
    ("approval", "title"),
    [
        (an_approval(), "Reject this?"),
        (a_step(), "Reject this?"),
        (a_choice(), "None of these"),
        (a_call_choice(), "Reject this?"),
        (a_form(), "Cancel request"),
    ],
)
def test_words_of_a_no(approval: Approval, title: str) -> None:
    assert reject_modal(approval)["title"]["text"] == title


def test_edit_of_a_step_keeps_what_has_no_input() -> None:
    step = a_step()
    values = {
        "argument_0": {ActionId.VALUE: {"value": "7"}},
        "argument_1": {ActionId.VALUE: {"selected_option": value("1")}},
    }
    result = proposal_of(step, ActionId.EDIT_MODAL, values)
    assert result.arguments == {"amount": 7, "place": "Oslo", "tags": ["a", "b"]}


def test_secret_of_an_answer_is_masked() -> None:
    told = '{"values": {"password": "hunter2hunter2", "place": "x"}}'
    schema: dict[str, Any] = {"type": "object", "properties": {"password": {"type": "string"}}}
    approval = replace(a_form(), schema_json=AnswerForm(form=Form.FIELDS, schema=schema).to_text())
    card = draw(decided(approval, Status.ANSWERED, answer_json=told))
    assert "hunter2" not in said(card) + card.text


@pytest.mark.parametrize(
    ("approval", "status", "words"),
    [
        (a_choice(), Status.EXPIRED, "Expired"),
        (a_step(), Status.CANCELLED, "Cancelled"),
        (replace(a_form(), kind=Kind.APPROVAL), Status.APPROVED, "Filled in"),
        (a_typed_question(), Status.REJECTED, "Not answered"),
        (a_human("ignore"), Status.PENDING, "Waiting for a decision"),
        (a_program(), Status.PENDING, "Waiting for an answer"),
    ],
)
def test_outcomes(approval: Approval, status: Status, words: str) -> None:
    assert drawn_question(replace(approval, status=status)).outcome() == words


def test_trip_form_names_what_is_missing() -> None:
    card = draw(a_form())
    assert "What is missing" in said(card)
    assert all(name in said(card) for name in TRIP["properties"])
    assert card.text.startswith("Something is missing: Book.")


def test_a_node_asks_in_plain_words() -> None:
    asked = json.dumps({"questions": ["May <!here> 2.0.0 be released?", "Really?"]})
    node = AnswerForm(form=Form.CALL, label="What it asks")
    card = draw(asking(node, tool="", preview="", arguments_json=asked))
    quotes = [part for part in quotes_of(card) if "released" in part]
    assert quotes == ["May <!here> 2.0.0 be released?\nReally?"]
    assert "questions" not in said(card)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("ask", {"questions": ["Really?"]}), ("", {"questions": ["Really?"], "shown": {"a": 1}})],
)
def test_more_than_the_questions_of_a_node_is_shown_as_arguments(
    tool: str, arguments: dict[str, Any]
) -> None:
    node = AnswerForm(form=Form.CALL, label="What it asks")
    card = draw(asking(node, tool=tool, preview="", arguments_json=json.dumps(arguments)))
    assert '"Questions "' in said(card)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "string", "title": "Answer"}, "Reply in this thread, or choose *Answer…*"),
        (
            {"type": "integer"},
            "Reply in this thread with a whole number, or choose *Answer…*",
        ),
        ({"type": "integer", "minimum": 2}, "Choose *Answer…* for a short form."),
        ({"type": "boolean"}, "Choose *Answer…* for a short form."),
    ],
)
def test_hint_says_what_a_reply_can_answer(schema: dict[str, Any], hint: str) -> None:
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {"answer": schema},
        "required": ["answer"],
    }
    ask = AnswerForm(form=Form.FIELDS, schema=wrapped, is_wrapped=True)
    asked = json.dumps({"questions": ["Well?"]})
    approval = asking(ask, kind=Kind.QUESTION, tool="", arguments_json=asked)
    assert hint in said(draw(approval))
    card = draw(decided(approval, Status.ANSWERED, answer_json='{"values": {"answer": 7}}'))
    assert "7" in quotes_of(card)
    assert '"answer: "' not in said(card)


def test_one_reply_to_several_questions_is_below_the_last() -> None:
    asked = json.dumps({"questions": ["Which period?", "Which region?"]})
    approval = asking(
        AnswerForm(form=Form.TEXTS), kind=Kind.QUESTION, tool="", arguments_json=asked
    )
    texts = said(draw(decided(approval, Status.ANSWERED, answer_json='["2027, Europe"]')))
    assert texts.index("Which region?") < texts.index("2027, Europe")
    each = said(draw(decided(approval, Status.ANSWERED, answer_json='["2027", "Europe"]')))
    assert each.index('"2027"') < each.index("Which region?") < each.index('"Europe"')


def quotes_of(card: Card) -> list[str]:
    """The text of each quote of a card."""
    parts = [part for block in card.blocks for part in block.get("elements", [])]
    return [
        "".join(one["text"] for one in part["elements"])
        for part in parts
        if part["type"] == "rich_text_quote"
    ]
