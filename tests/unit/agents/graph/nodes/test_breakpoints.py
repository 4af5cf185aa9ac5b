"""Breakpoints: scenarios 41 to 49 of the graphs' reference, and 122 to 128 of the other one."""

from __future__ import annotations

import pytest

from agents.core.asking.answers import (
    ApprovalResult,
    Cancelled,
    Expired,
    InDoubtResult,
    ReviewEditResult,
)
from agents.core.errors import ResumeDataError
from agents.gates.human import HumanResponse
from agents.graph import (
    END,
    START,
    Command,
    GraphBuildError,
    MultipleAnswers,
    NodeRefusedError,
    StateGraph,
    StateUpdate,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, fan, ids, values_of


def abc(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.write("a", a=1), b=lab.write("b", b=1), c=lab.write("c", c=1))


async def test_g041_before() -> None:
    lab = Lab(abc, {"interrupt_before": ["b"]})
    result = await lab.start()
    [question] = result.interrupts
    assert (question.value, question.kind, question.node) == ("b", "before", "b")
    assert question.state == {"a": 1, "log": []}
    assert (result.next, lab.ran) == (("b",), {"a": 1})
    assert values_of(await lab.state()) == ["b"]
    assert [task.status for task in (await lab.state()).tasks] == ["waiting"]
    result = await lab.run(resume=True)
    assert (result.next, lab.ran) == ((), {"a": 1, "b": 1, "c": 1})


@pytest.mark.parametrize("value", [True, ApprovalResult(approved=True), StateUpdate({})])
async def test_g041_a_clear_yes_goes_on(value: object) -> None:
    lab = Lab(abc, {"interrupt_before": ["b"]})
    await lab.start()
    await lab.run(resume=value)
    assert lab.ran == {"a": 1, "b": 1, "c": 1}


UNCLEAR = [
    None,
    "",
    "go",
    "no",
    "reject",
    0,
    1,
    {"approved": False},
    {"approved": True},
    {"type": "ignore"},
    [True],
    ReviewEditResult(disapproved=True),
    ReviewEditResult(no_need_to_edit=True),
    HumanResponse(type="ignore"),
    HumanResponse(type="accept"),
    InDoubtResult(choice="give_up"),
    InDoubtResult(choice="ran"),
]


@pytest.mark.parametrize("value", UNCLEAR)
async def test_whatever_is_no_clear_yes_lets_nothing_run(value: object) -> None:
    lab = Lab(abc, {"interrupt_before": ["b"]})
    await lab.start()
    before = await lab.state()
    with pytest.raises(ResumeDataError, match="nothing ran"):
        await lab.run(resume=value)
    assert (await lab.state(), lab.ran) == (before, {"a": 1})


@pytest.mark.parametrize(
    "value", [False, Expired(), Cancelled(by="U1"), ApprovalResult(approved=False, reason="late")]
)
async def test_a_no_ends_the_graph(value: object) -> None:
    lab = Lab(abc, {"interrupt_before": ["b"]})
    await lab.start()
    with pytest.raises(NodeRefusedError) as caught:
        await lab.run(resume=value)
    assert caught.value.node == "b"
    state = await lab.state()
    assert (state.phase, state.next, state.interrupts) == ("cancelled", (), ())
    assert lab.ran == {"a": 1}
    assert "'b'" in state.reason


async def test_g043_e125_before_the_first_node() -> None:
    lab = Lab(abc, {"interrupt_before": "*"})
    result = await lab.start()
    assert (values_of(result), result.next, lab.ran) == (["a"], ("a",), {})
    assert values_of(await lab.run(resume=True)) == ["b"]


async def test_g044_after_never_runs_the_node_again() -> None:
    lab = Lab(
        lambda lab: chain(lab, w=lab.write("w"), z=lab.write("z")), {"interrupt_after": ["w"]}
    )
    result = await lab.start()
    assert (values_of(result), result.interrupts[0].kind) == (["w"], "after")
    assert (result.values["log"], result.next, lab.ran) == (["w"], ("z",), {"w": 1})
    await lab.run(resume=True)
    assert lab.ran == {"w": 1, "z": 1}


async def test_g044_after_the_last_node() -> None:
    lab = Lab(abc, {"interrupt_after": ["c"]})
    result = await lab.start()
    assert (values_of(result), result.next, result.values["c"]) == (["c"], (), 1)
    assert (await lab.state()).phase == "paused"
    result = await lab.run(resume=StateUpdate({"c": 2}))
    assert result.values["c"] == 2
    assert lab.ran == {"a": 1, "b": 1, "c": 1}


async def test_g046_the_value_never_reaches_the_node() -> None:
    lab = Lab(lambda lab: chain(lab, b=lab.ask("b", "inner?")), {"interrupt_before": ["b"]})
    await lab.start()
    assert values_of(await lab.run(resume=True)) == ["inner?"]
    assert (await lab.run(resume="answer")).values["b"] == "answer"


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_g047_unknown_names(option: str) -> None:
    lab = Lab(abc, {option: ["b", "zzz"]})
    with pytest.raises(GraphBuildError, match="zzz"):
        _ = lab.graph


async def test_g049_a_breakpoint_in_a_loop() -> None:
    def build(lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("n", lab.write("n")).add_edge(START, "n")
        return graph.add_conditional_edges(
            "n", lambda state: "n" if len(state["log"]) < 3 else END, ["n", END]
        )

    lab = Lab(build, {"interrupt_before": ["n"]})
    seen = [ids(await lab.start())]
    for _ in range(2):
        seen.append(ids(await lab.run(resume=True)))  # noqa: PERF401 - one after the other
    assert len({interrupt_id for step_ids in seen for interrupt_id in step_ids}) == 3
    assert (await lab.run(resume=True)).values["log"] == ["n", "n", "n"]


async def test_e122_the_state_is_shown_and_can_be_edited() -> None:
    def build(lab: Lab) -> StateGraph:
        return chain(lab, a=lambda s: {"foo": "s1"}, b=lambda s: {"foo": s["foo"] + "2"})

    lab = Lab(build, {"interrupt_before": ["b"]})
    [question] = (await lab.start()).interrupts
    assert isinstance(question.state, dict)
    question.state["foo"] = "changed in place"
    assert (await lab.run(resume=True)).values["foo"] == "s12"
    lab = Lab(build, {"interrupt_before": ["b"]})
    [question] = (await lab.start()).interrupts
    assert question.address == "runnable:graph"
    result = await lab.run(resume_map={question.id: StateUpdate({"foo": "s1[edited]"})})
    assert result.values["foo"] == "s1[edited]2"


async def test_an_edit_asks_no_reducer() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.write("a"), b=lab.write("b")), {"interrupt_before": "b"})
    await lab.start()
    assert (await lab.run(resume=StateUpdate({"log": ["x"]}))).values["log"] == ["x", "b"]


