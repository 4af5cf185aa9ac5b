"""Each fault of a submitted edit form stands at its input, in plain words."""

from __future__ import annotations

from typing import Any

import pytest

from bot.layout.forms.fields import fields_of
from bot.layout.forms.pages import read_edit_form
from bot.layout.forms.parse import EditResult
from bot.layout.forms.schema import check_arguments
from tests.unit.bot.layout.forms_stage import ENUM, NULL, edit, form_of, one, pick, submitted


@pytest.mark.parametrize(
    ("node", "value", "typed", "message"),
    [
        ({"type": "integer"}, 3, "three", "Please give a whole number, such as 3."),
        ({"type": "integer"}, 3, "3.5", "Please give a whole number, such as 3."),
        ({"type": "integer"}, 3, "٣", "Please give a whole number, such as 3."),
        ({"type": "integer"}, 3, None, "This is needed."),
        ({"type": "integer"}, 3, 7, "This must be a text of at most 3,000 characters."),
        ({"type": "string"}, "a", "x" * 3_001, "This must be a text of at most 3,000 characters."),
        ({"type": "integer", "minimum": 1}, 3, "0", "This must be at least 1."),
        ({"type": "integer", "maximum": 9}, 3, "10", "This must be at most 9."),
        ({"type": "number"}, 3, "NaN", "Please give a number, such as 12.50."),
        ({"type": "number"}, 3, "1e5", "Please give a number, such as 12.50."),
        (
            {"type": "number"},
            1.5,
            "0.12345678901234567890",
            "This has more digits than a number can keep.",
        ),
        ({"type": "number", "exclusiveMinimum": 0}, 3, "0", "This must be more than 0."),
        ({"type": "number", "exclusiveMaximum": 9}, 3, "9", "This must be less than 9."),
        ({"type": "number", "multipleOf": 2}, 2, "3", "This must be a multiple of 2."),
        (
            {"type": "string", "format": "decimal", "maximum": 500},
            "1.00",
            "500.01",
            "This must be at most 500.",
        ),
        (
            {"type": "string", "format": "decimal"},
            "1.0",
            "x",
            "Please give a number, such as 12.50.",
        ),
        ({"type": "string", "minLength": 3}, "abc", "ab", "Please use at least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abc", "abcd", "Please use at most 3 characters."),
        (
            {"type": "string", "pattern": "^v"},
            "v1",
            "1",
            "This does not have the form that the tool needs.",
        ),
        (
            {"type": "string", "pattern": "^(v+)+$"},
            "v",
            "v" * 1_500 + "!",
            "This does not have the form that the tool needs.",
        ),
        (ENUM, "a", pick(3), "This is not one of the choices."),
        (ENUM, "a", pick("a"), "This is not one of the choices."),
        (ENUM, "a", pick("nothing"), "This is not one of the choices."),
        (ENUM, "a", "forged", "This is not one of the choices."),
        ({"type": "boolean"}, True, pick(2), "This is not one of the choices."),
        ({"type": "array", "items": ENUM}, ["a"], [pick(9)], "This is not one of the choices."),
        ({"type": "array", "items": ENUM}, ["a"], ["a"], "This is not one of the choices."),
        ({"type": "array", "items": ENUM}, ["a"], pick(0), "This is not one of the choices."),
        (
            {"type": "array", "items": ENUM, "minItems": 1},
            ["a"],
            [],
            "Please give at least 1.",
        ),
        (
            {"type": "array", "items": ENUM, "maxItems": 1},
            ["a"],
            [pick(0), pick(1)],
            "Please give at most 1.",
        ),
        (
            {"type": "string", "format": "date"},
            "2026-12-01",
            "2026-13-01",
            "Please give a date, such as 2026-12-01.",
        ),
        (
            {"type": "string", "format": "date"},
            "2026-12-01",
            5,
            "Please give a date, such as 2026-12-01.",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00Z",
            "x",
            "Please give a date and time.",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00Z",
            True,
            "Please give a date and time.",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00",
            "soon",
            "Please give a date and time, such as 2026-12-01T09:30:00Z.",
        ),
        ({"type": "object"}, {}, "{'a': 1}", "This is not JSON. Texts need double quotes."),
        ({"type": "object"}, {}, "[" * 2_900, "This is not JSON. Texts need double quotes."),
        ({"type": "object"}, {}, '{"a": NaN}', "NaN is not a number in JSON."),
        ({"type": "object"}, {}, '{"a": 1, "a": 2}', "This has the same name twice."),
        ({"type": "object"}, {}, "[]", "This must be a JSON object."),
        ({"type": "array", "uniqueItems": True}, [], "[1, 1]", "This has the same entry twice."),
        (
            {"type": "array", "items": {"type": "number"}},
            [],
            '[1, "a"]',
            "1: This must be a number.",
        ),
        (
            {"type": "object", "required": ["a"]},
            {"a": 1},
            "{}",
            "a: This is needed.",
        ),
        (
            {"type": "object", "additionalProperties": False},
            {},
            '{"b": 1}',
            "This has a name that the tool does not know.",
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "boolean"}, NULL]},
            1,
            '"a"',
            "This must be a whole number.",
        ),
        ({"type": ["integer", "boolean"]}, 1, '"a"', "This must be a whole number or yes or no."),
        ({"not": {"type": "string"}}, 1, '"a"', "This does not have the form that the tool needs."),
    ],
)
def test_fault_stands_at_its_input(
    node: dict[str, Any], value: object, typed: object, message: str
) -> None:
    result = edit(one(node), {"x": value}, typed)
    assert result == EditResult(errors={"argument_0": message})


