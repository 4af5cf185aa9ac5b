"""The state of a graph: schemas of all kinds, reducers, and types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest
from pydantic import BaseModel, Field

from agents.core.codec import types
from agents.graph import (
    END,
    START,
    Command,
    GraphBuildError,
    NodeContext,
    Send,
    StateGraph,
    StateUpdateError,
)
from agents.graph.state.channels import Channels
from agents.graph.state.shapes import misfit
from tests.unit.agents.graph.support import Lab, State, chain


class Typed(TypedDict, total=False):
    name: Required[str]
    age: NotRequired[int]
    log: Annotated[list[str], "a note", add]


@dataclass
class Plain:
    name: str
    age: int = 7
    log: Annotated[list[str], add] = field(default_factory=lambda: ["first"])


class Model(BaseModel):
    name: str
    age: int = 7
    log: Annotated[list[str], Field(description="x"), add] = Field(
        default_factory=lambda: ["first"]
    )


@pytest.mark.parametrize(
    ("schema", "initial"),
    [
        (Typed, {"log": []}),
        (Plain, {"age": 7, "log": ["first"]}),
        (Model, {"age": 7, "log": ["first"]}),
    ],
)
async def test_schemas(schema: type, initial: dict[str, Any]) -> None:
    def node(state: Any) -> object:
        return {"log": [state.name if schema is Model else state["name"]]}

    graph = StateGraph(schema).add_node("n", node).add_edge(START, "n")
    lab = Lab(lambda lab: graph)
    result = await lab.start(name="x")
    assert result.values == {**initial, "name": "x", "log": [*initial["log"], "x"]}
    with pytest.raises(StateUpdateError):
        await lab.start(age="x")


class Nested(TypedDict):
    x: int


class Odd:
    def __init__(self, x: int) -> None:
        self.x = x


types.add("tests.graph.odd/1", Odd, lambda value: value.x, Odd)


class Rich(TypedDict, total=False):
    nested: Nested
    either: Nested | int
    many: list[Nested]
    odd: Odd
    total: Annotated[int, add]
    keyed: Annotated[dict[str, int], lambda old, new: {**old, **new}]
    loose: Annotated[Any, lambda old, new: new]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"nested": {"x": 1}}, {"nested": 3}),
        ({"either": 3}, {"either": "x"}),
        ({"many": [{"x": 1}]}, {"many": 3}),
        ({"odd": Odd(1)}, {"odd": 1}),
        ({"total": 2}, {"total": "x"}),
        ({"keyed": {"a": 1}}, {"keyed": 3}),
        ({"keyed": {"a": 1}}, {"keyed": {"a": "x"}}),
        ({"loose": "x"}, {"loose": object}),
    ],
)
async def test_types_of_values(good: dict[str, Any], bad: dict[str, Any]) -> None:
    channels = Channels(Rich)
    assert set(good) <= set(channels.merge(channels.initial(), [("me", good)]))
    with pytest.raises(Exception, match=r"was not written|cannot be stored"):
        channels.merge(channels.initial(), [("me", bad)])
    key = next(iter(bad))
    with pytest.raises(Exception, match=r"was not written|cannot be stored"):
        channels.replace({}, {key: bad[key]}, "me")


def test_keys_without_a_first_value_take_the_update_as_it_is() -> None:
    channels = Channels(Rich)
    values = channels.merge(channels.initial(), [("me", {"loose": 1})])
    assert channels.merge(values, [("me", {"loose": 2})])["loose"] == 2
    assert channels.initial() == {"total": 0, "keyed": {}}


def test_schemas_that_cannot_be_read() -> None:
    unreadable = type("Unreadable", (Plain,), {"__annotations__": {"x": "Nowhere"}})
    with pytest.raises(GraphBuildError, match="cannot be read"):
        StateGraph(unreadable)
    nothing = TypedDict("nothing", {})  # noqa: UP013 - there are no fields
    with pytest.raises(GraphBuildError, match="no keys"):
        StateGraph(nothing)


async def test_a_node_cannot_change_the_state_in_place() -> None:
    def node(state: State) -> None:
        state["log"].append("in place")

    assert (await Lab(lambda lab: chain(lab, a=node)).start(log=["x"])).values["log"] == ["x"]


async def test_async_nodes_routers_and_contexts() -> None:
    seen: list[NodeContext] = []

    class Caller:
        async def __call__(self, state: State, context: NodeContext) -> object:
            seen.append(context)
            return {"log": ["called"]}

    async def route(state: State) -> list[object]:
        return [END, Send("b", "sent")]

    def late(state: object, default: int = 3) -> object:
        async def inner() -> object:
            return {"log": [f"{state}{default}"]}

        return inner()

    graph = StateGraph(State).add_node("a", Caller()).add_node("b", late)
    graph.set_entry_point("a").add_conditional_edges("a", route, {"b": "b", END: END})
    graph.set_finish_point("b")
    result = await Lab(lambda lab: graph).start()
    assert result.values["log"] == ["called", "sent3"]
    assert seen == [NodeContext(node="a", run=1, step=0, thread_id="t")]


async def test_routers_with_a_map() -> None:
    graph = StateGraph(State).add_node("a", lambda s: None).add_node("b", lambda s: {"b": 1})
    graph.add_edge(START, "a").add_conditional_edges(
        "a", lambda s: s["n"] > 1, {True: "b", False: END}
    )
    lab = Lab(lambda lab: graph)
    assert "b" not in (await lab.start(n=1)).values
    assert (await lab.start(n=2)).values["b"] == 1


async def test_a_command_takes_the_place_of_edges() -> None:
    def build(lab: Lab) -> StateGraph:
        def node(state: State) -> object:
            goto: Any = ["c", Send("d", {"log": []})] if state["n"] else ()
            return Command(goto=goto, update={"a": 1})

        graph = StateGraph(State).add_node("a", node, destinations=["c", "d"])
        for name in "bcd":
            graph.add_node(name, lab.write(name))
        return graph.add_edge(START, "a").add_edge("a", "b")

    lab = Lab(build)
    assert (await lab.start(n=1)).values["log"] == ["c", "d"]
    assert (await Lab(build).start(n=0)).values["log"] == ["b"]


def test_a_builtin_can_be_a_node() -> None:
    StateGraph(State).add_node("n", dict).add_edge(START, "n").compile()


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        (True, 1, ""),
        ({}, 1, ""),
        ({"type": ["string", "null"]}, 1, ""),
        ({"$ref": "#/$defs/nowhere"}, 1, ""),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "expected string"),
        ({"oneOf": [{"type": "string"}]}, "x", ""),
        ({"const": 1}, True, "expected one of 1"),
        ({"type": "array", "items": {"type": "string"}}, ["a", 1], "1: expected string"),
        ({"type": "object", "required": ["a", "b"]}, {"a": 1}, "b: missing"),
    ],
)
def test_misfits(schema: Any, value: object, fault: str) -> None:
    assert (fault in misfit(schema, value)) if fault else misfit(schema, value) == ""


@dataclass
class Part:
    """A part of a state."""

    a: int


def joined(left: list[int], right: list[int]) -> list[int]:
    return [*left, *right]


class Shown(TypedDict, total=False):
    """Keys of many types."""

    size: Literal["S", "M"]
    numbers: Annotated[list[int], joined]
    many: list[Part]
    call: Callable[[], int]


def test_keys_whose_schema_stands_for_itself() -> None:
    assert Channels(Shown).schemas() == {
        "size": {"enum": ["S", "M"], "type": "string"},
        "numbers": {"items": {"type": "integer"}, "type": "array"},
    }
