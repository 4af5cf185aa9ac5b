"""A pydantic model as the state: it is validated whenever it is written, and nodes get it."""

from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator

from agents.core.errors import AgentChangedError, ResumeDataError
from agents.graph import (
    START,
    Command,
    Send,
    StateChangedError,
    StateGraph,
    StateUpdate,
    StateUpdateError,
    node_interrupt,
)
from agents.memory import MemoryCheckpointStore
from tests.unit.agents.graph.support import Lab, ids, values_of


class Order(BaseModel):
    to: str = Field(alias="recipient")
    amount: int = Field(ge=0, default=1)
    limit: int = 100
    log: Annotated[list[str], add] = []
    note: str | None = None

    @field_validator("to", mode="before")
    @classmethod
    def trimmed(cls, value: object) -> object:
        if value == "nobody":
            raise ValueError("nobody can be paid")
        return value.strip() if isinstance(value, str) else value

    @model_validator(mode="after")
    def within(self) -> Order:
        if self.amount > self.limit:
            raise ValueError(f"{self.amount} is more than {self.limit}")
        return self


def steps(schema: type, *nodes: Callable[..., object]) -> StateGraph:
    graph = StateGraph(schema)
    before = START
    for at, node in enumerate(nodes):
        graph.add_node(f"n{at}", node).add_edge(before, f"n{at}")
        before = f"n{at}"
    return graph


def lab_of(*nodes: Callable[..., object], schema: type = Order, **options: Any) -> Lab:
    return Lab(lambda lab: steps(schema, *nodes), options)


def ask(state: Order) -> object:
    return {"note": node_interrupt(f"pay {state.to}?")}


async def test_nodes_get_the_model() -> None:
    def node(state: Order, context: object) -> object:
        assert type(state) is Order
        return {"log": [f"{state.amount} to {state.to}"]}

    result = await lab_of(node).start(to=" Rosa ")
    assert result.values == {
        "to": "Rosa",
        "amount": 1,
        "limit": 100,
        "log": ["1 to Rosa"],
        "note": None,
    }


async def test_routers_get_the_model() -> None:
    graph = StateGraph(Order).add_node("big", lambda s: {"note": "big"})
    graph.add_node("small", lambda s: {"note": "small"})
    graph.add_conditional_edges(
        START, lambda s: "big" if s.amount > 10 else "small", ["big", "small"]
    )
    assert (await graph.compile().invoke({"to": "Rosa", "amount": 11})).values["note"] == "big"


async def test_a_model_is_an_input() -> None:
    result = await lab_of(ask).run(Order(recipient="Rosa", amount=5))  # type: ignore[arg-type]
    assert (values_of(result), result.values["amount"]) == (["pay Rosa?"], 5)


async def test_a_model_as_the_input_of_a_later_turn_writes_what_it_was_made_with() -> None:
    lab = lab_of(lambda state: None)
    await lab.start(to="Rosa", amount=5, log=["a"])
    changed = Order(recipient="Eve")
    changed.log.append("b")
    result = await lab.run(changed)  # type: ignore[arg-type]
    values = (result.values["to"], result.values["amount"], result.values["log"])
    assert values == ("Eve", 5, ["a", "b"])


class Other(BaseModel):
    to: str


@pytest.mark.parametrize("given", [Other(to="Rosa"), Other])
async def test_another_model_is_no_input(given: Any) -> None:
    lab = lab_of(ask)
    with pytest.raises(Exception, match="got a"):
        await lab.run(given)
    with pytest.raises(StateUpdateError, match="expected a dict by key of the state, got a Other"):
        await steps(TypedDict("T", {"to": str}), ask).compile().invoke(Other(to="x"))  # type: ignore[operator]
    assert await lab.store.load("t") is None


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "to: Field required"),
        ({"to": "Rosa", "amount": -2}, "amount: Input should be greater than or equal to 0"),
        ({"to": "nobody"}, "nobody can be paid"),
        ({"to": "Rosa", "amount": 200}, "200 is more than 100"),
        ({"to": "Rosa", "amount": "5"}, "amount: Input should be a valid integer"),
        ({"recipient": "Rosa"}, "no key 'recipient'"),
        ({"to": "Rosa", "log": "x"}, "log"),
    ],
)
async def test_an_input_that_the_model_refuses_begins_nothing(
    given: dict[str, object], fault: str
) -> None:
    ran: list[object] = []
    lab = lab_of(ran.append)
    with pytest.raises(StateUpdateError, match=fault) as caught:
        await lab.start(**given)
    assert (ran, await lab.store.load("t"), caught.value.who) == ([], None, "the input")