def test_input_that_was_not_sent_is_a_fault() -> None:
    schema = one({"type": "string"})
    for values in ({}, {"argument_0": None}, {"argument_0": {"other": {"value": "b"}}}):
        result = read_edit_form(schema, {"x": "a"}, values)
        assert result.errors == {"argument_0": "This was not sent. Please try again."}


def test_fault_that_was_there_before_is_left_to_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer", "maximum": 1}, "y": {"type": "integer"}},
    }
    blocks = form_of(schema, {"x": 5, "y": 1})
    result = read_edit_form(schema, {"x": 5, "y": 1}, submitted(blocks, argument_1="2"))
    assert result.arguments == {"x": 5, "y": 2}


def test_fault_of_the_whole_stands_at_the_first_input() -> None:
    schema = one({"type": "string"}, maxProperties=0)
    result = edit(schema, {"x": "a"}, "b")
    assert result.errors == {"argument_0": "This does not have the form that the tool needs."}


def test_reference_that_leads_elsewhere_is_a_fault_and_is_not_fetched() -> None:
    schema = one({"$ref": "http://schemas.example/x.json"})
    result = edit(schema, {"x": 1}, "2")
    assert result.errors == {"argument_0": "This cannot be checked against the tool's schema."}


def test_pattern_of_another_engine_is_left_to_the_tool() -> None:
    assert check_arguments(one({"type": "string", "pattern": r"\p{L}"}), {"x": "1"}) == {}


def test_words_for_one_character() -> None:
    assert check_arguments(one({"minLength": 1}), {"x": ""}) == {
        "/x": "Please use at least 1 character."
    }


def test_alternatives_and_other_types_are_checked_too() -> None:
    assert check_arguments(one({"pattern": "a"}), {"x": 5}) == {}
    only_null = {"anyOf": [{"type": "null"}, {"type": "null"}]}
    assert check_arguments(one(only_null), {"x": 5}) == {"/x": "This must be nothing."}
    loop = {**one({"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert fields_of(loop, {"x": 1})
    both = one({"type": "object", "required": ["a", "b"]})
    assert check_arguments(both, {"x": {"a": 1}}) == {"/x/b": "This is needed."}


def test_limits_ignore_what_is_not_a_number() -> None:
    node = {"minimum": 3, "format": "decimal", "type": ["string", "boolean"]}
    assert check_arguments(one(node), {"x": True}) == {}
    assert check_arguments(one({"minimum": 3}), {"x": "2"}) == {}
    assert check_arguments(one({"minimum": 3, "format": "decimal"}), {"x": "none"}) == {
        "/x": "Please give a number, such as 12.50."
    }
    assert "/x" in check_arguments(one({"format": "decimal"}), {"x": "NaN"})
