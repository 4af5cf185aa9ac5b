"""What can be done with each kind of card, and what its forms say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agents.core.codec import Json
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.blocks import Card
from bot.questions.choice import CHOICE as CHOICE_ID
from bot.questions.drawing import drawn_question
from bot.questions.form import AnswerForm, Form, Option
from bot.records.approval import Approval, Kind, Status
from bot.slack.cards.card_for import card_for
from slack_sandbox.blockkit.rules import view_errors
from tests.unit.bot.asked import (
    answer_modal,
    choose_modal,
    details_of,
    errors_of,
    modal_of,
)
from tests.unit.bot.slack.cards.reading import buttons, said
from tests.unit.bot.slack.cards.samples import (
    CHOICE,
    a_choice,
    a_feedback,
    a_form,
    a_human,
    a_question,
    asking,
    decided,
)


def actions_of(card: Card) -> list[str]:
    return [action.removeprefix("countersign:") for action in buttons(card)]


def draw(approval: Approval) -> Card:
    return card_for(approval, approvers_text="<@U0BEN>")


@pytest.mark.parametrize(
    ("approval", "actions"),
    [
        (a_human("accept"), ["approve", "more"]),
        (a_human("edit"), ["edit", "more"]),
        (a_human("response"), ["respond", "more"]),
        (a_human("ignore"), ["ignore", "more"]),
        (a_human(), ["more"]),
        (a_choice(replace(CHOICE, can_decline=False)), ["pick_1", "pick_2", "pick_3", "more"]),
        (a_choice(replace(CHOICE, multiple=True)), ["choose", "reject", "more"]),
        (a_choice(replace(CHOICE, options=())), ["reject", "more"]),
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
    options = tuple(Option(id=str(number), label=f"Option {number}") for number in range(count))
    return a_choice(replace(CHOICE, options=options))


def test_options_that_fit_a_menu() -> None:
    card = draw(many(100))
    assert actions_of(card) == ["choose", "reject", "more"]
    assert "Option 19" in said(card)
    assert "Option 20" not in said(card)
    view = choose_modal(many(100))
    assert view_errors(view) == []
    assert view["blocks"][1]["element"]["type"] == "static_select"
    assert "Option 99" in json.dumps(details_of(many(100)))


def test_more_options_than_a_menu_takes() -> None:
    card = draw(many(101))
    assert actions_of(card) == ["reject", "more"]
    assert "too many options" in said(card)
    assert "can't show this as a form" in json.dumps(choose_modal(many(101)))


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
    assert [option["text"]["text"] for option in element["options"][:2]] == ["1. x", "2. x"]


def state(**fields: object) -> dict[str, Any]:
    return {CHOICE_ID: {ActionId.VALUE: fields}}


def value(index: object) -> dict[str, object]:
    return {"value": index}


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
    for chosen in ([], [value("9")], [value("0"), value("0")], 5, None):
        values = state(selected_options=chosen)
        assert errors_of(several, ActionId.CHOOSE_MODAL, values)


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
        arguments={},
    )
    card = draw(broken)
    assert actions_of(card) == ["reject", "more"]
    assert "can't be answered here" in said(card)
    assert "can't be answered here" in json.dumps(answer_modal(broken))


def test_long_feedback_can_be_opened() -> None:
    text = "".join(f"{number:05d} " for number in range(1_000))
    approval = a_feedback().changed(arguments={"content": text})
    assert actions_of(draw(approval)) == ["accept", "answer", "more"]
    boxes = json.dumps(details_of(approval))
    assert "00999" in boxes


def test_damaged_content_is_said() -> None:
    assert "(nothing)" in said(draw(a_feedback().changed(arguments={"content": 5})))


def test_secret_of_an_answer_is_masked() -> None:
    answer: Json = {"values": {"password": "hunter2hunter2", "place": "x"}}
    schema: dict[str, Any] = {"type": "object", "properties": {"password": {"type": "string"}}}
    approval = a_form().changed(form=AnswerForm(form=Form.FIELDS, schema=schema).to_data())
    card = draw(decided(approval, Status.ANSWERED, answer=answer))
    assert "hunter2" not in said(card) + card.text


def test_a_question_is_its_title_and_is_said_once() -> None:
    asked = {"questions": ["Which market?"]}
    card = draw(a_question(title="Which market?", arguments=asked, why=""))
    assert [block["type"] for block in card.blocks] == ["section", "header", "context", "actions"]
    assert said(card).count('"Which market?"') == 1
    assert card.text.startswith("Answer needed: Which market? Requested by")


def menu_of(card: Card) -> list[str]:
    return [option["text"]["text"] for option in buttons(card)[ActionId.MORE]["options"]]


def a_round(before: str, after: str) -> Approval:
    return a_feedback(version=2, content=after, previous=before, wanted="could, not <!here> would")


def test_a_text_that_is_mostly_new_stands_alone() -> None:
    card = draw(a_round("one two three four", "five six seven four"))
    (quoted,) = card.blocks[2]["elements"]
    assert [element["text"] for element in quoted["elements"]] == ["five six seven four"]
    assert "Changed" not in said(card)
    view = modal_of(a_round("one two three four", "five six seven four"), ActionId.COMPARE)
    assert view_errors(view) == []
    assert '"strike": true' in json.dumps(view)
    assert "submit" not in view


def test_a_first_version_has_nothing_to_compare() -> None:
    assert "Compare versions" not in menu_of(draw(a_feedback()))
    with pytest.raises(InvalidInputError):
        drawn_question(a_feedback()).press(ActionId.COMPARE)


def test_texts_of_any_size_are_compared_in_time() -> None:
    long = a_round("a b " * 100_000, "b a " * 100_000)
    assert '"strike"' not in said(draw(long))
    assert '"strike"' not in said(draw(a_round("a b " * 2_000, "b a " * 2_000)))


def test_a_node_asks_in_plain_words() -> None:
    asked = {"questions": ["May <!here> 2.0.0 be released?", "Really?"]}
    node = AnswerForm(form=Form.CALL, label="What it's asking")
    card = draw(asking(node, tool="", preview="", arguments=asked))
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
    node = AnswerForm(form=Form.CALL, label="What it's asking")
    card = draw(asking(node, tool=tool, preview="", arguments=arguments))
    assert '"Questions "' in said(card)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        (
            {"type": "string", "title": "Answer"},
            "<@U0BEN> can answer. Replying in the thread works too.",
        ),
        ({"type": "integer"}, "<@U0BEN> can answer. Replying with a whole number works too."),
        ({"type": "integer", "minimum": 2}, "<@U0BEN> can answer."),
        ({"type": "boolean"}, "<@U0BEN> can answer."),
    ],
)
def test_hint_says_what_a_reply_can_answer(schema: dict[str, Any], hint: str) -> None:
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {"answer": schema},
        "required": ["answer"],
    }
    ask = AnswerForm(form=Form.FIELDS, schema=wrapped, is_wrapped=True)
    asked = {"questions": ["Well?"]}
    approval = asking(ask, kind=Kind.QUESTION, tool="", arguments=asked)
    assert hint in said(draw(approval))
    card = draw(decided(approval, Status.ANSWERED, answer={"values": {"answer": 7}}))
    assert card.blocks[2]["text"]["text"] == "7"
    assert '"answer: "' not in said(card)


def test_answers_have_the_numbers_of_their_questions() -> None:
    card = draw(decided(a_question(), Status.ANSWERED, answer=["2027, Europe"]))
    assert card.blocks[2]["text"]["text"] == "2027, Europe"
    each = draw(decided(a_question(), Status.ANSWERED, answer=["2027", "Europe"]))
    assert each.blocks[2]["text"]["text"] == "1. 2027\n2. Europe"
    assert each.text.endswith(". 1. 2027; 2. Europe")


def test_a_long_answer_is_whole_in_the_details() -> None:
    answer = "".join(f"{number:05d} " for number in range(600)).strip()
    done = decided(a_question(), Status.ANSWERED, answer=[answer, "b"])
    assert "…" in draw(done).blocks[2]["text"]["text"]
    assert "00599" in json.dumps(details_of(done))


def quotes_of(card: Card) -> list[str]:
    """The text of each quote of a card."""
    parts = [part for block in card.blocks for part in block.get("elements", [])]
    return [
        "".join(element["text"] for element in part["elements"])
        for part in parts
        if part["type"] == "rich_text_quote"
    ]
