"""Sub-graphs: scenarios 71 to 74 of the graphs' reference, and what belongs to them."""

from __future__ import annotations

from operator import add
from typing import Annotated, Any, TypedDict

import pytest

from agents.core.errors import ResumeDataError
from agents.graph import (
    END,
    START,
    Command,
    CompiledGraph,
    NodeRefusedError,
    SeveralPendingError,
    StateGraph,
    StateUpdate,
    StateUpdateError,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids, values_of


def sub(lab: Lab, **options: Any) -> CompiledGraph:
    return chain(lab, s1=lab.write("s1"), s2=lab.ask("s2", "sub?", key="b")).compile(**options)


async def test_g071_finished_nodes_of_a_sub_graph_stay_finished() -> None:
    lab = Lab(lambda lab: chain(lab, p=sub(lab), z=lab.write("z")))  # type: ignore[arg-type]
    result = await lab.start(log=["before"])
    assert (values_of(result), result.next) == (["sub?"], ("p",))
    assert result.interrupts[0].address == "runnable:graph;node:p;node:s2"
    result = await lab.run(resume="x")
    assert (result.values["b"], result.values["log"]) == ("x", ["before", "s1", "z"])
    assert lab.ran == {"s1": 1, "s2": 2, "s2 done": 1, "z": 1}


async def test_g073_two_questions_in_one_sub_graph() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = fan(a=lab.ask("a", "a?"), b=lab.ask("b", "b?")).compile()
        return chain(lab, p=inner)  # type: ignore[arg-type]

    lab = Lab(build)
    first = await lab.start()
    assert values_of(first) == ["a?", "b?"]
    with pytest.raises(SeveralPendingError):
        await lab.run(resume="x")
    result = await lab.answer({"b?": "B"})
    assert ids(result) == ids(first)[:1]
    assert lab.ran == {"a": 1, "b": 2, "b done": 1}
    result = await lab.answer({"a?": "A"})
    assert (result.values["a"], result.values["b"]) == ("A", "B")


async def test_g074_a_sub_graph_and_its_sibling_in_one_map() -> None:
    lab = Lab(lambda lab: fan(p=sub(lab), a=lab.ask("a", "a?")))  # type: ignore[arg-type]
    assert values_of(await lab.start()) == ["sub?", "a?"]
    result = await lab.answer({"sub?": "S", "a?": "A"})
    assert (result.values["a"], result.values["b"], result.next) == ("A", "S", ())
    assert lab.ran == {"s1": 1, "s2": 2, "s2 done": 1, "a": 2, "a done": 1}


async def test_g074_a_sibling_alone_does_not_enter_the_sub_graph() -> None:
    lab = Lab(lambda lab: fan(p=sub(lab), a=lab.ask("a", "a?")))  # type: ignore[arg-type]
    first = await lab.start()
    assert ids(await lab.answer({"a?": "A"})) == ids(first)[:1]
    assert lab.ran["s2"] == 1


async def test_several_levels() -> None:
    def build(lab: Lab) -> StateGraph:
        low = chain(lab, c=lab.ask("c", "deep?")).compile(interrupt_after=["c"])
        middle = chain(lab, b=low).compile()  # type: ignore[arg-type]
        return chain(lab, a=middle)  # type: ignore[arg-type]

    lab = Lab(build)
    [question] = (await lab.start()).interrupts
    assert question.address == "runnable:graph;node:a;node:b;node:c"
    parents, context = [], question.context.parent
    while context is not None:
        parents.append(str(context.address))
        context = context.parent
    assert parents == [
        "runnable:graph;node:a;node:b",
        "runnable:graph;node:a",
        "runnable:graph",
    ]
    [breakpoint_] = (await lab.run(resume="x")).interrupts
    assert (breakpoint_.kind, breakpoint_.address) == ("after", "runnable:graph;node:a;node:b")
    with pytest.raises(ResumeDataError):
        await lab.run(resume=StateUpdate({"n": "x"}))
    assert (await lab.run(resume=StateUpdate({"c": "y"}))).values["c"] == "y"


async def test_a_failure_in_a_sub_graph_keeps_what_is_finished_in_it() -> None:
    def build(lab: Lab) -> StateGraph:
        inner = fan(a=lab.write("a", a=1), b=lab.ask("b", "b?"), f=lab.flaky("f")).compile()
        return chain(lab, p=inner)  # type: ignore[arg-type]

    lab = Lab(build)
    with pytest.raises(OSError, match="away") as caught:
        await lab.start()
    assert len(caught.value.__notes__) == 2
    state = await lab.state()
    assert (values_of(state), state.tasks[0].status) == (["b?"], "failed")
    result = await lab.run()
    assert (values_of(result), ids(result)) == (["b?"], ids(state))
    assert lab.ran == {"a": 1, "b": 1, "f": 2}
    assert (await lab.run(resume="B")).values == {"a": 1, "b": "B", "log": ["f"]}
    assert lab.ran == {"a": 1, "b": 2, "b done": 1, "f": 2}


async def test_a_failure_without_questions_keeps_what_is_finished_too() -> None:
    lab = Lab(lambda lab: chain(lab, p=chain(lab, a=lab.write("a"), f=lab.flaky("f")).compile()))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="away"):
        await lab.start()
    assert (await lab.state()).interrupts == ()
    assert (await lab.run()).values["log"] == ["a", "f"]
    assert lab.ran == {"a": 1, "f": 2}


