"""The runtime in graphs: scenarios 115 to 142 of the other reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agents import (
    ApprovalInfo,
    ResumeDataError,
    address_segment,
    approval_gate,
    composite_interrupt,
    get_interrupt_state,
    get_resume_context,
    idempotency_key,
    session_values,
    stateful_interrupt,
)
from agents.core.calls import ToolCall, ToolReturn
from agents.core.interrupt import InterruptSignal
from agents.core.messages import PlannedCall
from agents.graph import (
    END,
    START,
    MultipleAnswers,
    OutsideNodeError,
    StateGraph,
    node_interrupt,
    task,
)
from agents.tools.call import execute
from tests.unit.agents.graph.support import Lab, State, chain, ids, values_of
from tests.unit.agents.support import Plain


def ask(lab: Lab, name: str) -> Any:
    """A node that asks with the signal itself, and keeps its input."""

    def node(state: State) -> object:
        lab.ran[name] += 1
        was, _, kept = get_interrupt_state(str)
        is_target, has_data, data = get_resume_context(str)
        if not was:
            stateful_interrupt(f"{name}?", f"st-{name}")
        if not is_target or not has_data:
            stateful_interrupt(f"{name}?", kept)
        return {name: f"{kept}+{data}"}

    return node


async def test_e115_going_on_without_answers_changes_nothing() -> None:
    lab = Lab(lambda lab: chain(lab, a=ask(lab, "a")))
    first = await lab.start(foo="x")
    result = await lab.run()
    assert ids(result) == ids(first)
    assert lab.ran["a"] == 1


async def test_e116_no_answer_is_no_answer() -> None:
    lab = Lab(lambda lab: chain(lab, a=ask(lab, "a")))
    [question] = ids(await lab.start())
    [new] = ids(await lab.run(resume_map={question: None}))
    assert new != question  # it was entered without data, and asked again
    question = new
    with pytest.raises(ResumeDataError):
        await lab.run(resume=MultipleAnswers(("x",)))
    with pytest.raises(ResumeDataError, match="is a int, expected str; answer again"):
        await lab.run(resume_map={question: 3})
    assert (await lab.run(resume="x")).values["a"] == "st-a+x"


async def run_tool(tool: Any, call_id: str, arguments: Mapping[str, Any]) -> str:
    """Call a tool as an agent does."""
    wanted = ToolCall(call_id, tool.definition.name, dict(arguments))
    result = await execute(PlannedCall(wanted), {tool.definition.name: tool}, why="")
    assert isinstance(result, ToolReturn)
    return result.text


async def test_e130_a_tool_in_nested_sub_graphs() -> None:
    pay = approval_gate(Plain("pay"))

    async def tools(state: State) -> object:
        return {"a": await run_tool(pay, "call_1", {"x": 1})}

    def build(lab: Lab) -> StateGraph:
        low = chain(lab, tools=tools).compile()
        return chain(lab, sub_a=chain(lab, sub_b=low).compile())  # type: ignore[arg-type]

    lab = Lab(build)
    [question] = (await lab.start()).interrupts
    assert question.address == ("runnable:graph;node:sub_a;node:sub_b;node:tools;tool:pay:call_1")
    assert isinstance(question.value, ApprovalInfo)
    assert question.value.thread == "t"
    assert (question.kind, question.node) == ("interrupt", "tools")
    with pytest.raises(ResumeDataError):
        await lab.run(resume=True)
    result = await lab.run(resume=question.value.approve(by="U1"))
    assert result.values["a"] == 'pay ok {"x": 1}'


def batch_node(lab: Lab) -> Any:
    """Three processes side by side, each with a question."""

    def process(name: str) -> str:
        with address_segment("process", name):
            lab.ran[name] += 1
            _, has_data, data = get_resume_context(str)
            if not has_data:
                stateful_interrupt(f"{name}?", name)
            return f"{name}={data}"

    def node(state: State) -> object:
        _, _, done = get_interrupt_state(dict)
        done, signals = dict(done or {}), []
        for name in ("p0", "p1", "p2"):
            if name in done:
                continue
            try:
                done[name] = process(name)
            except InterruptSignal as signal:
                signals.append(signal)
        if signals:
            composite_interrupt("batch", done, *signals)
        return {"a": [done[name] for name in sorted(done)]}

    return node


async def test_e131_batch_composite() -> None:
    lab = Lab(lambda lab: chain(lab, batch=batch_node(lab)))
    first = await lab.start()
    assert values_of(first) == ["p0?", "p1?", "p2?"]
    parents = {interrupt.context.parent for interrupt in first.interrupts}
    assert len(parents) == 1
    [parent] = parents
    assert parent is not None
    assert (str(parent.address), parent.is_root_cause) == ("runnable:graph;node:batch", False)
    result = await lab.answer({"p0?": "A", "p2?": "C"})
    assert values_of(result) == ["p1?"]
    result = await lab.answer({"p1?": "B"})
    assert result.values["a"] == ["p0=A", "p1=B", "p2=C"]
    assert (lab.ran["p0"], lab.ran["p2"]) == (2, 2)


async def test_e133_a_composite_without_signals_is_a_question() -> None:
    def node(state: State) -> object:
        was, _, _ = get_interrupt_state(str)
        if not was:
            composite_interrupt("alone", "kept")
        return {"a": get_resume_context(str)[2]}

    lab = Lab(lambda lab: chain(lab, a=node))
    [question] = (await lab.start()).interrupts
    assert question.context.is_root_cause
    assert (await lab.run(resume="x")).values["a"] == "x"


async def test_e140_a_branch_is_evaluated_once() -> None:
    def route(state: State) -> str:
        lab.ran["route"] += 1
        return "b"

    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("a", lab.write("a")).add_node("b", ask(lab, "b"))
        return graph.add_edge(START, "a").add_conditional_edges("a", route, ["b", END])

    lab = Lab(build)
    await lab.start()
    await lab.run(resume="x")
    assert lab.ran == {"a": 1, "route": 1, "b": 2}


async def test_once_only_in_a_node() -> None:
    async def work() -> int:
        return 1

    with pytest.raises(OutsideNodeError, match="task"):
        await task("x", work)


async def test_e142_session_values_travel_with_the_thread() -> None:
    def first(state: State) -> object:
        session_values()["count"] = 1
        return None

    def second(state: State) -> object:
        answer = node_interrupt("q")
        session_values()["count"] = 1 + session_values()["count"]  # type: ignore[operator]
        return {"a": [answer, session_values()["count"]]}

    lab = Lab(lambda lab: chain(lab, a=first, b=second))
    await lab.start()
    assert (await lab.run(resume="x")).values["a"] == ["x", 2]


async def test_keys_of_calls_differ_from_run_to_run() -> None:
    def node(state: State) -> object:
        return {"log": [idempotency_key()]}

    graph = StateGraph(State).add_node("n", node).add_edge(START, "n")
    graph.add_conditional_edges("n", lambda s: "n" if len(s["log"]) < 3 else END, ["n", END])
    lab = Lab(lambda lab: graph)
    log = (await lab.start()).values["log"]
    assert isinstance(log, list)
    assert len(set(log)) == 3
