"""Schemas and validation of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from annotated_types import Ge
from pydantic import BaseModel, Field, WithJsonSchema

from agents.core.codec import Json
from agents.core.digest import canonical_json
from agents.core.errors import AgentConfigError, InvalidArgumentsError
from agents.tools.schema import Multiline, Parameters, docstring_parts, parameters


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(BaseModel):
    width: int
    colour: Colour = Colour.RED


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class Odd(BaseModel):
    text: str = Field(validation_alias="text", serialization_alias="word")


class Growing(BaseModel):
    text: str

    def model_post_init(self, context: Any, /) -> None:
        self.text += "!"


def order(  # noqa: PLR0917 - one argument of each kind
    item: str,
    amount: Annotated[Decimal, Field(gt=0, le=1000, decimal_places=2)],
    day: date,
    at: datetime | None = None,
    count: Annotated[int, Field(ge=1, le=50)] = 3,
    ratio: float = 1.5,
    express: bool = False,
    kind: Literal["small", "large"] = "small",
    channels: list[Literal["mail", "phone"]] | None = None,
    note: Annotated[str, Multiline] = "",
    size: Size | None = None,
    *,
    schema: str = "named like a method of pydantic",
) -> str:
    """Order something.

    It is delivered
    later.

    Args:
        item: What to order.
        amount (Decimal): How much it may cost,
            at most.
        day: When: the day.
        *unknown: Not there.

    Returns:
        Nothing: of interest.
    """
    return item


Path = tuple[str | int, ...]
ORDER: dict[str, Json] = {"item": "tea", "amount": "12.50", "day": "2026-12-01"}


def field(schema: Mapping[str, Json], name: str) -> Any:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return properties[name]


def problems(
    signature: Parameters, arguments: Mapping[str, object]
) -> dict[tuple[str | int, ...], str]:
    with pytest.raises(InvalidArgumentsError) as caught:
        signature.canonical(arguments)
    return {error.path: error.message for error in caught.value.errors}


def test_schema_is_a_closed_object_with_required_names() -> None:
    schema = parameters(order).schema
    jsonschema.Draft202012Validator.check_schema(dict(schema))
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["item", "amount", "day"]
    assert "title" not in schema
    assert "$defs" not in schema


def test_schema_of_each_kind_of_argument() -> None:
    schema = parameters(order).schema
    assert field(schema, "item") == {"type": "string", "description": "What to order."}
    assert field(schema, "amount") == {
        "type": "string",
        "format": "decimal",
        "pattern": r"^-?\d+(\.\d{1,2})?$",
        "exclusiveMinimum": 0,
        "maximum": 1000,
        "description": "How much it may cost, at most.",
    }
    assert field(schema, "day")["format"] == "date"
    assert field(schema, "at")["anyOf"][0]["format"] == "date-time"
    assert field(schema, "count") == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "default": 3,
    }
    assert field(schema, "express") == {"type": "boolean", "default": False}
    assert field(schema, "kind")["enum"] == ["small", "large"]
    assert field(schema, "channels")["anyOf"][0]["items"]["enum"] == ["mail", "phone"]
    assert field(schema, "note")["format"] == "multiline"


def test_nested_types_are_written_in_place() -> None:
    size = field(parameters(order).schema, "size")["anyOf"][0]
    assert size["properties"]["colour"]["enum"] == ["red", "blue"]


def test_type_that_contains_itself_keeps_its_reference() -> None:
    def plant(tree: Tree) -> None: ...

    signature = parameters(plant)
    jsonschema.Draft202012Validator.check_schema(dict(signature.schema))
    arguments: dict[str, Json] = {"tree": {"name": "a", "children": [{"name": "b"}]}}
    jsonschema.validate(arguments, dict(signature.schema))
    assert signature.canonical(arguments)["tree"] == {
        "name": "a",
        "children": [{"name": "b", "children": []}],
    }


def test_decimal_patterns() -> None:
    def pay(
        free: Decimal,
        whole: Annotated[Decimal, Field(decimal_places=0)],
        low: Annotated[Decimal, Field(ge=Decimal("0.5"), lt=2)],
    ) -> None: ...

    schema = parameters(pay).schema
    assert field(schema, "free")["pattern"] == r"^-?\d+(\.\d{1,})?$"
    assert field(schema, "whole")["pattern"] == r"^-?\d+$"
    assert field(schema, "low")["minimum"] == 0.5
    assert field(schema, "low")["exclusiveMaximum"] == 2


def test_canonical_form_of_values() -> None:
    given_ = {
        **ORDER,
        "amount": 12.5,
        "at": "2026-12-01T10:00:00+00:00",
        "ratio": 2,
        "size": {"width": 1},
    }
    canonical = parameters(order).canonical(given_)
    assert canonical["amount"] == "12.5"
    assert canonical["at"] == "2026-12-01T10:00:00Z"
    assert canonical_json(canonical["ratio"]) == "2.0"
    assert canonical["size"] == {"width": 1, "colour": "red"}


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("1e2", "100"),
        ("1E-2", "0.01"),
        (7, "7"),
        ("007.10", "7.10"),
        ("1e999999", "1E+999999"),
    ],
)
def test_decimals_have_no_exponent_unless_it_is_huge(written: object, plain: str) -> None:
    def pay(amounts: list[Decimal]) -> None: ...

    assert parameters(pay).canonical({"amounts": [written]}) == {"amounts": [plain]}


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"count": "abc"}, ("count",)),
        ({"count": "3"}, ("count",)),
        ({"count": True}, ("count",)),
        ({"count": 51}, ("count",)),
        ({"count": None}, ("count",)),
        ({"item": 5}, ("item",)),
        ({"express": "yes"}, ("express",)),
        ({"express": 1}, ("express",)),
        ({"amount": "12.505"}, ("amount",)),
        ({"amount": "0"}, ("amount",)),
        ({"amount": "NaN"}, ("amount",)),
        ({"amount": True}, ("amount",)),
        ({"day": "2026-13-01"}, ("day",)),
        ({"day": 20261201}, ("day",)),
        ({"at": 5}, ("at",)),
        ({"kind": "huge"}, ("kind",)),
        ({"channels": ["mail", "fax"]}, ("channels", 1)),
        ({"channels": "mail"}, ("channels",)),
        ({"size": {"width": "x"}}, ("size", "width")),
        ({"nothing": 1}, ("nothing",)),
        ({"ratio": float("nan")}, ()),
        ({"ratio": float("inf")}, ()),
        ({"item": object()}, ()),
        ({"item": {1: "a"}}, ()),
        ({"item": "\ud800"}, ()),
        ({"count": 10**5000}, ()),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(changed: dict[str, object], path: Path) -> None:
    assert path in problems(parameters(order), {**ORDER, **changed})


def test_all_faults_are_told_at_once() -> None:
    assert set(problems(parameters(order), {"count": "x"})) == {
        ("item",),
        ("amount",),
        ("day",),
        ("count",),
    }


def test_faults_do_not_repeat_the_value() -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        parameters(order).canonical({**ORDER, "count": "s3cret"})
    assert "s3cret" not in str(caught.value)


def test_deep_nesting_is_refused() -> None:
    def take(value: object) -> None: ...

    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert () in problems(parameters(order), {**ORDER, "item": deep})


def test_value_that_is_written_under_another_name_is_refused() -> None:
    def take(odd: Odd) -> None: ...

    assert ("odd", "text") in problems(parameters(take), {"odd": {"text": "a"}})


def test_value_that_grows_each_time_is_refused() -> None:
    def take(growing: Growing) -> None: ...

    errors = problems(parameters(take), {"growing": {"text": "a"}})
    assert "change when they are read again" in errors[()]


def test_bytes_come_back_as_they_were() -> None:
    def take(data: bytes) -> None: ...

    signature = parameters(take)
    assert signature.canonical({"data": "aGk="}) == {"data": "aGk="}
    assert signature.values({"data": "aGk="}) == {"data": b"hi"}


def made(doc: str, default: Any, hint: Any = int) -> Callable[..., object]:
    """A function that is made anew, as an agent's factory makes its tools for each thread."""

    def pay(amount: int = default) -> None: ...

    pay.__doc__ = f"Pay.\n\nArgs:\n    amount: {doc}"
    pay.__annotations__["amount"] = hint
    return pay


