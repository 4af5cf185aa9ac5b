"""The edit form: typed inputs out, typed arguments back, each error at its input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from agents.core.errors import ArgumentError, InvalidArgumentsError, ResumeDataError
from bot.errors import InvalidInputError
from bot.layout.action_ids import ActionId
from bot.layout.forms import edit as edit_cards
from bot.layout.forms.fields import NotEditable, fields_of
from bot.layout.forms.pages import read_edit_form
from bot.layout.forms.parse import EditResult
from bot.layout.modals import read_text
from bot.questions.drawing import drawn_question
from bot.questions.reasons import REASON
from slack_sandbox.blockkit.rules import view_errors
from tests.unit.bot.asked import answer_modal, edit_modal, errors_of, obstacle_of, proposal_of
from tests.unit.bot.layout.forms_stage import (
    ENUM,
    NULL,
    Values,
    blocks_of,
    drawn_form,
    edit,
    pick,
    schema_with,
    submitted,
)
from tests.unit.bot.slack.cards.samples import ARGUMENTS, SCHEMA, a_question, an_approval


@pytest.mark.parametrize(
    ("node", "value", "element"),
    [
        ({"type": "string"}, "abc", "plain_text_input"),
        ({"type": "string", "format": "multiline"}, "abc", "plain_text_input"),
        ({"type": "integer"}, 3, "number_input"),
        ({"type": "number"}, 1.5, "number_input"),
        ({"type": "number"}, 2, "number_input"),
        ({"type": "number"}, 1e-7, "number_input"),
        ({"type": "number"}, 1e300, "plain_text_input"),
        ({"type": "integer"}, 10**30, "plain_text_input"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, 12.5, "plain_text_input"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "12.50", "plain_text_input"),
        ({"type": "string", "format": "decimal"}, "12.50", "plain_text_input"),
        ({"type": "boolean"}, False, "radio_buttons"),
        (ENUM, "b", "static_select"),
        ({"const": "a"}, "a", "static_select"),
        ({"enum": [1, True, "x"]}, True, "static_select"),
        ({"enum": ["x" * 80]}, "x" * 80, "plain_text_input"),
        ({"enum": ["a", None]}, None, "plain_text_input"),
        ({"type": "array", "items": ENUM}, ["c", "a"], "checkboxes"),
        ({"type": "array", "items": {"enum": list(range(20))}}, [3], "multi_static_select"),
        ({"type": "array", "items": ENUM}, ["a", "a"], "plain_text_input"),
        ({"type": "array", "items": {"type": "string"}}, ["a"], "plain_text_input"),
        ({"type": "string", "format": "date"}, "2026-12-01", "datepicker"),
        ({"type": "string", "format": "date"}, "2026-W49-2", "plain_text_input"),
        ({"type": "string", "format": "date"}, "soon", "plain_text_input"),
        ({"type": "string", "format": "date-time"}, "2026-12-01T09:30:00Z", "datetimepicker"),
        ({"type": "string", "format": "date-time"}, "2026-12-01T09:30:00", "plain_text_input"),
        ({"type": "string", "format": "date-time"}, "never", "plain_text_input"),
        ({"type": "string", "format": "date-time"}, "0001-01-01T00:00:00Z", "plain_text_input"),
        ({"type": "object"}, {"a": [1]}, "plain_text_input"),
        ({}, "anything", "plain_text_input"),
        ({"type": "string"}, "hid\u202eden", "plain_text_input"),
        ({"type": "integer"}, "three", "plain_text_input"),
        ({"anyOf": [ENUM, NULL]}, None, "static_select"),
        ({"type": ["integer", "null"]}, None, "number_input"),
        ({"$ref": "#/$defs/No"}, 1, "plain_text_input"),
        ({"$ref": "elsewhere.json"}, 1, "plain_text_input"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}, NULL]}, 1, "plain_text_input"),
        ({"anyOf": [True, {"type": "string"}]}, 1, "plain_text_input"),
        ({"type": ["integer", "string"]}, 1, "plain_text_input"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, 1, "number_input"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, None, "plain_text_input"),
        ({"type": "string", "format": "decimal"}, "1\n2", "plain_text_input"),
    ],
)
def test_untouched_form_gives_exactly_what_was_there(
    node: dict[str, Any], value: object, element: str
) -> None:
    for required in (True, False):
        schema, current = schema_with(node, required=required), {"x": value}
        blocks = blocks_of(schema, current)
        assert blocks[0]["element"]["type"] == element
        result = read_edit_form(schema, current, submitted(blocks))
        assert result == EditResult(arguments=current)
        assert json.dumps(result.arguments) == json.dumps(current)


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "string", "readOnly": True}, "abc"),
        ({"readOnly": True}, ["./deploy.sh", "plan.bin"]),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "readOnly": True}, {"a": "b"}),
        ({"anyOf": [{"type": "integer"}, NULL], "readOnly": True}, None),
    ],
)
def test_a_value_that_is_read_only_is_shown_and_stays(node: dict[str, Any], value: object) -> None:
    schema = {"type": "object", "properties": {"x": node, "y": {"type": "string"}}}
    current = {"x": value, "y": "old"}
    fixed, open_ = blocks_of(schema, current)
    assert (fixed["type"], open_["type"]) == ("context", "input")
    forged = {**submitted([open_], argument_1="new"), "argument_0": {ActionId.VALUE: pick(0)}}
    assert read_edit_form(schema, current, forged) == EditResult(arguments={"x": value, "y": "new"})


@pytest.mark.parametrize(
    "node",
    [
        {"type": "string"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "decimal"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        ENUM,
        {"type": "array", "items": ENUM},
        {"type": "object"},
        {"anyOf": [{"type": "number"}, {"type": "string"}]},
    ],
)
def test_optional_argument_that_was_not_given_stays_away(node: dict[str, Any]) -> None:
    for shape in (node, {"anyOf": [node, NULL]}):
        schema = schema_with(shape, required=False)
        blocks = blocks_of(schema, {})
        assert blocks[0]["optional"] is True
        assert not any(name.startswith("initial") for name in blocks[0]["element"])
        assert read_edit_form(schema, {}, submitted(blocks)).arguments == {}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30)
    | st.sampled_from(["2026-12-01", "2026-12-01T09:30:00+02:00", "12.50", "", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
nodes = st.sampled_from(
    [
        {},
        {"type": "string"},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "decimal", "minimum": 1},
        {"type": "string", "format": "multiline", "title": "T", "description": "D"},
        {"type": "integer", "minimum": 1},
        {"type": "number", "maximum": 9},
        {"type": "boolean"},
        ENUM,
        {"enum": [1, 2.5, True, "a"]},
        {"type": "array", "items": ENUM},
        {"type": "object"},
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[0-9.]+$"}, NULL]},
        {"anyOf": [ENUM, NULL], "default": None},
        {"anyOf": [{"type": "boolean"}, NULL]},
        {"$ref": "#/$defs/Kind"},
        {"$ref": "#/$defs/Place"},
        {"anyOf": [{"$ref": "#/$defs/Place"}, NULL]},
    ]
)
PLACE = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "zip": {"anyOf": [{"type": "integer"}, NULL]},
        "inner": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
    },
    "required": ["city"],
}
places = st.fixed_dictionaries(
    {},
    optional={
        "city": st.text(max_size=5),
        "zip": st.none() | st.integers(),
        "inner": st.fixed_dictionaries({}, optional={"deep": st.booleans()}),
    },
)


@settings(deadline=None, database=None)
@given(properties=st.dictionaries(st.text(max_size=6), nodes, max_size=5), data=st.data())
def test_untouched_form_never_changes_anything(
    properties: dict[str, Any], data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(properties)) if properties else st.text(max_size=6)
    current = data.draw(st.dictionaries(names, json_values | places, max_size=5))
    required = data.draw(st.lists(names, max_size=3, unique=True))
    schema = {
        "type": "object",
        "properties": properties,
        "required": required if properties else [],
        "$defs": {"Kind": ENUM, "Place": PLACE},
    }
    blocks = drawn_form(schema, current)
    if isinstance(blocks, NotEditable):
        return
    assert view_errors(view_of(blocks)) == []
    result = read_edit_form(schema, current, submitted(blocks))
    if set(schema["required"]) <= set(current):
        assert result == EditResult(arguments=current)
        assert json.dumps(result.arguments) == json.dumps(current)


def view_of(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    words = {"type": "plain_text", "text": "x"}
    return {"type": "modal", "title": words, "submit": words, "blocks": blocks}


@pytest.mark.parametrize(
    ("node", "value", "typed", "expected"),
    [
        ({"type": "string"}, "a", "b", "b"),
        ({"type": "string"}, "a\nb", "a\r\nc", "a\nc"),
        ({"type": "integer"}, 3, " 5 ", 5),
        ({"type": "integer"}, 3, "-5", -5),
        ({"type": "number"}, 1.5, "2", 2.0),
        ({"type": "number"}, 1, "2", 2),
        ({"type": "number"}, 1, "2.25", 2.25),
        ({"type": "number"}, 1.5, ".5", 0.5),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, 12.5, "13", 13.0),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, 12, "13", 13),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, 12, "13.5", 13.5),
        (
            {"anyOf": [{"type": "number"}, {"type": "string"}]},
            12,
            "0.12345678901234567890",
            "0.12345678901234567890",
        ),
        ({"type": "string", "format": "decimal"}, "12.50", "13.00", "13.00"),
        ({"type": "string", "format": "decimal"}, "12.50", "+.50", "0.50"),
        ({"type": "boolean"}, True, pick(1), False),
        (ENUM, "a", pick(2), "c"),
        ({"enum": [1, True, "x"]}, 1, pick(1), True),
        ({"anyOf": [ENUM, NULL]}, "a", pick("nothing"), None),
        ({"anyOf": [ENUM, NULL]}, None, pick(0), "a"),
        ({"type": "array", "items": ENUM}, ["c", "a"], [pick(0), pick(1)], ["a", "b"]),
        ({"type": "array", "items": ENUM}, ["a"], [], []),
        ({"type": "string", "format": "date"}, "2026-12-01", "2026-12-24", "2026-12-24"),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00Z",
            1_796_120_000,
            "2026-12-01T10:13:20Z",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00+02:00",
            1_796_120_000,
            "2026-12-01T12:13:20+02:00",
        ),
        ({"type": "object"}, {"a": 1}, '{"a": [true]}', {"a": [True]}),
        ({"type": "array"}, [1], "[true]", [True]),
        ({"type": "string"}, "hid\u202eden", '"seen"', "seen"),
        ({"anyOf": [{"type": "string"}, NULL]}, "a", None, None),
        ({"anyOf": [{"type": "integer"}, NULL]}, 3, None, None),
    ],
)
def test_edited_value_keeps_its_type(
    node: dict[str, Any], value: object, typed: object, expected: object
) -> None:
    result = edit(schema_with(node), {"x": value}, typed)
    assert result.errors == {}
    assert json.dumps(result.arguments) == json.dumps({"x": expected})


def test_given_for_the_first_time() -> None:
    schema = schema_with({"type": "string", "format": "date-time"}, required=False)
    assert edit(schema, {}, 1_796_120_000).arguments == {"x": "2026-12-01T10:13:20Z"}
    schema = schema_with({"type": "string", "format": "decimal"}, required=False)
    assert edit(schema, {}, "1.50").arguments == {"x": "1.50"}
    schema = schema_with({"type": "number"}, required=False)
    assert edit(schema, {}, "3").arguments == {"x": 3}


@pytest.mark.parametrize(
    ("node", "value", "emptied"),
    [
        ({"type": "integer"}, 3, None),
        ({"type": "string", "minLength": 1}, "a", None),
        ({"type": "string", "format": "date"}, "2026-12-01", None),
        ({"type": "boolean"}, True, None),
    ],
)
def test_emptied_optional_argument_is_dropped(
    node: dict[str, Any], value: object, emptied: object
) -> None:
    assert edit(schema_with(node, required=False), {"x": value}, emptied).arguments == {}


def test_secret_is_not_in_the_form_and_stays() -> None:
    blocks = blocks_of(SCHEMA, ARGUMENTS)
    assert "sk-abc" not in json.dumps(blocks)
    secret = next(block for block in blocks if "redacted" in json.dumps(block))
    assert secret["type"] == "context"
    values = submitted(blocks, argument_3="5")
    values[secret["block_id"]] = {ActionId.VALUE: {"type": "plain_text_input", "value": "mine"}}
    result = read_edit_form(SCHEMA, ARGUMENTS, values)
    assert result.arguments == {**ARGUMENTS, "replicas": 5}


def test_labels_and_hints_come_from_the_schema() -> None:
    node = {"type": "integer", "title": "How many", "description": "Copies.", "minimum": 1}
    block = blocks_of(schema_with(node, required=False), {})[0]
    assert block["label"]["text"] == "How many"
    assert block["hint"]["text"] == "Copies. At least 1. No value yet."
    assert (
        blocks_of(schema_with({"type": "integer", "maximum": 9}), {"x": 1})[0]["hint"]["text"]
        == "At most 9."
    )
    assert blocks_of(schema_with({"type": "array"}), {"x": []})[0]["hint"]["text"] == "Enter JSON."
    empty = {"type": "object", "properties": {"": {"type": "string"}}}
    assert blocks_of(empty, {"": "a"})[0]["label"]["text"] == "(no name)"


@pytest.mark.parametrize(
    ("node", "value", "typed", "error"),
    [
        ({"type": "string"}, "a", None, "This is required"),
        ({"type": "array", "items": ENUM, "minItems": 1}, ["a"], [], "Add at least 1 entry"),
    ],
)
def test_a_required_value_is_not_called_optional(
    node: dict[str, Any], value: object, typed: object, error: str
) -> None:
    schema = schema_with(node)
    assert blocks_of(schema, {"x": value})[0]["optional"] is False
    assert edit(schema, {"x": value}, typed).errors == {"argument_0": error}


def test_empty_text_stays_empty() -> None:
    schema = schema_with({"type": "string", "pattern": "^a"})
    blocks = blocks_of(schema, {"x": ""})
    assert blocks[0]["optional"] is True
    assert read_edit_form(schema, {"x": ""}, submitted(blocks)).arguments == {"x": ""}


@pytest.mark.parametrize(
    ("schema", "current", "reason"),
    [
        (schema_with({}), {f"a{i}": 1 for i in range(501)}, "It has more than 500 fields."),
        (schema_with({"type": "string"}), {"x": "a" * 30_001}, "Nothing in it can be changed."),
        (schema_with({}), {"x": "sk-abcdefghijklmnopqrst"}, "Nothing in it can be changed."),
        ({"type": "object"}, {}, "Nothing in it can be changed."),
        ({"type": "string"}, {}, "The tool doesn't describe its fields."),
        ({"type": 5}, {}, "The tool doesn't describe its fields."),
        ({"type": "object", "properties": []}, {}, "The tool doesn't describe its fields."),
    ],
)
def test_no_form_says_why(schema: dict[str, Any], current: dict[str, Any], reason: str) -> None:
    assert drawn_form(schema, current) == NotEditable(reason=reason)
    approval = an_approval(form=schema, arguments=current)
    assert obstacle_of(approval) == reason
    view = edit_modal(approval)
    assert view_errors(view) == []
    assert reason in json.dumps(view, ensure_ascii=False)


def test_reading_a_form_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        read_edit_form({"type": "string"}, {}, {})
    broken = an_approval(form={})
    with pytest.raises(InvalidInputError):
        drawn_question(broken).submit(ActionId.EDIT_MODAL, {})
    assert obstacle_of(broken)
    with pytest.raises(InvalidInputError):
        drawn_question(an_approval(form={})).place_errors(ResumeDataError("no"))


def test_whole_form_is_read_from_the_record() -> None:
    approval = an_approval()
    blocks = edit_modal(approval)["blocks"]
    unchanged = drawn_question(approval).submit(ActionId.EDIT_MODAL, submitted(blocks))
    assert unchanged == {"argument_0": "You haven't changed anything. Use Approve instead."}
    values = submitted(blocks, argument_1="1.4.3", argument_12="7")
    changed = proposal_of(approval, ActionId.EDIT_MODAL, values)
    assert changed.arguments == {**ARGUMENTS, "version": "1.4.3", "limit": 7}


def test_errors_of_the_tool_stand_at_their_inputs() -> None:
    approval = an_approval()
    error = ResumeDataError("does not fit")
    error.__cause__ = InvalidArgumentsError(
        (
            ArgumentError(("version",), "unknown version"),
            ArgumentError(("options", "a/b", 0), "no"),
            ArgumentError(("other",), "wrong"),
        )
    )
    assert drawn_question(approval).place_errors(error) == {
        "argument_1": "unknown version",
        "argument_10": "a/b.0: no",
        "argument_0": "other: wrong",
    }
    assert drawn_question(approval).place_errors(ResumeDataError("no")) == {
        "argument_0": "The tool doesn't accept these values"
    }


def test_answers_are_read_and_needed() -> None:
    approval = a_question()
    values = submitted(answer_modal(approval)["blocks"], answer_0=" 1.4.2 ", answer_1="  ")
    errors = errors_of(approval, ActionId.ANSWER_MODAL, values)
    assert errors == {"answer_1": "Enter an answer"}


@pytest.mark.parametrize(
    "values", [{}, {"reason": None}, {"reason": {ActionId.VALUE: {"value": 5}}}]
)
def test_text_that_was_not_sent_is_empty(values: Values) -> None:
    assert read_text(values, REASON) == ""


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"type": "string", "title": "🦀" * 900, "description": "🦀" * 900}, "🦀" * 2_000),
        ({"type": "array", "items": {"enum": ["🦀" * 30 + str(n) for n in range(9)]}}, []),
        (
            {"type": "array", "items": {"enum": [f"{n} {'é' * 60}" for n in range(100)]}},
            [f"{n} {'é' * 60}" for n in range(30)],
        ),
        ({"type": "string", "writeOnly": True}, "x" * 500),
        ({"anyOf": [ENUM, NULL]}, None),
    ],
)
def test_no_block_is_longer_than_what_it_is_taken_to_be(
    node: dict[str, Any], value: object
) -> None:
    schema = {"type": "object", "properties": {"a": node}, "required": ["a"]}
    fields = fields_of(schema, {"a": value})
    assert not isinstance(fields, NotEditable)
    blocks = edit_cards.drawn(fields)
    assert not isinstance(blocks, NotEditable)
    assert len(json.dumps(blocks[0]).encode()) <= edit_cards.ceiling(fields[0])
