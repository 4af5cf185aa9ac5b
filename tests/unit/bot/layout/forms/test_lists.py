"""Lists with one entry per line, and forms that start empty."""

from __future__ import annotations

from typing import Any

import pytest

from bot.errors import InvalidInputError
from bot.layout.forms.pages import read_new_form
from bot.layout.forms.parse import EditResult
from tests.unit.bot.layout.forms_stage import NULL, blocks_of, edit, pick, schema_with, submitted

TEXTS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "integer"}}


def element(node: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    [block] = blocks_of(schema_with(node), current)
    made: dict[str, Any] = block["element"]
    return made


@pytest.mark.parametrize(
    ("node", "value", "initial"),
    [
        (TEXTS, ["a b", "c"], "a b\nc"),
        (NUMBERS, [1, -2], "1\n-2"),
        (TEXTS, ["a\nb"], '[\n  "a\\nb"\n]'),
        (TEXTS, [" a"], '[\n  " a"\n]'),
        (TEXTS, [""], '[\n  ""\n]'),
        (TEXTS, ["\u200b"], '[\n  "\\u200b"\n]'),
        (TEXTS, [5], "[\n  5\n]"),
        (NUMBERS, [True], "[\n  true\n]"),
        (NUMBERS, [2**60], f"[\n  {2**60}\n]"),
        ({"type": "array", "items": {"type": "string", "format": "date"}}, ["x"], '[\n  "x"\n]'),
        ({"type": "array"}, ["x"], '[\n  "x"\n]'),
    ],
)
def test_list_that_comes_back_as_it_was_has_one_entry_per_line(
    node: dict[str, Any], value: list[object], initial: str
) -> None:
    assert element(node, {"x": value})["initial_value"] == initial
    schema = schema_with(node)
    untouched = submitted(blocks_of(schema, {"x": value}))
    from_form = edit(schema, {"x": value}, initial)
    assert from_form == EditResult(arguments={"x": value})
    assert untouched


@pytest.mark.parametrize(
    ("node", "value", "typed", "new"),
    [
        (TEXTS, ["a"], "b\r\n\n  c  \n", ["b", "c"]),
        (TEXTS, ["a"], "", []),
        (TEXTS, [], "a", ["a"]),
        (NUMBERS, [1], "2\n+3", [2, 3]),
    ],
)
def test_edited_list(
    node: dict[str, Any], value: list[object], typed: str, new: list[object]
) -> None:
    assert edit(schema_with(node), {"x": value}, typed).arguments == {"x": new}


def test_line_that_is_no_number() -> None:
    wrong = edit(schema_with(NUMBERS), {"x": [1]}, "1\ntwo")
    assert wrong.errors == {"argument_0": "Use one whole number per line"}


def read(node: dict[str, Any], typed: object, *, required: bool = True) -> EditResult:
    schema = schema_with(node, required=required)
    return read_new_form(schema, submitted(blocks_of(schema, {}), argument_0=typed))


@pytest.mark.parametrize(
    ("node", "typed", "value"),
    [
        ({"type": "string"}, "a", "a"),
        ({"type": "integer"}, "5", 5),
        ({"type": "boolean"}, pick(1), False),
        ({"enum": ["a", "b"]}, pick(1), "b"),
        (TEXTS, None, []),
        (TEXTS, "a\nb", ["a", "b"]),
        ({"anyOf": [TEXTS, NULL]}, None, None),
        ({"anyOf": [{"type": "string"}, NULL]}, None, None),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
    ],
)
def test_new_value(node: dict[str, Any], typed: object, value: object) -> None:
    assert read(node, typed).arguments == {"x": value}


@pytest.mark.parametrize(
    ("node", "typed", "error"),
    [
        ({"type": "string"}, None, "This is required"),
        ({"type": "integer"}, None, "This is required"),
        ({"type": "boolean"}, None, "This is required"),
        ({"type": "integer", "minimum": 3}, "2", "Use 3 or more"),
        ({**TEXTS, "minItems": 1}, None, "Add at least 1 entry"),
        ({"type": "object"}, "{", "This isn't valid JSON (line 1). Put text in double quotes."),
    ],
)
def test_new_value_that_does_not_fit(node: dict[str, Any], typed: object, error: str) -> None:
    assert read(node, typed).errors == {"argument_0": error}


def test_new_value_that_is_not_needed() -> None:
    assert read({"type": "integer"}, None, required=False).arguments == {}


def test_no_form_for_what_is_no_schema() -> None:
    with pytest.raises(InvalidInputError):
        read_new_form({"type": "nonsense"}, {})


def test_input_that_was_not_sent() -> None:
    assert read_new_form(schema_with({"type": "string"}), {}).errors == {
        "argument_0": "This wasn't sent. Please try again."
    }