@pytest.mark.parametrize(
    "other",
    [
        made("How many.", 1),
        made("How much.", 2),
        made("How much.", 1.0),
        made("How much.", True),
        made("How much.", 1, Literal[1]),
        made("How much.", 1, Annotated[int, Ge(1)]),
        made("How much.", 1, Annotated[int, Field(ge=1)]),
    ],
)
def test_what_differs_in_anything_is_read_anew(other: Callable[..., object]) -> None:
    known = parameters(made("How much.", 1))
    assert parameters(other) is not known
    assert repr(parameters(other).schema) != repr(known.schema)


class HasDefault(BaseModel):
    default: set[str]


def positional(x: int, /) -> None: ...
def several(*x: int) -> None: ...
def named(**x: int) -> None: ...
def untyped(x) -> None: ...  # type: ignore[no-untyped-def]
def a_set(x: set[str]) -> None: ...
def a_set_inside(x: dict[str, list[frozenset[int]]]) -> None: ...
def a_set_called_default(x: HasDefault) -> None: ...
def a_set_called_list(x: Annotated[set[str], WithJsonSchema({"type": "array"})]) -> None: ...
def a_stream(x: Callable[[], int]) -> None: ...
def an_object(x: pytest.Item) -> None: ...
def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (positional, "cannot be given by name"),
        (several, "cannot be given by name"),
        (named, "cannot be given by name"),
        (untyped, "has no type"),
        (a_set, "takes a set"),
        (a_set_inside, "takes a set"),
        (a_set_called_default, "takes a set"),
        (a_set_called_list, "takes a set"),
        (a_stream, "without a JSON schema"),
        (an_object, "without a JSON schema"),
        (unknown, "cannot be read"),
    ],
)
def test_function_that_cannot_be_a_tool(function: Callable[..., object], fault: str) -> None:
    with pytest.raises(AgentConfigError, match=fault):
        parameters(function)