async def test_a_no_in_a_sub_graph_ends_the_whole() -> None:
    lab = Lab(lambda lab: chain(lab, p=sub(lab, interrupt_before=["s2"])))  # type: ignore[arg-type]
    await lab.start()
    with pytest.raises(NodeRefusedError):
        await lab.run(resume=False)
    assert (await lab.state()).phase == "cancelled"


async def test_a_fork_in_a_sub_graph_keeps_its_place() -> None:
    lab = Lab(lambda lab: chain(lab, p=sub(lab)))  # type: ignore[arg-type]
    paused = await lab.start()
    await lab.run(resume="one")
    state = await lab.graph.fork("t", at=paused.checkpoint)
    assert state.interrupts[0].address == "runnable:graph;node:p:2;node:s2"
    assert (await lab.run(resume="two")).values["b"] == "two"
    assert lab.ran["s1"] == 1


class Inner(TypedDict, total=False):
    text: str
    total: Annotated[int, add]


async def test_mapped_input_and_update() -> None:
    inner = StateGraph(Inner).add_node("n", lambda s: {"text": s["text"].upper(), "total": 2})
    inner.add_edge(START, "n")
    graph = StateGraph(State).add_node(
        "p",
        inner.compile(),
        to_input=lambda state: {"text": state["foo"]},
        to_update=lambda values: {"foo": values["text"], "n": values["total"]},
    )
    lab = Lab(lambda lab: graph.add_edge(START, "p"))
    assert (await lab.start(foo="x")).values == {"foo": "X", "n": 2, "log": []}


async def test_shared_keys_are_not_counted_twice() -> None:
    class Outer(TypedDict, total=False):
        log: Annotated[list[str], add]
        text: Annotated[str, add]
        pair: Annotated[tuple[int, ...], add]

    def node(state: Outer) -> object:
        return {"log": ["in"], "text": "!", "pair": (2,)}

    inner = StateGraph(Outer).add_node("n", node).add_edge(START, "n").compile()
    graph = StateGraph(Outer).add_node("p", inner).add_edge(START, "p")
    lab = Lab(lambda lab: graph)
    result = await lab.start(log=["out"], text="a", pair=(1,))
    assert result.values == {"log": ["out", "in"], "text": "a!", "pair": (1, 2)}


async def test_a_replaced_list_is_written_whole() -> None:
    class Outer(TypedDict, total=False):
        log: Annotated[list[str], lambda old, new: new]

    inner = StateGraph(Outer).add_node("n", lambda s: {"log": ["new"]}).add_edge(START, "n")
    graph = StateGraph(Outer).add_node("p", inner.compile()).add_edge(START, "p")
    lab = Lab(lambda lab: graph)
    assert (await lab.start(log=["old"])).values["log"] == ["new"]


async def test_a_sub_graph_needs_a_dict() -> None:
    from agents.graph import Send  # noqa: PLC0415 - only here

    graph = StateGraph(State).add_node("p", sub(Lab(lambda lab: graph)))
    graph.add_conditional_edges(START, lambda state: Send("p", "text"), ["p"])
    with pytest.raises(StateUpdateError, match="begins with a dict"):
        await Lab(lambda lab: graph).start()


async def test_a_graph_in_a_function_of_a_node() -> None:
    def ask(state: State) -> object:
        lab.ran["i"] += 1
        return {"a": node_interrupt(f"inner {state['foo']}?")}

    inner = StateGraph(State).add_node("i", ask)
    compiled = inner.add_edge(START, "i").compile(name="inner")

    async def node(state: State) -> object:
        lab.ran["p"] += 1
        first = await compiled.invoke({"foo": "1"})
        second = await compiled.invoke({"foo": "2"})
        return {"b": [first.values["a"], second.values["a"]]}

    lab = Lab(lambda lab: chain(lab, p=node))
    result = await lab.start()
    assert result.interrupts[0].address == "runnable:graph;node:p;runnable:inner;node:i"
    assert values_of(result) == ["inner 1?"]
    result = await lab.run(resume="A")
    assert values_of(result) == ["inner 2?"]
    assert result.interrupts[0].address == "runnable:graph;node:p;runnable:inner:2;node:i"
    assert (await lab.run(resume="B")).values["b"] == ["A", "B"]
    assert lab.ran == {"p": 3, "i": 4}


