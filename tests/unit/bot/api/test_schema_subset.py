"""Schemas of programs: what a form keeps is taken, every other constraint is refused (check 18)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from bot.api.schema_subset import DIALECT, schema_faults
from bot.layout.forms.schema import check_arguments, foreign


def of(node: Any, **top: Any) -> dict[str, Any]:
    """A schema of an object with one property `x`."""
    return {"type": "object", "properties": {"x": node}, **top}


CAT = {"type": "object", "properties": {"k": {"const": "cat"}}, "required": ["k"]}
DOG = {"type": "object", "properties": {"k": {"const": "dog"}}, "required": ["k"]}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]+$"},
        {"type": ["string", "null"], "format": "email"},
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2, "default": 4},
        {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3, "uniqueItems": True},
        {"enum": ["a", 1, None], "title": "T", "description": "D", "examples": ["a"]},
        {"const": {"if": 1, "not": 2}},
        {"type": "object", "properties": {"if": TEXT}, "additionalProperties": False},
        {"oneOf": [CAT, DOG]},
        {"anyOf": [CAT, DOG, {"type": "null"}]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "readOnly": True, "x-order": 1},
    ],
    ids=str,
)
def test_a_schema_of_the_subset_is_taken(node: dict[str, Any]) -> None:
    assert schema_faults(of(node, **{"$schema": DIALECT})) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("if", {}),
        ("then", {}),
        ("else", {}),
        ("patternProperties", {"a": {}}),
        ("propertyNames", {}),
        ("dependentSchemas", {}),
        ("dependentRequired", {}),
        ("not", {}),
        ("allOf", [{}]),
        ("unevaluatedItems", False),
        ("unevaluatedProperties", False),
        ("contains", {}),
        ("minContains", 1),
        ("prefixItems", [{}]),
        ("minProperties", 1),
        ("maxProperties", 1),
        ("$dynamicRef", "#a"),
        ("$anchor", "a"),
        ("$id", "https://example.com"),
        ("requird", ["x"]),
        ("type", ["string", "integer"]),
        ("type", ["string", "integer", "null"]),
        ("additionalProperties", {"type": "string"}),
        ("pattern", "(?=a)"),
        ("pattern", r"(a)\1"),
        ("pattern", "a" * 201),
        ("pattern", 5),
        ("format", "hostname"),
        ("$ref", "https://example.com/schema.json"),
        ("$ref", "#"),
        ("$ref", "#/properties/x"),
        ("$ref", "#/$defs/none"),
        ("$ref", 5),
        ("oneOf", [TEXT, {"type": "integer"}]),
        ("anyOf", [CAT, CAT]),
        ("anyOf", [CAT, {**DOG, "required": []}]),
        ("anyOf", [TEXT]),
        ("anyOf", "no"),
        ("$defs", {}),
        ("$schema", "http://json-schema.org/draft-07/schema#"),
    ],
    ids=str,
)
def test_another_constraint_is_refused_with_its_pointer(name: str, value: object) -> None:
    faults = schema_faults(of({"items": {name: value}}))
    assert {fault.pointer for fault in faults} == {f"/properties/x/items/{name}"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"properties": {}},
        of("no schema"),
        of({"properties": {"a~b/c": 5}}),
        of({"minimum": "a"}),
        of({"required": [1]}),
        {**of({}), "properties": []},
    ],
    ids=str,
)
def test_what_is_no_schema_of_an_object_is_refused(schema: dict[str, Any]) -> None:
    assert schema_faults(schema)


def test_references_may_not_lead_in_a_circle() -> None:
    leads = {"a": of({"$ref": "#/$defs/b"}), "b": {"items": {"$ref": "#/$defs/c"}}, "c": TEXT}
    assert schema_faults(of({"$ref": "#/$defs/a"}, **{"$defs": leads})) == []
    circle = {**leads, "c": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}
    faults = schema_faults(of({"$ref": "#/$defs/a"}, **{"$defs": circle}))
    assert [fault.pointer for fault in faults] == ["/$defs"]


def test_references_that_branch_take_no_time() -> None:
    """Each of 60 schemas leads to the next one twice."""
    defs: dict[str, Any] = {
        f"d{n}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in "ab"},
        }
        for n in range(60)
    }
    defs["d60"] = TEXT
    assert schema_faults(of({"$ref": "#/$defs/d0"}, **{"$defs": defs})) == []


def test_size_depth_and_number_have_limits() -> None:
    deep: dict[str, Any] = TEXT
    for _ in range(16):
        deep = {"items": deep}
    assert schema_faults(of(deep))
    assert schema_faults(of(deep["items"]["items"])) == []
    many: dict[str, Any] = {f"p{number}": {} for number in range(500)}
    assert schema_faults({"type": "object", "properties": many})
    assert (
        schema_faults(of({"description": "x" * 33_000}))[0].detail == "is larger than 32768 bytes"
    )


class Account(BaseModel):
    """A form as a program writes it with pydantic."""

    email: str = Field(max_length=200)
    seats: int | None = None
    kind: str = "team"


def test_a_simple_pydantic_model_is_taken() -> None:
    assert schema_faults(Account.model_json_schema()) == []


def test_formats_and_patterns_of_programs_are_kept() -> None:
    schema = of({"type": "string", "pattern": "^(a+)+$"}, additionalProperties=False)
    assert check_arguments(foreign(schema), {"x": "a" * 5_000}) == {}
    assert set(check_arguments(foreign(schema), {"x": "a" * 5_000 + "!"})) == {"/x"}
    assert check_arguments(foreign(of({"pattern": "(?=a)"})), {"x": "a"}) != {}
    for name, right, wrong in (
        ("email", "ada@example.com", "ada@"),
        ("uri", "https://example.com/a", "example com"),
        ("date", "2026-11-23", "23.11."),
    ):
        node = of({"type": "string", "format": name})
        assert check_arguments(foreign(node), {"x": right}) == {}
        assert set(check_arguments(foreign(node), {"x": wrong})) == {"/x"}
        assert check_arguments(foreign(node), {"x": 5}) != {}


def test_alternatives_may_stand_among_the_definitions() -> None:
    pets = {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]}
    assert schema_faults(of(pets, **{"$defs": {"cat": CAT, "dog": DOG}})) == []
    assert schema_faults(of(pets, **{"$defs": {"cat": CAT, "dog": CAT}}))