def test_a_value_that_speaks_of_sets_is_no_set() -> None:
    def mark(rule: dict[str, str] = {"type": "set"}, type: Literal["set"] = "set") -> None: ...  # noqa: A002, B006 - a default

    assert parameters(mark).names == ("rule", "type")

    def check(rules: dict[str, bool] = {"uniqueItems": True}) -> None: ...  # noqa: B006 - a default

    schema = parameters(check).schema
    assert schema["properties"] == {
        "rules": {
            "type": "object",
            "additionalProperties": {"type": "boolean"},
            "default": {"uniqueItems": True},
        }
    }


def test_docstring_is_split() -> None:
    text, descriptions = docstring_parts(order)
    assert text == "Order something.\n\nIt is delivered\nlater."
    assert descriptions["amount"] == "How much it may cost, at most."
    assert descriptions["day"] == "When: the day."
    assert "Nothing" not in descriptions


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (None, ("", {})),
        ("One line.", ("One line.", {})),
        ("\n    Args:\n        x: first\n    ", ("", {"x": "first"})),
        ("A.\n\nArgs:\n    no entry here\n    x:\n        below\n", ("A.", {"x": "below"})),
        ("A.\n\nArguments:\n    **x: y\n\n    z: w\n", ("A.", {"x": "y", "z": "w"})),
        ("A.\n\nRaises:\n    ValueError: no\n", ("A.", {})),
    ],
)
def test_docstrings_of_other_shapes(doc: str | None, expected: tuple[str, dict[str, str]]) -> None:
    def plain() -> None: ...

    plain.__doc__ = doc
    assert docstring_parts(plain) == expected