async def test_a_graph_of_its_own_inside_a_node() -> None:
    async def node(state: State) -> object:
        inner = await lab.flags["other"].invoke({}, thread_id="other")
        return {"n": len(inner.interrupts)}

    lab = Lab(lambda lab: chain(lab, p=node))
    lab.flags["other"] = chain(lab, o=lab.ask("o", "q")).compile(
        checkpoint_store=lab.store, name="o"
    )
    assert (await lab.start()).values["n"] == 1
    assert (await lab.flags["other"].get_state("other")).next == ("o",)


class Counting(TypedDict, total=False):
    seen: Annotated[list[str], add]
    foo: str
    n: int


def counting(lab: Lab) -> CompiledGraph:
    """A sub-graph that counts in a key of its own how often it ran."""

    def count(state: Counting) -> object:
        seen = [*state.get("seen", []), state.get("foo", "")]
        lab.notes.append(seen)
        return {"seen": [state.get("foo", "")], "n": len(seen)}

    return StateGraph(Counting).add_node("count", count).add_edge(START, "count").compile()


def with_memory(lab: Lab, inner: CompiledGraph, *, stateful: bool = True) -> StateGraph:
    graph = StateGraph(State).add_node("p", inner, stateful=stateful)
    return graph.add_edge(START, "p").add_edge("p", END)


async def test_a_stateful_sub_graph_keeps_what_only_it_knows() -> None:
    lab = Lab(lambda lab: with_memory(lab, counting(lab)))
    assert (await lab.start(foo="x")).values["n"] == 1
    assert (await lab.start(foo="y")).values["n"] == 2
    assert lab.notes == [["x"], ["x", "y"]]
    await lab.graph.fork("t", new_thread_id="u")
    assert (await lab.run({"foo": "z"}, thread_id="u")).values["n"] == 3
    assert (await lab.run({"foo": "z"}, thread_id="new")).values["n"] == 1


async def test_others_begin_anew() -> None:
    lab = Lab(lambda lab: with_memory(lab, counting(lab), stateful=False))
    await lab.start(foo="x")
    assert (await lab.start(foo="y")).values["n"] == 1


async def test_a_memory_in_a_loop_and_in_a_sub_graph_of_a_sub_graph() -> None:
    def build(lab: Lab) -> StateGraph:
        middle = with_memory(lab, counting(lab)).compile()
        graph = StateGraph(State).add_node("m", middle, stateful=True).add_edge(START, "m")
        return graph.add_conditional_edges("m", lambda s: "m" if s["n"] < 3 else END, ["m", END])

    lab = Lab(build)
    assert (await lab.start(foo="x")).values["n"] == 3
    assert (await lab.start(foo="y")).values["n"] == 4
    assert lab.notes[-1] == ["x", "x", "x", "y"]


async def test_a_memory_over_a_question_and_a_death() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = with_memory(lab, counting(lab)).add_node("q", lab.ask("q", "q?", key="a"))
        return graph.add_edge(START, "q")

    lab = Lab(build)
    await lab.start(foo="x")
    await lab.run(resume="A")
    await lab.start(foo="y")
    assert (await lab.run(resume="B")).values["n"] == 2
    await lab.start(foo="z")
    await lab.graph.update_state("t", {"a": "by hand"}, as_node="q")
    assert (await lab.state()).values["n"] == 3
    assert (await lab.start(foo="w")).values["n"] == 4
    assert (await lab.run(resume="C")).values["n"] == 4


async def test_a_memory_of_a_sub_graph_that_commands_its_parent() -> None:
    def up(state: Counting) -> object:
        lab.notes.append(state.get("seen", []))
        return Command(graph=Command.PARENT, update={"foo": "up"})

    def build(lab: Lab) -> StateGraph:
        inner = StateGraph(Counting).add_node("a", lambda s: {"seen": ["a"]})
        inner.add_node("b", up).add_edge(START, "a").add_edge("a", "b")
        return with_memory(lab, inner.compile())

    lab = Lab(build)
    await lab.start()
    assert (await lab.start()).values["foo"] == "up"
    assert lab.notes == [["a"], ["a", "a"]]


async def test_a_memory_stays_when_somebody_writes_as_another_node() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = with_memory(lab, counting(lab)).add_node("q", lab.ask("q", "q?", key="a"))
        return graph.add_edge(START, "q").add_node("r", lab.write("r")).add_edge("q", "r")

    for name in ("r", END):
        lab = Lab(build)
        await lab.start(foo="x")
        await lab.graph.update_state("t", {"a": "by hand"}, as_node=name)
        assert (await lab.start(foo="y")).values["n"] == 2
