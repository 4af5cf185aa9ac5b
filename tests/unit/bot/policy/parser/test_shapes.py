"""Paths in JSON schemas as tools have them: references, alternatives, lists, open maps."""

from __future__ import annotations

import pytest

from bot.policy.parser.shapes import names_near, shape_of

SCHEMA = {
    "type": "object",
    "$defs": {
        "Line": {
            "type": "object",
            "properties": {
                "sku": {"enum": ["a", "b"]},
                "part": {"anyOf": [{"$ref": "#/$defs/Line"}, {"type": "null"}]},
            },
        },
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}]},
    },
    "properties": {
        "line": {"$ref": "#/$defs/Line"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "items": False,
        },
        "bag": {"type": "array"},
        "open": {"type": "object", "additionalProperties": {"type": "number"}},
        "wide": {"type": "object", "additionalProperties": True},
        "shut": {"type": "object"},
        "any": {},
        "one": {"const": 5},
        "some": {"type": ["string", "null"], "enum": ["x", None]},
        "either": {"oneOf": [{"const": "p"}, {"const": "q"}]},
        "lost": {"$ref": "#/$defs/None"},
        "loop": {"$ref": "#/$defs/Loop"},
    },
}


@pytest.mark.parametrize(
    ("path", "types", "enum"),
    [
        ("line.sku", {"string"}, ("a", "b")),
        ("line.part.part.sku", {"string"}, ("a", "b")),
        ("lines.*.sku", {"string"}, ("a", "b")),
        ("lines.3.sku", {"string"}, ("a", "b")),
        ("pair.0", {"string"}, None),
        ("pair.1", {"integer"}, None),
        ("pair.*", {"string", "integer"}, None),
        ("open.x", {"number"}, None),
        ("one", {"number", "integer"}, (5,)),
        ("some", {"string", "null"}, ("x", None)),
    ],
)
def test_a_path_has_types_and_values(path: str, types: set[str], enum: object) -> None:
    shape = shape_of(SCHEMA, path)
    assert shape is not None
    assert (set(shape.types), shape.enum) == (types, enum)


def test_alternatives_are_taken_together() -> None:
    shape = shape_of(SCHEMA, "either")
    assert shape is not None
    assert sorted(map(str, shape.enum or ())) == ["p", "q"]


@pytest.mark.parametrize("path", ["bag.0", "wide.x", "any", "any.x", "any.0"])
def test_what_a_schema_leaves_open_can_be_anything(path: str) -> None:
    shape = shape_of(SCHEMA, path)
    assert shape is not None
    assert {"string", "object", "array"} <= shape.types


@pytest.mark.parametrize(
    "path",
    ["nothing", "line.nothing", "line.0", "lines.sku", "pair.2", "shut.x", "one.x", "loop", "lost"],
)
def test_what_a_schema_does_not_know_is_no_path(path: str) -> None:
    assert shape_of(SCHEMA, path) is None


def test_the_names_at_the_place_of_a_mistake_are_near() -> None:
    assert names_near(SCHEMA, "line.skku") == ["line.sku", "line.part"]
    assert "lines" in names_near(SCHEMA, "liness")
