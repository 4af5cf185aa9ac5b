"""Questions of one node: scenarios 1 to 20 of the graphs' reference, and 88."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.core.asking.answers import Cancelled, Expired
from agents.core.errors import (
    AgentConfigError,
    NotAnsweredError,
    NothingPendingError,
    ResumeDataError,
    UnknownInterruptError,
)
from agents.graph import (
    AlreadyAnsweredError,
    Command,
    MultipleAnswers,
    QuestionChangedError,
    StateGraph,
    node_interrupt,
)
from tests.unit.agents.graph.support import Lab, State, chain, ids, values_of


def one_question(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.ask("a", "what is your age?"))


def two_questions(lab: Lab) -> StateGraph:
    return chain(lab, a=lab.ask("a", "q1", "q2"))


async def test_g001_question_surfaces() -> None:
    lab = Lab(one_question)
    result = await lab.start(foo="abc")
    [question] = result.interrupts
    assert question.value == "what is your age?"
    assert len(question.id) == 36
    assert (question.kind, question.node) == ("node", "a")
    assert result.values == {"foo": "abc", "log": []}
    assert result.next == ("a",)
    assert lab.ran == {"a": 1}


async def test_g002_g004_a_resume_by_id_runs_the_node_again() -> None:
    lab = Lab(one_question)
    [question] = (await lab.start(foo="abc")).interrupts
    result = await lab.run(resume_map={question.id: "19"})
    assert result.values["a"] == "19"
    assert (result.interrupts, result.next) == ((), ())
    assert lab.ran == {"a": 2, "a done": 1}


@pytest.mark.parametrize(
    "value",
    [False, 0, "", None, [], {}, {"a": {"b": [None]}}, {"0" * 32: 1}, ["A", "B"]],
)
async def test_g005_g007_whatever_is_no_list_of_answers_is_one_answer(value: object) -> None:
    lab = Lab(one_question)
    [question] = (await lab.start()).interrupts
    assert (await lab.run(resume_map={question.id: value})).values["a"] == value
    lab = Lab(one_question)
    await lab.start()
    assert (await lab.run(resume=value)).values["a"] == value


async def test_g008_resume_carries_no_input() -> None:
    lab = Lab(one_question)
    await lab.start(foo="1")
    result = await lab.run({"foo": "2", "c": "x", "unknown": 1}, resume="19")
    assert result.values == {"foo": "1", "a": "19", "log": []}


async def test_g010_get_state() -> None:
    lab = Lab(one_question)
    await lab.start(foo="abc")
    paused = await lab.state()
    [task] = paused.tasks
    assert (task.name, task.result, task.error) == ("a", None, None)
    assert [interrupt.value for interrupt in task.interrupts] == ["what is your age?"]
    assert (paused.next, values_of(paused)) == (("a",), ["what is your age?"])
    assert (paused.phase, paused.values) == ("paused", {"foo": "abc", "log": []})
    await lab.run(resume="19")
    ended = await lab.state()
    assert (ended.next, ended.tasks, ended.interrupts) == ((), (), ())
    assert ended.phase == "finished"


async def test_g011_two_questions_one_after_the_other() -> None:
    lab = Lab(two_questions)
    await lab.start()
    second = await lab.run(resume="A")
    assert values_of(second) == ["q2"]
    assert "a" not in second.values
    assert lab.ran["a"] == 2
    last = await lab.run(resume="B")
    assert last.values["a"] == ["A", "B"]
    assert lab.ran["a"] == 3


async def test_g013_a_repeated_answer_never_meets_the_next_question() -> None:
    lab = Lab(two_questions)
    [first] = (await lab.start()).interrupts
    [second] = (await lab.run(resume_map={first.id: "A"})).interrupts
    assert first.id != second.id
    before = await lab.state()
    for answer in ("A", "A again"):
        with pytest.raises(AlreadyAnsweredError) as caught:
            await lab.run(resume_map={first.id: answer})
        assert (caught.value.target, caught.value.pending) == (first.id, (second.id,))
    assert await lab.state() == before
    assert lab.ran["a"] == 2
    assert (await lab.run(resume_map={second.id: "B"})).values["a"] == ["A", "B"]


async def test_g014_several_answers_at_once_and_too_many_write_nothing() -> None:
    lab = Lab(two_questions)
    [first] = (await lab.start()).interrupts
    with pytest.raises(QuestionChangedError, match="1 more answers"):
        await lab.run(resume=MultipleAnswers(("A", "B", "C")))
    assert ids(await lab.state()) == [first.id]
    runs = lab.ran["a"]
    assert (await lab.run(resume=MultipleAnswers(("A", "B")))).values["a"] == ["A", "B"]
    assert lab.ran["a"] == runs + 1  # both at once


async def test_g014_a_short_list_leaves_the_rest() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", "q1", "q2", "q3")))
    await lab.start()
    assert values_of(await lab.run(resume=MultipleAnswers(("A", "B")))) == ["q3"]
    assert (await lab.run(resume="C")).values["a"] == ["A", "B", "C"]


async def test_g016_updates_beside_answers_are_written_once() -> None:
    def node(state: State) -> object:
        answers = [str(node_interrupt(f"q{at}")) for at in range(3)]
        return {"log": [f"a:{''.join(answers)}"]}

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    result = None
    for at in range(1, 4):
        result = await lab.run(resume=str(at), command=Command(update={"log": [f"u{at}"]}))
    assert result is not None
    assert result.values["log"] == ["u1", "u2", "u3", "a:123"]


async def test_g017_a_changed_order_is_an_error_and_is_asked_anew() -> None:
    def node(state: State) -> object:
        if not lab.flags:
            lab.notes.append(node_interrupt("A?"))
        return {"b": node_interrupt("B?")}

    lab = Lab(lambda lab: chain(lab, a=node))
    [first] = (await lab.start()).interrupts
    lab.flags["changed"] = True
    with pytest.raises(QuestionChangedError, match="asked anew") as caught:
        await lab.run(resume_map={first.id: "ansA"})
    error = caught.value
    assert (error.node, error.index, error.target) == ("a", 0, first.id)
    assert (await lab.pending(), "b" in (await lab.state()).values) == (["B?"], False)
    with pytest.raises(UnknownInterruptError):
        await lab.run(resume_map={first.id: "ansA"})
    assert (await lab.run(resume="ansB")).values["b"] == "ansB"


def priced(lab: Lab) -> StateGraph:
    """A node that asks about a price that moves."""

    def node(state: State) -> object:
        price = lab.flags.get("price", 10)
        return {"a": [price, node_interrupt(f"pay {price}?")]}

    return chain(lab, a=node)


@pytest.mark.parametrize("nobody", [Expired(), Cancelled(by="U1")])
async def test_that_nobody_answered_is_true_of_a_changed_question_too(nobody: object) -> None:
    lab = Lab(priced)
    await lab.start()
    lab.flags["price"] = 30
    with pytest.raises(NotAnsweredError):
        await lab.run(resume=nobody)


async def test_that_nobody_answered_a_question_that_is_gone_is_no_error() -> None:
    def node(state: State) -> object:
        return {"a": 1 if lab.flags else node_interrupt("q")}

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    lab.flags["gone"] = True
    assert (await lab.run(resume=Expired())).values["a"] == 1


async def test_a_changed_question_that_was_not_answered_is_asked_anew_without_an_error() -> None:
    async def node(state: State) -> object:
        async def ask(text: str) -> object:
            return node_interrupt(text)

        async with asyncio.TaskGroup() as group:
            price = lab.flags.get("price", 10)
            tasks = [group.create_task(ask(text)) for text in ("who?", f"pay {price}?")]
        return {"a": [task.result() for task in tasks]}

    lab = Lab(lambda lab: chain(lab, a=node))
    who, pay = ids(await lab.start())
    lab.flags["price"] = 30
    [new] = (await lab.run(resume_map={who: "Rosa"})).interrupts
    assert (new.value, new.id == pay) == ("pay 30?", False)
    assert (await lab.run(resume="yes")).values["a"] == ["Rosa", "yes"]


async def test_a_list_of_answers_to_a_changed_question_is_not_used() -> None:
    lab = Lab(lambda lab: chain(lab, a=lab.ask("a", *lab.flags.get("asks", ("q1", "q2")))))
    await lab.start()
    lab.flags["asks"] = ("other", "q2")
    with pytest.raises(QuestionChangedError):
        await lab.run(resume=MultipleAnswers((1, 2)))
    assert await lab.pending() == ["other"]
    assert (await lab.run(resume=MultipleAnswers((3, 4)))).values["a"] == [3, 4]


async def test_g017_a_question_that_is_not_asked_again() -> None:
    def node(state: State) -> object:
        if not lab.flags:
            node_interrupt("A?")
        return {"b": "went on"}

    lab = Lab(lambda lab: chain(lab, a=node))
    [first] = (await lab.start()).interrupts
    lab.flags["changed"] = True
    with pytest.raises(QuestionChangedError, match="not asked again"):
        await lab.run(resume="yes")
    assert ids(await lab.state()) == [first.id]
    assert "b" not in (await lab.state()).values


async def test_g017_a_change_between_two_answers() -> None:
    def node(state: State) -> object:
        node_interrupt("A?" if not lab.flags else "other?")
        return {"b": node_interrupt("B?")}

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    [second] = (await lab.run(resume="yes")).interrupts
    lab.flags["changed"] = True
    with pytest.raises(QuestionChangedError) as caught:
        await lab.run(resume="B")
    assert (caught.value.target, await lab.pending()) == (second.id, ["other?"])
    assert values_of(await lab.run(resume="yes")) == ["B?"]
    assert (await lab.run(resume="B")).values["b"] == "B"


async def test_g017_a_change_that_is_swallowed_writes_nothing() -> None:
    def node(state: State) -> object:
        try:
            node_interrupt("A?" if not lab.flags else "other?")
        except BaseException:  # noqa: BLE001 - what a node must not do
            return {"b": "went on"}
        return {"b": "answered"}

    lab = Lab(lambda lab: chain(lab, a=node))
    with pytest.raises(Exception, match="caught the interrupt signal"):
        await lab.start()


def failing(lab: Lab) -> StateGraph:
    def node(state: State) -> object:
        lab.ran["a"] += 1
        answer = node_interrupt("q")
        if not lab.flags:
            raise ValueError("boom")
        return {"a": answer}

    return chain(lab, a=node)


async def test_g019_an_error_after_the_answer_keeps_it() -> None:
    lab = Lab(failing)
    await lab.start()
    with pytest.raises(ValueError, match="boom") as caught:
        await lab.run(resume="x")
    assert caught.value.__notes__ == ["in node 'a' of graph 'graph'"]
    state = await lab.state()
    assert (state.phase, state.next, state.interrupts) == ("failed", ("a",), ())
    assert state.tasks[0].error == "ValueError: boom"
    lab.flags["healed"] = True
    result = await lab.run()
    assert result.values["a"] == "x"
    assert lab.ran["a"] == 3


async def test_g020_the_first_answer_wins_loudly() -> None:
    lab = Lab(failing)
    [question] = (await lab.start()).interrupts
    with pytest.raises(ValueError, match="boom"):
        await lab.run(resume="x")
    before = await lab.state()
    with pytest.raises(AlreadyAnsweredError):
        await lab.run(resume_map={question.id: "y"})
    with pytest.raises(NothingPendingError):
        await lab.run(resume="y")
    assert await lab.state() == before


async def test_g019_changed_questions_after_an_error() -> None:
    def node(state: State) -> object:
        answer = node_interrupt("q" if not lab.flags else "other")
        raise ValueError(f"boom {answer}")

    lab = Lab(lambda lab: chain(lab, a=node))
    await lab.start()
    with pytest.raises(ValueError, match="boom x"):
        await lab.run(resume="x")
    lab.flags["changed"] = True
    assert values_of(await lab.run()) == ["other"]
    with pytest.raises(ValueError, match="boom y"):
        await lab.run(resume="y")


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"resume": 1, "resume_map": {"x": 1}}, AgentConfigError),
        ({"resume_map": [1]}, AgentConfigError),
        ({"resume_map": {}}, ResumeDataError),
    ],
)
async def test_requests_without_one_meaning(
    request_: dict[str, Any], error: type[Exception]
) -> None:
    lab = Lab(one_question)
    await lab.start()
    with pytest.raises(error):
        await lab.run(**request_)
