"""Each fault of a submitted edit form stands at its input, in plain words."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, cast

import pytest
from pydantic import Field

from agents.tools.schema import parameters
from bot.layout.forms.fields import fields_of
from bot.layout.forms.pages import read_edit_form
from bot.layout.forms.parse import EditResult
from bot.layout.forms.schema import check_arguments
from tests.unit.bot.layout.forms_stage import (
    ENUM,
    NULL,
    blocks_of,
    edit,
    pick,
    schema_with,
    submitted,
)


def paid(x: Annotated[Decimal, Field(decimal_places=2)]) -> None:
    """Pay.

    Args:
        x: How much.
    """


MONEY: Any = cast("Any", parameters(paid).schema)["properties"]["x"]


@pytest.mark.parametrize(
    ("node", "value", "typed", "message"),
    [
        ({"type": "integer"}, 3, "three", "Use a whole number, such as 3"),
        ({"type": "integer"}, 3, "3.5", "Use a whole number, such as 3"),
        ({"type": "integer"}, 3, "٣", "Use a whole number, such as 3"),
        ({"type": "integer"}, 3, None, "This is required"),
        ({"type": "integer"}, 3, 7, "Use at most 3000 characters"),
        ({"type": "string"}, "a", "x" * 3_001, "Use at most 3000 characters"),
        ({"type": "integer", "minimum": 1}, 3, "0", "Use 1 or more"),
        ({"type": "integer", "maximum": 9}, 3, "10", "Use 9 or less"),
        ({"type": "number"}, 3, "NaN", "Use a number, such as 12.50"),
        ({"type": "number"}, 3, "1.000", "This can be read as two numbers. Write 1000 or 1.0000"),
        (
            {"type": "number"},
            3,
            "-12.500",
            "This can be read as two numbers. Write -12500 or -12.5000",
        ),
        (
            {"type": "string", "format": "decimal"},
            "3",
            "1.000",
            "This can be read as two numbers. Write 1000 or 1.0000",
        ),
        ({"type": "number"}, 3, "1e5", "Use a number, such as 12.50"),
        ({"type": "number"}, 1.5, "0.12345678901234567890", "Use fewer digits"),
        ({"type": "number", "exclusiveMinimum": 0}, 3, "0", "Use more than 0"),
        ({"type": "number", "exclusiveMaximum": 9}, 3, "9", "Use less than 9"),
        ({"type": "number", "multipleOf": 2}, 2, "3", "Use a multiple of 2"),
        (
            {"type": "string", "format": "decimal", "maximum": 500},
            "1.00",
            "500.01",
            "Use 500 or less",
        ),
        ({"type": "string", "format": "decimal"}, "1.0", "x", "Use a number, such as 12.50"),
        (MONEY, "1.00", "1.005", "Use at most 2 digits after the point"),
        ({"type": "string", "minLength": 3}, "abc", "ab", "Use at least 3 characters"),
        ({"type": "string", "maxLength": 3}, "abc", "abcd", "Use at most 3 characters"),
        (
            {"type": "string", "pattern": "^v"},
            "v1",
            "1",
            "Check the format: the tool doesn't accept this",
        ),
        (
            {"type": "string", "pattern": "^v", "description": "Letters, such as v1."},
            "v1",
            "1",
            "Check the format: see below",
        ),
        (
            {"type": "string", "pattern": "^(v+)+$"},
            "v",
            "v" * 1_500 + "!",
            "Check the format: the tool doesn't accept this",
        ),
        (ENUM, "a", pick(3), "Choose one from the list"),
        (ENUM, "a", pick("a"), "Choose one from the list"),
        (ENUM, "a", pick("nothing"), "Choose one from the list"),
        (ENUM, "a", "forged", "Choose one from the list"),
        ({"type": "boolean"}, True, pick(2), "Choose one from the list"),
        ({"type": "array", "items": ENUM}, ["a"], [pick(9)], "Choose one from the list"),
        ({"type": "array", "items": ENUM}, ["a"], ["a"], "Choose one from the list"),
        ({"type": "array", "items": ENUM}, ["a"], pick(0), "Choose one from the list"),
        ({"type": "array", "items": ENUM, "minItems": 1}, ["a"], [], "Add at least 1 entry"),
        (
            {"type": "array", "items": ENUM, "maxItems": 1},
            ["a"],
            [pick(0), pick(1)],
            "Use at most 1 entry",
        ),
        (
            {"type": "string", "format": "date"},
            "2026-12-01",
            "2026-13-01",
            "Use a date, such as 2026-12-01",
        ),
        ({"type": "string", "format": "date"}, "2026-12-01", 5, "Use a date, such as 2026-12-01"),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00Z",
            "x",
            "Choose a date and a time",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00Z",
            True,
            "Choose a date and a time",
        ),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-01T09:30:00",
            "soon",
            "Use a date and time, such as 2026-12-01T09:30:00Z",
        ),
        (
            {"type": "object"},
            {},
            "{'a': 1}",
            "This isn't valid JSON (line 1). Put text in double quotes.",
        ),
        (
            {"type": "object"},
            {},
            "[" * 2_900,
            "This isn't valid JSON (nested too deeply). Put text in double quotes.",
        ),
        ({"type": "object"}, {}, '{"a": NaN}', "NaN isn't a number in JSON"),
        ({"type": "object"}, {}, '{"a": 1, "a": 2}', "Use each name only once"),
        ({"type": "object"}, {}, "[]", "Use a JSON object"),
        ({"type": "array", "uniqueItems": True}, [], "[1, 1]", "Each entry has to be different"),
        (
            {"type": "array", "items": {"type": "number"}},
            [],
            '[1, "a"]',
            "1: Use a number, such as 12.50",
        ),
        ({"type": "object", "required": ["a"]}, {"a": 1}, "{}", "a: This is required"),
        (
            {"type": "object", "additionalProperties": False},
            {},
            '{"b": 1}',
            "The tool doesn't recognize one of these names",
        ),
        (
            {"anyOf": [{"type": "integer"}, {"type": "boolean"}, NULL]},
            1,
            '"a"',
            "Use a whole number, such as 3",
        ),
        (
            {"type": ["integer", "boolean"]},
            1,
            '"a"',
            "Use a whole number, such as 3, or choose yes or no",
        ),
        ({"not": {"type": "string"}}, 1, '"a"', "Check the format: the tool doesn't accept this"),
    ],
)
def test_fault_stands_at_its_input(
    node: dict[str, Any], value: object, typed: object, message: str
) -> None:
    result = edit(schema_with(node), {"x": value}, typed)
    assert result == EditResult(errors={"argument_0": message})


def test_input_that_was_not_sent_is_a_fault() -> None:
    schema = schema_with({"type": "string"})
    for values in ({}, {"argument_0": None}, {"argument_0": {"other": {"value": "b"}}}):
        result = read_edit_form(schema, {"x": "a"}, values)
        assert result.errors == {"argument_0": "This wasn't sent. Please try again."}


def test_fault_that_was_there_before_is_left_to_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"type": "integer", "maximum": 1}, "y": {"type": "integer"}},
    }
    blocks = blocks_of(schema, {"x": 5, "y": 1})
    result = read_edit_form(schema, {"x": 5, "y": 1}, submitted(blocks, argument_1="2"))
    assert result.arguments == {"x": 5, "y": 2}


def test_fault_of_the_whole_stands_at_the_first_input() -> None:
    schema = schema_with({"type": "string"}, maxProperties=0)
    result = edit(schema, {"x": "a"}, "b")
    assert result.errors == {"argument_0": "Check the format: the tool doesn't accept this"}


def test_reference_that_leads_elsewhere_is_a_fault_and_is_not_fetched() -> None:
    schema = schema_with({"$ref": "http://schemas.example/x.json"})
    result = edit(schema, {"x": 1}, "2")
    assert result.errors == {"argument_0": "I couldn't check this against what the tool accepts"}


def test_pattern_of_another_engine_is_left_to_the_tool() -> None:
    assert check_arguments(schema_with({"type": "string", "pattern": r"\p{L}"}), {"x": "1"}) == {}


def test_words_for_one_character() -> None:
    assert check_arguments(schema_with({"minLength": 1}), {"x": ""}) == {
        "/x": "Use at least 1 character"
    }


def test_alternatives_and_other_types_are_checked_too() -> None:
    assert check_arguments(schema_with({"pattern": "a"}), {"x": 5}) == {}
    only_null = {"anyOf": [{"type": "null"}, {"type": "null"}]}
    assert check_arguments(schema_with(only_null), {"x": 5}) == {"/x": "Leave this empty"}
    loop = {**schema_with({"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert fields_of(loop, {"x": 1})
    both = schema_with({"type": "object", "required": ["a", "b"]})
    assert check_arguments(both, {"x": {"a": 1}}) == {"/x/b": "This is required"}


def test_limits_ignore_what_is_not_a_number() -> None:
    node = {"minimum": 3, "format": "decimal", "type": ["string", "boolean"]}
    assert check_arguments(schema_with(node), {"x": True}) == {}
    assert check_arguments(schema_with({"minimum": 3}), {"x": "2"}) == {}
    assert check_arguments(schema_with({"minimum": 3, "format": "decimal"}), {"x": "none"}) == {
        "/x": "Use a number, such as 12.50"
    }
    assert "/x" in check_arguments(schema_with({"format": "decimal"}), {"x": "NaN"})