@pytest.mark.parametrize(
    ("update", "fault"),
    [({"amount": -2}, "greater than"), ({"to": "nobody"}, "nobody can be paid")],
)
async def test_an_update_that_the_model_refuses_fails_its_node(
    update: dict[str, object], fault: str
) -> None:
    def node(state: Order) -> object:
        return {**update, "log": ["n"]}

    lab = lab_of(node)
    with pytest.raises(StateUpdateError, match=f"node 'n0'.*{fault}"):
        await lab.start(to="Rosa")
    state = await lab.state()
    assert (state.values["log"], state.tasks[0].status) == ([], "failed")


async def test_fields_that_only_fit_together_are_looked_at_when_the_step_ends() -> None:
    graph = StateGraph(Order).add_node("a", lambda s: {"amount": 500})
    graph.add_node("b", lambda s: {"limit": 600}).add_edge(START, "a").add_edge(START, "b")
    assert (await graph.compile().invoke({"to": "Rosa"})).values["amount"] == 500
    graph = steps(Order, lambda s: {"amount": 500})
    with pytest.raises(StateUpdateError, match="500 is more than 100"):
        await graph.compile().invoke({"to": "Rosa"})


async def test_what_a_validator_makes_is_stored_and_shown() -> None:
    lab = lab_of(lambda state: {"to": "  Eve "}, ask, interrupt_before=["n1"])
    [question] = (await lab.start(to="Rosa")).interrupts
    assert question.state is not None
    assert question.state["to"] == "Eve"
    assert values_of(await lab.run(resume=True)) == ["pay Eve?"]


@pytest.mark.parametrize("edit", [{"amount": -1}, {"amount": 101}, {"to": "nobody"}, {"no": 1}])
async def test_an_edit_that_the_model_refuses_is_refused_at_once(edit: dict[str, object]) -> None:
    lab = lab_of(ask, interrupt_before=["n0"])
    await lab.start(to="Rosa")
    before = await lab.state()
    with pytest.raises(ResumeDataError):
        await lab.run(resume=StateUpdate(edit))
    graph = before.interrupts[0].context.parent
    assert graph is not None
    with pytest.raises(ResumeDataError):
        await lab.run(resume_map={graph.id: StateUpdate(edit)})
    assert await lab.state() == before
    assert values_of(await lab.run(resume=StateUpdate({"to": " Bob "}))) == ["pay Bob?"]


async def test_people_see_what_the_model_demands() -> None:
    lab = lab_of(ask, interrupt_before=["n0"])
    [question] = (await lab.start(to="Rosa")).interrupts
    schema = question.context.info.state_schema  # type: ignore[attr-defined]
    assert schema["amount"] == {"type": "integer", "minimum": 0}


async def test_commands_and_updates_by_hand_are_validated() -> None:
    lab = lab_of(ask)
    await lab.start(to="Rosa")
    before = await lab.state()
    with pytest.raises(StateUpdateError):
        await lab.run(command=Command(update={"amount": 101}))
    with pytest.raises(StateUpdateError):
        await lab.graph.update_state("t", {"amount": -1})
    assert await lab.state() == before


async def test_a_send_carries_what_it_was_given() -> None:
    got: list[object] = []
    graph = StateGraph(Order).add_node("n", got.append)
    graph.add_conditional_edges(START, lambda s: Send("n", {"to": s.to}), ["n"])
    await graph.compile().invoke({"to": "Rosa"})
    assert got == [{"to": "Rosa"}]