async def test_e124_before_and_after_wait_together() -> None:
    lab = Lab(abc, {"interrupt_before": ["b"], "interrupt_after": ["a"]})
    result = await lab.start()
    assert [(interrupt.kind, interrupt.node) for interrupt in result.interrupts] == [
        ("after", "a"),
        ("before", "b"),
    ]
    after, before = ids(result)
    left = await lab.run(resume_map={after: StateUpdate({"foo": "x"})})
    assert ids(left) == [before]
    assert ("foo" in left.values, lab.ran) == (False, {"a": 1})
    result = await lab.run(resume_map={before: StateUpdate({"a": 2})})
    assert (result.values["foo"], result.values["a"]) == ("x", 2)


@pytest.mark.parametrize(
    "edit",
    [
        StateUpdate({"n": "x"}),
        StateUpdate({"nope": 1}),
        StateUpdate({"log": "x"}),
        StateUpdate([1]),  # type: ignore[arg-type]
        StateUpdate({"a": object()}),
        object(),
        MultipleAnswers(("x",)),
    ],
)
async def test_e127_an_edit_of_the_wrong_type(edit: object) -> None:
    lab = Lab(abc, {"interrupt_before": ["b"]})
    await lab.start()
    before = await lab.state()
    with pytest.raises(ResumeDataError):
        await lab.run(resume=edit)
    assert await lab.state() == before


async def test_one_of_several_before_holds_the_whole_step() -> None:
    lab = Lab(lambda lab: fan(a=lab.write("a"), b=lab.write("b")), {"interrupt_before": ["b"]})
    assert values_of(await lab.start()) == ["b"]
    assert lab.ran == {}
    assert (await lab.run(resume=True)).values["log"] == ["a", "b"]


async def test_e128_every_graph_has_a_state_to_show() -> None:
    lab = Lab(lambda lab: chain(lab, a=lambda s: None), {"interrupt_before": ["a"]})
    assert (await lab.start()).interrupts[0].state == {"log": []}


async def test_e139_an_edit_of_the_graph_itself() -> None:
    def asks(state: State) -> object:
        return {"b": f"{state.get('foo')}+{node_interrupt('q')}"}

    lab = Lab(lambda lab: chain(lab, a=lambda s: {"foo": "old"}, b=asks))
    [question] = (await lab.start()).interrupts
    parent = question.context.parent
    assert parent is not None
    for bad in ("x", StateUpdate({"n": "x"}), None):
        with pytest.raises(ResumeDataError):
            await lab.run(resume_map={parent.id: bad})
    result = await lab.run(resume_map={parent.id: StateUpdate({"foo": "new"})})
    assert ids(result) == [question.id]
    assert (await lab.run(resume="A")).values["b"] == "new+A"


async def test_an_edit_that_does_not_fit_beside_an_answer_that_does() -> None:
    lab = Lab(lambda lab: chain(lab, b=lab.ask("b", "q")))
    [question] = (await lab.start()).interrupts
    assert question.context.parent is not None
    edit = {question.context.parent.id: StateUpdate({"n": "x"})}
    with pytest.raises(ResumeDataError):
        await lab.run(resume_map={question.id: "A", **edit})
    assert (await lab.state()).values["b"] == "A"


async def test_a_command_does_not_get_round_a_breakpoint() -> None:
    lab = Lab(
        lambda lab: fan(a=lab.ask("a", "q"), z=lab.write("z", c=1)), {"interrupt_before": ["z"]}
    )
    assert values_of(await lab.start()) == ["z"]
    await lab.run(resume=True)
    result = await lab.run(resume="A", command=Command(goto="z"))
    assert (values_of(result), lab.ran["z"]) == (["z"], 1)
    await lab.run(resume=True)
    assert lab.ran["z"] == 2


async def test_e139_a_change_of_the_state_in_place_does_not_count() -> None:
    """Eino keeps it; here only what a node returns, or does `task`, is written."""

    def node(state: State) -> object:
        lab.notes.append(state["foo"])
        state["foo"] += "[edited]"
        return {"b": f"{state['foo']}+{node_interrupt('q')}"}

    lab = Lab(lambda lab: chain(lab, a=lambda s: {"foo": "n1"}, b=node))
    [question] = (await lab.start()).interrupts
    assert (await lab.state()).values["foo"] == "n1"
    parent = question.context.parent
    assert parent is not None
    await lab.run(resume_map={parent.id: StateUpdate({"foo": "n2"})})
    result = await lab.run(resume="A")
    assert (result.values["foo"], result.values["b"]) == ("n2", "n2[edited]+A")
    assert lab.notes == ["n1", "n2"]
