"""Forms beyond one flat page: objects in objects, long texts, many values, many choices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.forms.edit import drawn, matching_options
from bot.layout.forms.fields import FieldKind, NotEditable, fields_of
from bot.layout.forms.hints import humanised
from bot.layout.forms.pages import (
    MOST_DRAFT,
    NO_DRAFT,
    FormDraft,
    InputForm,
    form_of,
    read_edit_form,
    read_new_form,
    with_draft,
)
from slack_sandbox.blockkit.rules import view_errors
from tests.unit.bot.layout.forms.test_edit import view_of
from tests.unit.bot.layout.forms_stage import blocks_of, pick, schema_with, submitted

ADDRESS = {
    "type": "object",
    "title": "Delivery address",
    "properties": {
        "street": {"type": "string", "title": "Street", "minLength": 1},
        "zip_code": {"type": "string", "pattern": "^[0-9]{5}$"},
        "floor": {"type": "integer"},
    },
    "required": ["street", "zip_code"],
}
ORDER = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "minLength": 1},
        "to": ADDRESS,
        "gift": {"type": "boolean"},
    },
    "required": ["item", "to"],
}
SENT = {"item": "book", "to": {"street": "Long Lane 1", "zip_code": "10115"}}
MANY = {
    "type": "object",
    "properties": {f"field_{number}": {"type": "string"} for number in range(200)},
}
LISTED = [f"region-{number:03}" for number in range(250)]


def labels(blocks: list[dict[str, Any]]) -> list[str]:
    return [block["label"]["text"] for block in blocks if block["type"] == "input"]


def made(schema: dict[str, Any], current: dict[str, Any], draft: FormDraft = NO_DRAFT) -> InputForm:
    form = form_of(schema, current, draft=draft)
    assert isinstance(form, InputForm), form
    return form


def test_the_fields_of_an_object_have_inputs_of_their_own() -> None:
    blocks = blocks_of(ORDER, SENT)
    assert labels(blocks) == ["Item", "Street", "Zip code", "Floor", "Gift"]
    headings = [block for block in blocks if block["type"] == "rich_text"]
    assert "Delivery address" in json.dumps(headings[0])
    assert view_errors(view_of(blocks)) == []
    assert read_edit_form(ORDER, SENT, submitted(blocks)).arguments == SENT
    edited = read_edit_form(ORDER, SENT, submitted(blocks, argument_2="20095"))
    assert edited.arguments == {"item": "book", "to": {**SENT["to"], "zip_code": "20095"}}  # type: ignore[dict-item]


def test_a_fault_in_an_object_stands_at_its_input() -> None:
    blocks = blocks_of(ORDER, SENT)
    result = read_edit_form(ORDER, SENT, submitted(blocks, argument_2="here", argument_3="80.5"))
    assert set(result.errors) == {"argument_2", "argument_3"}  # all faults in one round
    result = read_edit_form(ORDER, SENT, submitted(blocks, argument_2="here"))
    assert set(result.errors) == {"argument_2"}


def test_an_object_that_is_not_given_stays_away_until_something_is_typed() -> None:
    schema = {**ORDER, "required": ["item"]}
    current = {"item": "book"}
    blocks = blocks_of(schema, current)
    assert [block["optional"] for block in blocks if block["type"] == "input"] == [
        False,
        True,
        True,
        True,
        True,
    ]
    assert read_edit_form(schema, current, submitted(blocks)).arguments == current
    half = read_edit_form(schema, current, submitted(blocks, argument_1="Long Lane 1"))
    assert half.errors == {"argument_2": "This is required"}
    whole = submitted(blocks, argument_1="Long Lane 1", argument_2="10115")
    assert read_edit_form(schema, current, whole).arguments == SENT


def test_an_object_that_is_emptied_goes() -> None:
    schema = {**ORDER, "required": ["item"]}
    blocks = blocks_of(schema, SENT)
    nothing = submitted(blocks, argument_1=None, argument_2=None)
    result = read_edit_form(schema, SENT, nothing)
    assert result.errors == {"argument_1": "This is required", "argument_2": "This is required"}
    loose = {**schema, "properties": {**ORDER["properties"], "to": {**ADDRESS, "required": []}}}  # type: ignore[dict-item]
    assert read_edit_form(loose, SENT, nothing).arguments == {"item": "book"}


def test_a_new_form_with_an_object_without_need_gives_an_empty_one() -> None:
    schema = {**ORDER, "properties": {"to": {**ADDRESS, "required": []}}, "required": ["to"]}
    blocks = blocks_of(schema, {})
    assert read_new_form(schema, submitted(blocks)).arguments == {"to": {}}


def test_a_secret_in_an_object_stays_and_the_rest_can_be_edited() -> None:
    schema = schema_with(
        {
            "type": "object",
            "properties": {"password": {"type": "string"}, "user": {"type": "string"}},
        }
    )
    current = {"x": {"password": "hunter2hunter2", "user": "rosa"}}
    blocks = blocks_of(schema, current)
    assert labels(blocks) == ["User"]
    assert "hunter2" not in json.dumps(blocks)
    edited = read_edit_form(schema, current, submitted(blocks, argument_1="ada"))
    assert edited.arguments == {"x": {"password": "hunter2hunter2", "user": "ada"}}
    whole = {"properties": {"a": {"type": "string"}}, "type": "object"}
    hidden = form_of(schema_with(whole, credentials=1), {"x": {"a": "hunter2hunter2"}})
    assert not isinstance(hidden, NotEditable)
    named = {"type": "object", "properties": {"credentials": whole}}
    assert isinstance(form_of(named, {"credentials": {"a": "hunter2"}}), NotEditable)


def test_a_long_text_is_spread_over_several_inputs() -> None:
    text = "A sentence that people wrote. " * 300
    schema = schema_with({"type": "string", "title": "Body"})
    blocks = blocks_of(schema, {"x": text})
    count = len(blocks)
    assert labels(blocks) == [f"Body (part {number} of {count})" for number in range(1, count + 1)]
    assert count > 1
    parts = [block["element"]["initial_value"] for block in blocks]
    assert "".join(parts) == text
    assert all(part == part.strip() for part in parts[:-1])
    assert view_errors(view_of(blocks)) == []
    assert read_edit_form(schema, {"x": text}, submitted(blocks)).arguments == {"x": text}
    changed = read_edit_form(schema, {"x": text}, submitted(blocks, argument_0_1="New middle."))
    assert changed.arguments == {"x": "".join([parts[0], "New middle.", *parts[2:]])}


def test_a_text_that_is_too_long_stays_as_it_is_beside_what_can_be_edited() -> None:
    schema = {
        "type": "object",
        "properties": {"note": {"type": "string"}, "body": {"type": "string"}},
    }
    current = {"note": "hi", "body": "x" * 40_000}
    blocks = blocks_of(schema, current)
    assert labels(blocks) == ["Note"]
    assert "You can't change this here." in json.dumps(blocks)
    edited = read_edit_form(schema, current, submitted(blocks, argument_0="bye"))
    assert edited.arguments == {**current, "note": "bye"}


def test_many_choices_are_searched_for() -> None:
    schema = schema_with({"enum": LISTED})
    current = {"x": "region-007"}
    (block,) = blocks_of(schema, current)
    assert block["element"]["type"] == "external_select"
    assert block["element"]["initial_option"]["text"]["text"] == "region-007"
    assert view_errors(view_of([block])) == []
    field = made(schema, current).shown[0]
    assert [option["text"]["text"] for option in matching_options(field, "N-24")] == LISTED[240:250]
    assert len(matching_options(field, "")) == 100
    assert matching_options(field, "nowhere") == []
    state = {ActionId.VALUE: {"type": "external_select", "selected_option": pick(42)}}
    edited = read_edit_form(schema, current, {"argument_0": state})
    assert edited.arguments == {"x": "region-042"}
    forged = {ActionId.VALUE: {"type": "external_select", "selected_option": pick(250)}}
    assert read_edit_form(schema, current, {"argument_0": forged}).errors


def test_several_of_many_choices_are_searched_for() -> None:
    schema = schema_with({"type": "array", "items": {"enum": LISTED}})
    current = {"x": ["region-007", "region-100"]}
    (block,) = blocks_of(schema, current)
    assert block["element"]["type"] == "multi_external_select"
    assert len(block["element"]["initial_options"]) == 2
    state = {ActionId.VALUE: {"selected_options": [pick(100), pick(3)]}}
    edited = read_edit_form(schema, current, {"argument_0": state})
    assert edited.arguments == {"x": ["region-100", "region-003"]}


def test_a_nullable_search_offers_nothing_first() -> None:
    schema = schema_with({"anyOf": [{"enum": LISTED}, {"type": "null"}]})
    field = made(schema, {"x": "region-001"}).shown[0]
    assert matching_options(field, "")[0]["value"] == "nothing"
    assert len(matching_options(field, "")) == 100


def test_more_than_a_page_is_turned_without_losing_what_was_typed() -> None:
    current = dict.fromkeys(MANY["properties"], "old")
    form = made(MANY, current)
    assert len(form.pages) > 1
    for number in range(len(form.pages)):
        page = drawn(made(MANY, current, FormDraft(page=number)).shown)
        assert not isinstance(page, NotEditable)
        assert view_errors(view_of(page)) == []
    first = drawn(form.shown)
    assert not isinstance(first, NotEditable)
    draft = form.turned(submitted(first, argument_3="new"), 1)
    assert isinstance(draft, FormDraft)
    assert (draft.page, draft.changes) == (1, {("field_3",): "new"})
    assert len(draft.text()) < MOST_DRAFT
    second = made(MANY, current, FormDraft.read(draft.text()))
    blocks = drawn(second.shown)
    assert not isinstance(blocks, NotEditable)
    name = second.shown[0].block_id
    sent = with_draft(submitted(blocks, **{name: "too"}), draft.text())
    edited = read_edit_form(MANY, current, sent)
    assert edited.arguments == {**current, "field_3": "new", second.shown[0].name: "too"}
    back = second.turned(submitted(blocks), 0)
    assert isinstance(back, FormDraft)
    assert made(MANY, current, back).shown[3].value == "new"


def test_a_page_with_faults_is_not_left() -> None:
    schema = {"type": "object", "properties": {f"n{i}": {"type": "integer"} for i in range(120)}}
    current = dict.fromkeys(schema["properties"], 1)
    form = made(schema, current)
    blocks = drawn(form.shown)
    assert not isinstance(blocks, NotEditable)
    result = form.turned(submitted(blocks, argument_5="many"), 1)
    assert result == {"argument_5": "Use a whole number, such as 3"}


def test_a_fault_on_another_page_names_its_argument() -> None:
    schema = {
        "type": "object",
        "properties": {f"n{i}": {"type": "integer", "maximum": 5} for i in range(120)},
    }
    current = dict.fromkeys(schema["properties"], 1)
    draft = FormDraft(page=1, changes={("n3",): 9})
    form = made(schema, current, draft)
    blocks = drawn(form.shown)
    assert not isinstance(blocks, NotEditable)
    result = read_edit_form(schema, current, with_draft(submitted(blocks), draft.text()))
    assert result.errors == {form.shown[0].block_id: "n3: Use 5 or less"}


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "AAAA",
        "?",
        "e30=",
        FormDraft(page=1).text()[:-4],
        "eJyLNtRRiI4FAAPyAVY=",
        "é",
        "-" * 4_000,
    ],
)
def test_a_draft_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        read_edit_form(ORDER, SENT, with_draft({}, text))


def test_a_draft_changes_nothing_that_nobody_may_edit() -> None:
    schema = {
        "type": "object",
        "properties": {"password": {"type": "string"}, "note": {"type": "string"}},
    }
    current = {"password": "hunter2hunter2", "note": "a"}
    forged = FormDraft(changes={("password",): "mine", ("other",): 1, ("note",): "b"})
    form = made(schema, current, forged)
    assert form.current == {"password": "hunter2hunter2", "note": "b"}


def test_a_draft_that_swells_is_refused() -> None:
    huge = FormDraft(changes={("note",): "x" * 500_000})
    with pytest.raises(InvalidInputError):
        FormDraft.read(huge.text())


json_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20)


@settings(deadline=None, database=None)
@given(
    page=st.integers(0, 50),
    changes=st.dictionaries(
        st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple),
        json_scalars | st.lists(json_scalars, max_size=3),
        max_size=5,
    ),
)
def test_a_draft_comes_back_as_it_was(page: int, changes: dict[tuple[str, ...], object]) -> None:
    assert FormDraft.read(FormDraft(page=page, changes=changes).text()) == FormDraft(
        page=page, changes=changes
    )


@pytest.mark.parametrize(
    ("node", "hint"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 50}, "From 1 to 50."),
        ({"type": "integer", "exclusiveMinimum": 0}, "More than 0."),
        (
            {"type": "number", "exclusiveMaximum": 9, "multipleOf": 3},
            "Less than 9. A multiple of 3.",
        ),
        ({"type": "string", "minLength": 1, "maxLength": 9}, "From 1 to 9 characters."),
        ({"type": "string", "minLength": 1}, "At least 1 character."),
        (
            {"type": "string", "maxLength": 5, "examples": ["1.4.2"]},
            "At most 5 characters. Such as 1.4.2.",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            "At most 1 entry. Enter one per line.",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2},
            "At least 2 entries. Enter one per line.",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3},
            "From 2 to 3 entries. Enter one per line.",
        ),
    ],
)
def test_a_hint_says_what_is_allowed(node: dict[str, Any], hint: str) -> None:
    (block,) = blocks_of(
        schema_with(node),
        {"x": {"integer": 3, "number": 3, "string": "a", "array": ["b", "c"]}[node["type"]]},
    )
    assert block["hint"]["text"] == hint


@pytest.mark.parametrize(
    ("node", "hint"),
    [
        ({"type": "integer", "default": 3}, "If you leave this empty: 3."),
        ({"type": "string", "default": "eu"}, "If you leave this empty: eu."),
        ({"type": "boolean", "default": True}, "If you leave this empty: Yes."),
        ({"type": "string"}, "No value yet."),
        ({"type": "string", "default": ""}, None),
        ({"type": "string", "default": "xoxb-123456789-abcdefghij"}, "No value yet."),
    ],
)
def test_a_hint_says_what_holds_when_nothing_is_given(
    node: dict[str, Any], hint: str | None
) -> None:
    (block,) = blocks_of(schema_with(node, required=False), {})
    assert block.get("hint", {}).get("text") == hint


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("order_id", "Order ID"),
        ("notify", "Notify"),
        ("dueDate", "Due date"),
        ("callback-url", "Callback URL"),
        ("__x__", "__x__"),
        ("Größe in m", "Größe in m"),
        ("a", "A"),
    ],
)
def test_names_are_written_for_people(name: str, words: str) -> None:
    assert humanised(name) == words


def test_what_may_be_left_out_comes_last() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "required": ["c"],
    }
    assert labels(blocks_of(schema, {})) == ["C", "A", "B"]
    many = {f"f{number}": {"type": "string"} for number in range(14)}
    blocks = blocks_of({"type": "object", "properties": many, "required": ["f9"]}, {})
    assert labels(blocks)[0] == "F9"
    assert "Optional" in json.dumps(blocks[1])


def test_a_union_of_objects_is_json() -> None:
    node = {"anyOf": [ADDRESS, {"type": "object", "properties": {"x": {"type": "string"}}}]}
    fields = fields_of(schema_with(node), {"x": {"x": "a"}})
    assert not isinstance(fields, NotEditable)
    assert [field.kind for field in fields] == [FieldKind.JSON]
