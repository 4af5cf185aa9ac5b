"""Answers of questions: types, and what cannot be stored; scenario 88 of the reference."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import pytest
from pydantic import BaseModel

from agents.core.asking.answers import Cancelled, Expired
from agents.core.codec import register
from agents.core.errors import ResumeDataError, UnregisteredTypeError
from agents.graph import (
    GraphBuildError,
    MultipleAnswers,
    NotAnsweredError,
    StateGraph,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids


def one_question(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.ask("a", "what is your age?"))


class Colour(Enum):
    RED = "red"


class Form(BaseModel):
    name: str
    age: int = 0


@register("tests.graph.point/1")
@dataclass(frozen=True)
class Spot:
    x: int


def typed(kind: object) -> Lab:
    def node(state: State) -> object:
        lab.ran["a"] += 1
        lab.notes.append(node_interrupt("q", response_type=kind))
        return None

    lab = Lab(lambda lab: chain(lab, a=node))
    return lab


@pytest.mark.parametrize(
    ("kind", "bad", "good", "read"),
    [
        (bool, "yes", True, True),
        (int, True, 3, 3),
        (int, "3", 3, 3),
        (float, "1", 1, 1.0),
        (Literal["a", "b"], "c", "b", "b"),
        (list[int], [1, "2"], [1, 2], [1, 2]),
        (int | None, "x", None, None),
        (Colour, "blue", "red", Colour.RED),
        (Form, {"age": 1}, {"name": "x", "age": 1}, Form(name="x", age=1)),
        (Form, {"name": 1}, {"name": "x"}, Form(name="x")),
        (list[Form], [{"age": 1}], [{"name": "y"}], [Form(name="y")]),
        (Spot, {"x": "1"}, {"x": 1}, Spot(1)),
    ],
)
async def test_g088_typed_answers_are_checked_before_anything_runs(
    kind: object, bad: object, good: object, read: object
) -> None:
    lab = typed(kind)
    [question] = (await lab.start()).interrupts
    before = await lab.state()
    with pytest.raises(ResumeDataError):
        await lab.run(resume_map={question.id: bad})
    assert await lab.state() == before
    assert lab.ran["a"] == 1
    await lab.run(resume_map={question.id: good})
    assert lab.notes == [read]


async def test_g088_what_the_schema_cannot_tell_is_refused_by_the_type() -> None:
    lab = typed(Spot)
    [question] = (await lab.start()).interrupts
    with pytest.raises(ResumeDataError, match="does not fit"):
        await lab.run(resume_map={question.id: (1, 2)})
    assert ids(await lab.state()) == [question.id]
    assert (await lab.run(resume=Spot(4))).next == ()
    assert lab.notes == [Spot(4)]


async def test_g088_valid_answers_count_and_invalid_ones_wait() -> None:
    def asks(name: str) -> object:
        def node(state: State) -> object:
            lab.ran[name] += 1
            return {name: node_interrupt(f"{name}?", response_type=int)}

        return node

    lab = Lab(lambda lab: fan(a=asks("a"), b=asks("b")))  # type: ignore[arg-type]
    first, second = ids(await lab.start())
    with pytest.raises(ResumeDataError, match="expected integer"):
        await lab.run(resume_map={first: 1, second: "x"})
    state = await lab.state()
    assert (state.values["a"], ids(state)) == (1, [second])
    assert lab.ran == {"a": 2, "b": 1}
    assert (await lab.run(resume_map={second: 2})).values["b"] == 2


async def test_g088_an_invalid_answer_in_a_list_waits() -> None:
    def node(state: State) -> object:
        return {"a": [node_interrupt("q1"), node_interrupt("q2", response_type=int)]}

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    with pytest.raises(ResumeDataError):
        await lab.run(resume=MultipleAnswers(("A", "B")))
    assert await lab.pending() == ["q2"]
    assert (await lab.run(resume=2)).values["a"] == ["A", 2]


@pytest.mark.parametrize("outcome", [Expired(waited="1 hour"), Cancelled(by="U1")])
async def test_nobody_answered_is_told_as_what_it_is(outcome: object) -> None:
    for lab in (Lab(one_question), typed(bool)):
        await lab.start()
        with pytest.raises(NotAnsweredError) as caught:
            await lab.run(resume=outcome)
        assert caught.value.outcome == outcome
    lab = typed(bool | Expired | Cancelled)
    await lab.start()
    await lab.run(resume=outcome)
    assert lab.notes == [outcome]


async def test_unstorable_questions_ask_nobody() -> None:
    lab = Lab(lambda lab: chain(lab, a=lambda state: node_interrupt(object())))
    with pytest.raises(UnregisteredTypeError):
        await lab.start()
    assert (await lab.state()).interrupts == ()


async def test_unstorable_answers_change_nothing() -> None:
    lab = Lab(one_question)
    await lab.start()
    before = await lab.state()
    with pytest.raises(UnregisteredTypeError):
        await lab.run(resume=object())
    assert await lab.state() == before


async def test_a_type_without_schema_is_a_mistake() -> None:
    lab = Lab(
        lambda lab: chain(lab, a=lambda state: node_interrupt("q", response_type=Lab("x").ask))  # type: ignore[arg-type]
    )
    with pytest.raises(GraphBuildError, match="type of an answer"):
        await lab.start()
