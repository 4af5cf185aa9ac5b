"""Completing arguments: people fill in what the model left out, and no more than that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Annotated

import pytest
from pydantic import Field

from agents.core.asking.infos import ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json, decode, encode
from agents.core.errors import (
    AgentConfigError,
    ArgumentError,
    InvalidArgumentsError,
    ResumeDataError,
)
from agents.gates import fill_arguments, review_edit_gate, tool
from agents.gates.questions import ParametersInfo, ParametersResult
from agents.tools import Tool
from tests.unit.agents.stage import Stage, asked
from tests.unit.agents.support import Plain


class Desk:
    """Remembers what was booked."""

    def __init__(self) -> None:
        self.booked: list[dict[str, object]] = []

    async def book(
        self,
        to: str,
        seats: Annotated[int, Field(ge=1)],
        price: Decimal = Decimal("9.50"),
        note: str | None = None,
        window: bool = True,
    ) -> str:
        """Book seats.

        Args:
            seats: How many.
        """
        self.booked.append({"to": to, "seats": seats, "price": price, "window": window})
        return f"{seats} to {to}"

    def gated(self, *missing: str) -> Tool:
        return fill_arguments(tool(title="Book {seats} to {to}")(self.book), missing)


@pytest.fixture
def office() -> Desk:
    return Desk()


async def incomplete(office: Desk, **arguments: Json) -> tuple[Stage, ParametersInfo]:
    stage = await asked(office.gated("seats"), arguments or {"to": "Oslo"})
    return stage, stage.question(ParametersInfo)


async def test_question_shows_what_is_known_and_what_is_missing(office: Desk) -> None:
    stage, info = await incomplete(office)
    assert info.arguments == {"to": "Oslo", "price": "9.50", "note": None, "window": True}
    assert list(info.missing) == ["seats"]
    assert info.missing["seats"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert str(info) == "Book: what are the missing arguments?\n- seats: How many."
    assert info.preview == "People are asked for: seats."
    assert decode(encode(info)) == info
    assert stage.tool.definition.gates == ("complete",)
    assert office.booked == []


async def test_filled_in_call_runs_once_and_the_model_is_told(office: Desk) -> None:
    stage, info = await incomplete(office)
    result = await stage.answer(info.complete({"seats": 2}, by="U1"))
    assert office.booked == [{"to": "Oslo", "seats": 2, "price": Decimal("9.50"), "window": True}]
    assert result is not None
    assert result.text.startswith("A person completed the arguments: ")
    assert result.text.endswith("Result: 2 to Oslo")
    assert stage.started


async def test_complete_call_is_not_asked_about(office: Desk) -> None:
    stage = Stage(office.gated("seats"), {"to": "Oslo", "seats": 3})
    assert await stage.run() == ToolReturn("3 to Oslo")
    assert stage.tool.describe({"to": "Oslo", "seats": 3}).title == "Book 3 to Oslo"


async def test_null_is_no_value_where_the_tool_takes_none(office: Desk) -> None:
    _, info = await incomplete(office, to="Oslo", seats=None)
    assert "seats" not in info.arguments
    gate = office.gated("note")
    assert gate.validate({"to": "Oslo", "seats": 1, "note": None})["note"] is None


async def test_named_argument_with_a_default_is_asked_for(office: Desk) -> None:
    stage = await asked(office.gated("window"), {"to": "Oslo", "seats": 1})
    info = stage.question(ParametersInfo)
    assert "window" not in info.arguments
    await stage.answer(info.complete({"window": False}))
    assert office.booked[0]["window"] is False


async def test_all_that_is_required_when_nothing_is_named(office: Desk) -> None:
    stage = await asked(office.gated(), {})
    assert list(stage.question(ParametersInfo).missing) == ["to", "seats"]
    assert "required" not in stage.tool.definition.schema


@pytest.mark.parametrize(
    "values",
    [{"seats": 0}, {"seats": "two"}, {"seats": None}, {"seats": True}],
)
async def test_values_that_do_not_fit_run_nothing(office: Desk, values: dict[str, Json]) -> None:
    stage, info = await incomplete(office)
    assert "seats" in str(await stage.refused(info.complete(values)))
    assert office.booked == []
    assert await stage.answer(info.complete({"seats": 1})) is not None


@pytest.mark.parametrize(
    "values", [{}, {"to": "Rome"}, {"seats": 1, "to": "Rome"}, {"seats": 1, "more": 2}]
)
async def test_people_fill_in_what_is_missing_and_nothing_else(
    office: Desk, values: dict[str, Json]
) -> None:
    stage, info = await incomplete(office)
    assert "needs seats, and nothing else" in str(await stage.refused(info.complete(values)))
    assert office.booked == []


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"seats": 1},
        "1",
        ParametersResult(values={"seats": 1}),
        ParametersResult(values={"seats": 1}, digest="0" * 64),
    ],
)
async def test_wrong_answer_runs_nothing(office: Desk, answer: object) -> None:
    stage, _ = await incomplete(office)
    assert isinstance(await stage.refused(answer), ResumeDataError)
    assert office.booked == []


def test_values_without_json_form_are_refused() -> None:
    with pytest.raises(TypeError):
        ParametersResult(values=[])  # type: ignore[arg-type]


async def test_value_that_is_no_json_is_refused(office: Desk) -> None:
    _, info = await incomplete(office)
    with pytest.raises(ResumeDataError, match="not JSON"):
        info.complete({"seats": float("nan")})


@pytest.mark.parametrize(
    "arguments",
    [{"to": 5}, {"to": "Oslo", "more": 1}, {"seats": 1}, {"to": "Oslo", "seats": 0}],
)
def test_other_faults_go_back_to_the_model(office: Desk, arguments: dict[str, Json]) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        office.gated("seats").validate(arguments)
    assert ("seats",) not in {e.path for e in caught.value.errors} or "seats" in arguments


def test_arguments_that_are_no_json_are_refused(office: Desk) -> None:
    with pytest.raises(InvalidArgumentsError, match="not JSON"):
        office.gated("seats").validate({"to": {1, 2}})


async def test_reviewed_call_may_be_completed_at_once(office: Desk) -> None:
    stage = await asked(review_edit_gate(office.gated("seats")), {"to": "Oslo"})
    info = stage.question(ReviewEditInfo)
    await stage.answer(info.edit({**info.arguments, "seats": 5}))
    assert office.booked[0]["seats"] == 5


@pytest.mark.parametrize(("missing", "named"), [(("row",), "'row'"), ((), "that is required")])
def test_gate_that_makes_no_sense(office: Desk, missing: tuple[str, ...], named: str) -> None:
    made = tool(office.book) if missing else Plain("pay")
    with pytest.raises(AgentConfigError, match=f"no argument {named}; it has"):
        fill_arguments(made, missing)


class Odd(Plain):
    """A tool of another kind: nullable in the other ways of JSON schema, faults of its own."""

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        if "x" not in arguments:
            raise InvalidArgumentsError([ArgumentError(("x",), "is missing")])
        return super().validate(arguments)


@pytest.mark.parametrize(
    ("schema", "is_kept"),
    [
        ({"type": ["integer", "null"]}, True),
        ({"type": "null"}, True),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, True),
        ({"anyOf": [True, {"type": "integer"}]}, False),
        (True, False),
    ],
)
def test_null_is_kept_where_the_tool_takes_it(schema: Json, is_kept: bool) -> None:
    class Nullable(Odd):
        @property
        def definition(self):  # type: ignore[no-untyped-def]
            return replace(
                Plain("odd").definition, schema={"type": "object", "properties": {"x": schema}}
            )

    gate = fill_arguments(Nullable("odd"), ["x"])
    assert ("x" in gate.validate({"x": None})) is is_kept