async def test_sub_graphs_with_models() -> None:
    class Part(BaseModel):
        to: str
        size: int = 0

    inner = steps(Part, lambda part: {"size": len(part.to)}).compile(name="inner")
    graph = StateGraph(Order).add_node(
        "n",
        inner,
        to_input=lambda order: Part(to=order.to * 2),
        to_update=lambda part: {"amount": part.size},
    )
    graph.add_edge(START, "n")
    assert (await graph.compile().invoke({"to": "Rosa"})).values["amount"] == 8
    plain = StateGraph(Order).add_node("n", inner).add_edge(START, "n")
    assert (await plain.compile().invoke({"to": "Rosa"})).values["to"] == "Rosa"


async def test_a_validator_that_fails_is_told() -> None:
    class Odd(BaseModel):
        a: int = 0

        @field_validator("a")
        @classmethod
        def odd(cls, value: int) -> int:
            return {1: 1}[value]

    with pytest.raises(StateUpdateError, match=r"a validator failed: KeyError"):
        await steps(Odd, ask).compile().invoke({"a": 2})


async def test_defaults_are_not_validated_as_in_pydantic() -> None:
    class Sloppy(BaseModel):
        a: int = None  # type: ignore[assignment]
        b: str = Field(default_factory=lambda data: f"from {data['a']}")

    result = await steps(Sloppy, lambda s: {"a": 3}).compile().invoke({})
    assert (result.values["a"], result.values["b"]) == (3, "from None")


class First(BaseModel):
    a: int = 1
    b: str = "x"


class New(First):
    c: list[str] = Field(default_factory=lambda: ["new"])


class Needs(First):
    c: str


class Changed(BaseModel):
    a: str = "1"
    b: str = "x"


class FirstDict(TypedDict, total=False):
    a: int


class ChangedDict(TypedDict, total=False):
    a: str


def question(state: Any) -> object:
    return {"b": str(node_interrupt("q")) + str(getattr(state, "c", ""))}


async def later(first: type, then: type, *, finish: bool = False) -> Lab:
    """A thread that a version with another schema began."""
    store = MemoryCheckpointStore()
    lab = Lab(lambda lab: steps(first, question), store=store)
    await lab.start(a=2)
    if finish:
        await lab.run(resume="yes")
    lab.build = lambda lab: steps(then, question)
    return lab


async def test_new_defaults_reach_threads_that_wait() -> None:
    lab = await later(First, New)
    result = await lab.run(resume="yes")
    assert result.values == {"a": 2, "b": "yes['new']", "c": ["new"]}


async def test_new_defaults_reach_later_turns() -> None:
    lab = await later(First, New, finish=True)
    assert (await lab.start()).values["c"] == ["new"]


@pytest.mark.parametrize(
    ("first", "then"), [(First, Changed), (First, Needs), (FirstDict, ChangedDict)]
)
async def test_what_does_not_fit_a_new_schema_is_told_before_anything_runs(
    first: type, then: type
) -> None:
    lab = await later(first, then)
    before = ids(await lab.state())
    with pytest.raises(StateChangedError, match="update_state"):
        await lab.run(resume="yes")
    assert isinstance(StateChangedError("a", "b"), AgentChangedError)
    assert ids(await lab.state()) == before


async def test_what_does_not_fit_a_new_schema_can_be_written_anew() -> None:
    lab = await later(First, Changed)
    await lab.graph.update_state("t", {"a": "two"})
    await lab.run()
    assert (await lab.run(resume="yes")).values == {"a": "two", "b": "yes"}


@pytest.mark.parametrize(
    ("first", "then", "given"),
    [(First, Changed, {"b": "y"}), (First, Needs, {}), (FirstDict, ChangedDict, {})],
)
async def test_a_later_turn_refuses_what_does_not_fit_and_takes_a_new_value(
    first: type, then: type, given: dict[str, object]
) -> None:
    lab = await later(first, then)
    with pytest.raises(StateUpdateError):
        await lab.start(**given)
    fixed = {"c": "there"} if then is Needs else {"a": "two"}
    assert values_of(await lab.start(**given, **fixed)) == ["q"]


async def test_constraints_of_a_typed_dict_hold_as_well() -> None:
    class Sized(TypedDict, total=False):
        amount: Annotated[int, Field(ge=0)]

    with pytest.raises(StateUpdateError, match="greater than or equal to 0"):
        await steps(Sized, ask).compile().invoke({"amount": -1})
