"""Conditions on arguments: true, false or undecided."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from bot.policy.evaluation.conditions import TEXT_LIMIT, ArgCondition, DoubtAnswer, fold
from bot.policy.model import ArgEntry


def _holds(entry: dict[str, Any], **arguments: Any) -> DoubtAnswer:
    return ArgCondition.of(ArgEntry.model_validate(entry)).holds(arguments)


def _a(op: str, value: Any = None, **more: Any) -> dict[str, Any]:
    return {"path": "a", "op": op, "value": value, **more}


@pytest.mark.parametrize(
    ("op", "wanted", "value", "truth"),
    [
        ("eq", 1, 1.0, True),
        ("eq", 0.1, 0.1, True),
        ("eq", 1, True, None),
        ("eq", 1, "1", None),
        ("eq", True, True, True),
        ("eq", True, False, False),
        ("eq", True, 1, None),
        ("eq", True, "true", None),
        ("eq", "x", "x", True),
        ("eq", "x", "y", False),
        ("eq", "x", " X ", None),
        ("eq", "straße", "STRASSE", None),
        ("eq", "file", "\ufb01le", None),
        ("eq", "k", "\u212a", None),
        ("eq", "x", 1, None),
        ("eq", None, None, True),
        ("eq", None, "x", None),
        ("eq", ["x", 1], ["x", 1.0], True),
        ("eq", ["x", 1], ["X", 1], None),
        ("eq", ["x", 1], ["X", 2], False),
        ("eq", ["x", 1], ["x"], False),
        ("eq", ["x", 1], "x", None),
        ("ne", "x", "y", True),
        ("ne", "x", "x", False),
        ("ne", "x", "X", None),
        ("ne", "x", 5, None),
        ("in", ["x", "y"], "y", True),
        ("in", ["x", "y"], "z", False),
        ("in", ["x", "y"], "Y", None),
        ("in", ["x", 1], 1, True),
        ("in", ["x", 1], 2, False),
        ("in", ["x", "y"], 2, None),
        ("not_in", ["x", "y"], "z", True),
        ("not_in", ["x", "y"], "y", False),
        ("not_in", ["x", "y"], "x ", None),
        ("gt", 500, 500.01, True),
        ("gt", 500, 500, False),
        ("ge", 0.3, 0.3, True),
        ("lt", 10**20, 10**20 - 1, True),
        ("le", 5, 5.0, True),
        ("le", 5, "5", None),
        ("le", 5, True, None),
        ("le", 5, None, None),
        ("lt", 5, float("nan"), None),
        ("lt", 5, float("-inf"), None),
        ("contains", "vip", "a vip here", True),
        ("contains", "vip", "a VIP here", None),
        ("contains", "vip", "nobody", False),
        ("contains", "vip", ["a", "vip"], True),
        ("contains", "vip", ["a", "Vip"], None),
        ("contains", "vip", ["a"], False),
        ("contains", "vip", [], False),
        ("contains", "vip", [1], None),
        ("contains", 1, [1.0], True),
        ("contains", 1, "1", None),
        ("contains", "vip", 1, None),
        ("matches", "a.*c", "a\nc", True),
        ("matches", "b", "abc", False),
        ("matches", "b", 1, None),
        ("exists", None, None, True),
        ("missing", None, None, False),
    ],
)
def test_an_operator_judges_a_value(op: str, wanted: Any, value: Any, truth: DoubtAnswer) -> None:
    assert _holds(_a(op, wanted), a=value) is truth


def test_numbers_are_compared_as_they_are_written() -> None:
    # As binary fractions, 0.1 + 0.2 is more than 0.3; as texts of digits they are exact.
    assert _holds(_a("gt", 0.3, **{"as": "number"}), a="0.30") is False
    assert _holds(_a("gt", 0.3), a=0.1 + 0.2) is True


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("100.00", True),
        ("99.99", False),
        ("-1", False),
        ("1e9", None),
        ("\uff11\uff10\uff10", None),
        (" 100", None),
        ("0100", None),
        ("100.", None),
        ("", None),
        ("9" * 101, None),
        (100, True),
        (True, None),
    ],
)
def test_a_text_is_a_number_only_in_plain_digits(text: object, truth: DoubtAnswer) -> None:
    assert _holds(_a("ge", 100, **{"as": "number"}), a=text) is truth


def test_a_long_text_is_undecided_for_a_pattern() -> None:
    assert _holds(_a("matches", "x*"), a="x" * TEXT_LIMIT) is True
    assert _holds(_a("matches", "x*"), a="x" * (TEXT_LIMIT + 1)) is None


def test_a_long_text_is_undecided_unless_it_plainly_holds_what_is_wanted() -> None:
    assert _holds(_a("contains", "vip"), a="x" * TEXT_LIMIT) is False
    assert _holds(_a("contains", "vip"), a="x" * (TEXT_LIMIT + 1)) is None
    assert _holds(_a("contains", "vip"), a="x" * TEXT_LIMIT + "vip") is True


def test_a_text_is_folded_however_it_is_composed() -> None:
    decomposed = unicodedata.normalize("NFD", "\u1fa7" * 9)
    assert len(decomposed) > 4 * 9 - 1
    assert _holds(_a("eq", "\u1fa7" * 9), a=decomposed) is None
    assert _holds(_a("eq", "x"), a=" " * 100_000 + "X") is None
    assert _holds(_a("eq", "x"), a="x" * 100_000) is False
    assert _holds(_a("eq", ""), a="  ") is None


def test_no_character_folds_shorter_than_the_bound_takes() -> None:
    for code in range(0x110000):
        character = chr(code)
        folded = fold(character)
        if not character.isspace() and folded:
            assert len(unicodedata.normalize("NFD", folded)) <= 5 * len(folded)


@pytest.mark.parametrize(
    ("op", "truth"), [("eq", None), ("ne", None), ("exists", False), ("missing", True)]
)
@pytest.mark.parametrize("path", ["a", "b.c", "b.0", "l.1", "l.x", "t.0", "l.²", "b.*"])
def test_where_nothing_is_only_existence_is_decided(path: str, op: str, truth: DoubtAnswer) -> None:
    more = {"each": "any"} if "*" in path else {}
    entry = {"path": path, "op": op, "value": "x", **more}
    assert _holds(entry, b={}, l=["x"], t="text") is truth


@pytest.mark.parametrize(
    ("each", "items", "truth"),
    [
        ("any", [], False),
        ("all", [], None),
        ("any", [1, 9], True),
        ("any", [1, "x", 9], True),
        ("any", [1, "x"], None),
        ("any", [1, 2], False),
        ("all", [8, 9], True),
        ("all", [8, "x"], None),
        ("all", [8, "x", 1], False),
        ("any", "text", None),
        ("all", None, None),
    ],
)
def test_a_star_stands_for_every_item(each: str, items: object, truth: DoubtAnswer) -> None:
    assert _holds({"path": "a.*", "op": "gt", "value": 5, "each": each}, a=items) is truth


def test_a_star_within_a_star_is_of_all_items() -> None:
    entry = {"path": "a.*.*.b", "op": "eq", "value": 1, "each": "all"}
    assert _holds(entry, a=[[{"b": 1}], [{"b": 1}, {"b": 2}]]) is False
    assert _holds(entry, a=[[{"b": 1}], []]) is None
    assert _holds(entry, a=[[{"b": 1}], [{"b": 1}]]) is True


@pytest.mark.parametrize(
    ("entry", "arguments", "words"),
    [
        (_a("gt", 5), {}, "nothing is there"),
        (_a("gt", 5), {"a": "7"}, 'it is a text: "7"'),
        (_a("gt", 5), {"a": 7}, "it is a number: 7"),
        (_a("gt", 5), {"a": True}, "it is a boolean: true"),
        (_a("gt", 5), {"a": None}, "it is null: null"),
        (_a("gt", 5), {"a": [1]}, "it is a list: [1]"),
        (_a("gt", 5), {"a": {}}, "it is an object: {}"),
        (_a("eq", "x"), {"a": "x" * 200}, f'it is a text: "{"x" * 78}…'),
        ({"path": "a.*", "op": "gt", "value": 5, "each": "any"}, {"a": [1]}, "the items differ"),
    ],
)
def test_it_says_what_was_there(
    entry: dict[str, Any], arguments: dict[str, Any], words: str
) -> None:
    condition = ArgCondition.of(ArgEntry.model_validate(entry))
    assert condition.describe(arguments).startswith(words)


def test_it_is_shown_as_it_is_written() -> None:
    entry = ArgEntry.model_validate({"path": "a.*", "op": "in", "value": ["x"], "each": "any"})
    assert ArgCondition.of(entry).text == 'any a.* in ["x"]'
    assert ArgCondition.of(ArgEntry.model_validate(_a("exists"))).text == "a exists"
