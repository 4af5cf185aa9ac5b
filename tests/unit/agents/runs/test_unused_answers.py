"""An answer that nobody used is an error, and what people did not agree to does not run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict, TypeVar

import pytest

from agents import (
    AgentConfigError,
    CancelToken,
    ChatModelAgent,
    MemoryCheckpointStore,
    MemoryMessageLog,
    ResumeDataError,
    RunCancelledError,
    Runner,
    ScriptedModel,
    address_segment,
    approval_gate,
    composite_interrupt,
    get_interrupt_state,
    get_resume_context,
    interrupt,
    make_message,
    tool,
)
from agents.agent import Agent, AgentEvent, AgentInput, function_agent
from agents.conversation import Conversation
from agents.core.checkpoint import CheckpointStatus
from agents.core.codec import Json
from agents.core.component.state import interrupt_info
from agents.core.errors import AgentChangedError, ResumeError, UnusedAnswerError
from agents.core.interrupt import InterruptSignal
from agents.core.kinds import fits
from agents.core.tools import Tool
from agents.graph import START, GraphAgent, StateGraph, graph_tool
from agents.models import call, say
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from tests.unit.agents.support import Asker, Plain, World, brief, collect, contexts, follow, yes

# --- a gate that is gone, where nothing is declared: in nodes and in agents of one's own ---


class State(TypedDict, total=False):
    input: str
    output: str


def wanted(made: Tool) -> dict[str, Json]:
    """Arguments that it takes."""
    return {"request": "x"} if "request" in str(made.definition.schema) else {}


def in_node(made: Tool) -> Agent:
    """A graph that runs a tool in a node, by hand."""

    async def node(state: State) -> State:
        with address_segment("tool", made.definition.name, "c1"):
            return {"output": str(await made.call(wanted(made)))}

    plan = StateGraph(State).add_node("tools", node).add_edge(START, "tools")
    return GraphAgent(plan.compile(), "A")


def in_agent(made: Tool) -> Agent:
    """An agent of one's own that runs a tool."""

    async def run(_: AgentInput) -> AsyncIterator[AgentEvent]:
        with address_segment("tool", made.definition.name, "c1"):
            yield make_message(str(await made.call(wanted(made))))

    return function_agent("A", run)


done: list[str] = []


@tool
def pay() -> str:
    """Pay."""
    done.append("paid")
    return "paid"


async def said(_: AgentInput) -> AsyncIterator[AgentEvent]:
    done.append("said")
    yield make_message("said")


def of_graph() -> Tool:
    def pay(state: State) -> State:
        done.append("paid")
        return {"output": "paid"}

    def start() -> State:
        """Pay."""
        return {}

    plan = StateGraph(State).add_node("pay", pay).add_edge(START, "pay")
    return graph_tool(plan.compile(), start, name="pay")


TOOLS: dict[str, Callable[[], Tool]] = {
    "function": lambda: pay,
    "agent": lambda: AgentTool(function_agent("pay", said)),
    "graph": of_graph,
}


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("place", [in_node, in_agent])
@pytest.mark.parametrize("is_yes", [True, False])
async def test_d12_a_call_whose_gate_is_gone_does_not_run(
    kind: str, place: Callable[[Tool], Agent], is_yes: bool
) -> None:
    done.clear()
    store = MemoryCheckpointStore()
    gated, bare = approval_gate(TOOLS[kind]()), TOOLS[kind]()
    old, new = (Runner(place(tool), checkpoint_store=store) for tool in (gated, bare))
    (asked,) = contexts(await collect(old.query("hi", checkpoint_id="1"))).values()
    answer = yes(asked) if is_yes else asked.info.reject("no")  # type: ignore[attr-defined]

    for _ in range(2):
        with pytest.raises(AgentChangedError, match="start the version that asked"):
            await collect(new.resume("1", {asked.id: answer}))

    assert done == []
    (waiting,) = await old.pending("1")
    assert waiting.id == asked.id
    await collect(old.resume("1", {asked.id: answer}))
    assert len(done) == is_yes


async def test_a_tool_of_ones_own_without_its_gate_runs_and_the_answer_is_told_to_be_unused() -> (
    None
):
    """Nobody can look into it before; whoever said no learns that it did not count."""
    plain, store = Plain("pay"), MemoryCheckpointStore()
    old = Runner(in_agent(approval_gate(plain)), checkpoint_store=store)
    (asked,) = contexts(await collect(old.query("hi", checkpoint_id="1"))).values()
    new = Runner(in_agent(plain), checkpoint_store=store)

    with pytest.raises(UnusedAnswerError, match="agent:A;tool:pay:c1") as raised:
        await collect(new.resume("1", {asked.id: asked.info.reject("no")}))  # type: ignore[attr-defined]

    assert raised.value.target == asked.id
    stored = await store.load("1")
    assert stored is not None
    assert stored.status is CheckpointStatus.CLOSED  # what ran is not run again


# --- answers that nobody looks at ---


async def test_an_answer_that_a_new_version_does_not_look_at_is_an_error() -> None:
    store = MemoryCheckpointStore()

    async def asks(given: AgentInput) -> AsyncIterator[AgentEvent]:
        _, has_answer, answer = get_resume_context(str)
        if not has_answer:
            interrupt("may we go on?")
        yield make_message(f"they said {answer}")

    async def asks_no_more(_: AgentInput) -> AsyncIterator[AgentEvent]:
        yield make_message("going on")

    async def asks_something_else(_: AgentInput) -> AsyncIterator[AgentEvent]:
        yield make_message("well")
        with address_segment("process", "other"):
            interrupt("something else?")

    async def ask(checkpoint_id: str) -> str:
        old = Runner(function_agent("A", asks), checkpoint_store=store)
        events = await collect(old.query("hi", checkpoint_id=checkpoint_id))
        (asked,) = contexts(events).values()
        return asked.id

    for checkpoint_id, now in (("1", asks_no_more), ("2", asks_something_else)):
        asked = await ask(checkpoint_id)
        runner = Runner(function_agent("A", now), checkpoint_store=store)
        with pytest.raises(UnusedAnswerError, match="nobody used the answer for agent:A"):
            await collect(runner.resume(checkpoint_id, {asked: "no"}))

    good = Runner(function_agent("A", asks), checkpoint_store=store)
    (other,) = await good.pending("2")
    assert other.info == "something else?"
    asked = await ask("3")
    assert brief(await collect(good.resume("3", {asked: "yes"}))) == ["says they said yes"]


@pytest.mark.parametrize(
    "look", [lambda: get_interrupt_state(str), lambda: get_resume_context(object), interrupt_info]
)
async def test_whoever_looks_at_what_it_goes_on_from_has_used_the_answer(
    look: Callable[[], object],
) -> None:
    asked: list[bool] = []

    def body(_: object) -> str:
        look()
        if not asked:
            asked.append(True)
            interrupt("go on?")
        return "went on"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    (context,) = contexts(await world.run()).values()

    assert brief(await world.resume({context.id: "yes"}))[-1] == "says done"


async def test_a_part_of_a_tool_that_is_not_entered_any_more_is_told() -> None:
    """What it did without the answer is kept; the model hears of it, and the caller of the rest."""
    parts = ["door", "stove"]

    def check(name: str) -> str:
        with address_segment("process", name):
            _, has_answer, answer = get_resume_context(str)
            if not has_answer:
                interrupt(f"{name}?")
            return f"{name}: {answer}"

    def check_all(_: object) -> str:
        answers, signals = [], []
        for name in parts:
            try:
                answers.append(check(name))
            except InterruptSignal as signal:
                signals.append(signal)
        if signals:
            composite_interrupt("open", None, *signals)
        return ", ".join(answers)

    world = World([call("t", id="c1"), say("done")], [Plain("t", check_all)])
    waiting = contexts(await world.run()).values()
    parts.remove("door")

    received: list[AgentEvent] = []
    events = world.runner().resume("1", {context.id: "fine" for context in waiting})
    with pytest.raises(UnusedAnswerError, match="process:door"):
        await follow(events, received)

    assert brief(received) == ["tool t#c1 ran: stove: fine", "says done"]
    assert await world.pending() == ()


async def test_a_stop_before_an_answer_is_looked_at_is_only_a_stop() -> None:
    def body(_: object) -> str:
        _, has_answer, answer = get_resume_context(str)
        if not has_answer:
            interrupt("?")
        return str(answer)

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    (context,) = contexts(await world.run()).values()
    token = CancelToken()
    token.cancel("now")

    with pytest.raises(RunCancelledError):
        await collect(world.runner().resume("1", {context.id: "yes"}, cancel=token))

    assert brief(await world.resume({})) == ["tool t#c1 ran: yes", "says done"]


# --- answers for what asks nothing ---

AROUND: dict[str, Callable[[Agent], Agent]] = {
    "Sequential workflow interrupted": lambda agent: SequentialAgent("S", [agent]),
    "Parallel workflow interrupted": lambda agent: ParallelAgent("S", [agent]),
    "Loop workflow interrupted": lambda agent: LoopAgent("S", [agent]),
    "agent tool interrupt": lambda agent: ChatModelAgent(
        name="S",
        model=ScriptedModel([call("a", {"request": "x"}), say("done")]),
        tools=[AgentTool(agent)],
    ),
}


@pytest.mark.parametrize("info", AROUND)
async def test_an_answer_for_what_asks_nothing_is_refused_before_anything_runs(info: str) -> None:
    store = MemoryCheckpointStore()
    runner = Runner(AROUND[info](Asker("a")), checkpoint_store=store)
    (asked,) = contexts(await collect(runner.query("hi", checkpoint_id="1"))).values()
    before = await store.load("1")
    parent = asked.parent

    assert parent is not None
    assert str(parent.info) == info
    with pytest.raises(ResumeDataError, match="asks nothing itself, and got a bool"):
        await collect(runner.resume("1", {parent.id: True}))
    assert await store.load("1") == before


async def test_a_late_reject_of_a_call_that_people_agreed_to_is_refused() -> None:
    """It has started: what waits inside can be answered, and nothing else."""
    plain = Plain("t", lambda _: interrupt("inner?") if not get_interrupt_state(str)[0] else "ok")
    world = World([call("t", id="c1"), say("done")], [approval_gate(plain)])
    (gate,) = contexts(await world.run()).values()
    (inner,) = contexts(await world.resume({gate.id: yes(gate)})).values()
    assert inner.parent is not None
    before = await world.store.load("1")  # type: ignore[attr-defined]

    late = gate.info.reject("wait!")  # type: ignore[attr-defined]
    with pytest.raises(ResumeDataError, match=f"agreed to already.*answer {inner.id}"):
        await world.resume({inner.parent.id: late})

    assert await world.store.load("1") == before  # type: ignore[attr-defined]
    assert brief(await world.resume({inner.id: "x"})) == ["tool t#c1 ran: ok", "says done"]


async def test_a_conversation_forgets_an_answer_that_nobody_used() -> None:
    async def asks(_: AgentInput) -> AsyncIterator[AgentEvent]:
        if not session_asked:
            session_asked.append(True)
            interrupt("?")
        yield make_message("went on")

    session_asked: list[bool] = []
    runner = Runner(
        function_agent("A", asks),
        checkpoint_store=MemoryCheckpointStore(),
        message_log=MemoryMessageLog(),
    )
    talk = Conversation(runner, "t")
    await talk.push("hi")
    (asked,) = contexts([event async for event in talk.events(follow=False)]).values()
    await talk.resume({asked.id: "no"})

    with pytest.raises(UnusedAnswerError):
        [event async for event in talk.events(follow=False)]

    await talk.push("again")
    events = [event async for event in talk.events(follow=False)]
    assert brief(events) == ["says went on"]


# --- kinds of answers ---

T = TypeVar("T")
Name = NewType("Name", str)


class Form(TypedDict):
    name: str


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (float, 5, "5"),
        (float | None, 5, True),
        (str | None, "x", 5),
        (Optional[str], "x", 5),  # noqa: UP045 - as people write it
        (Annotated[str, "a note"], "x", 5),
        (list[str], ["x"], "x"),
        (list[str], [], ["x", 5]),
        (list[list[float]], [[1, 2.5]], [[True]]),
        (dict[str, int], {"a": 1}, {"a": "1"}),
        (dict[str, Json], {"a": [{"b": None}]}, [1]),
        (tuple[int, str], (1, "x"), (1, 2)),
        (tuple[int, ...], (1, 2, 3), (1, "x")),
        (list[int] | None, [1], ["x"]),
        (dict[str, int] | bool, True, "x"),
        (Literal["yes", 1], "yes", True),
        (Name, "x", 5),
        (Form, {"name": "x"}, "x"),
        (Any, "x", None),
        (object, False, None),
        (None, None, "x"),
    ],
    ids=str,
)
def test_kinds_are_what_people_write_in_annotations(
    kind: object, good: object, bad: object
) -> None:
    assert fits(kind, good)
    assert not fits(kind, bad) or bad is None


@pytest.mark.parametrize("kind", ["str", 5, Tool, T, T | None])
async def test_a_kind_that_is_none_is_noticed_before_anybody_is_asked(kind: object) -> None:
    def body(_: object) -> str:
        _, has_answer, _ = get_resume_context(kind)
        if not has_answer:
            interrupt("?")
        return "ok"

    world = World([call("t", id="c1")], [Plain("t", body)])

    with pytest.raises(AgentConfigError, match="give a class, such as `str`"):
        await world.run()
    assert await world.pending() == ()


def asking_for(kind: object, got: list[object]) -> Plain:
    def body(_: object) -> str:
        _, has_answer, answer = get_resume_context(kind)
        if not has_answer:
            interrupt("how much?")
        got.append(answer)
        return "ok"

    return Plain("t", body)


async def test_a_number_of_json_is_a_float_when_that_is_asked_for() -> None:
    got: list[object] = []
    world = World([call("t", id="c1"), say("done")], [asking_for(float, got)])
    (context,) = contexts(await world.run()).values()

    await world.resume({context.id: 5})

    assert got == [5.0]
    assert type(got[0]) is float


async def test_an_answer_of_another_kind_is_told_and_the_question_waits_on_as_it_was() -> None:
    got: list[object] = []
    kind = float | list[float] | None
    world = World([call("t", id="c1"), say("done")], [asking_for(kind, got)])
    (context,) = contexts(await world.run()).values()

    for answer in ("five", {"n": 5}, ["five"]):
        with pytest.raises(ResumeDataError, match=r"float \| list\[float\] \| None") as raised:
            await world.resume({context.id: answer})
        assert raised.value.target == context.id
        assert await world.pending() == (context,)
    assert brief(await world.resume({context.id: 5.5}))[-1] == "says done"

    assert got == [5.5]


async def test_an_answer_may_be_asked_for_as_several_kinds() -> None:
    got: list[object] = []

    def body(_: object) -> str:
        tried = [get_resume_context(kind) for kind in (int, str, bool)]
        got.extend(answer for _, has_answer, answer in tried if has_answer)
        if not got:
            interrupt("?")
        return "ok"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    (context,) = contexts(await world.run()).values()

    assert brief(await world.resume({context.id: "x"}))[-1] == "says done"
    assert got == ["x"]


async def test_an_answer_of_another_kind_that_was_passed_over_is_told_at_the_end() -> None:
    def body(_: object) -> str:
        was_interrupted, _, _ = get_interrupt_state(str)
        if not was_interrupted:
            interrupt("how many?")
        _, has_answer, number = get_resume_context(int)
        return f"took {number if has_answer else 10}"

    world = World([call("t", id="c1"), say("done")], [Plain("t", body)])
    (context,) = contexts(await world.run()).values()

    with pytest.raises(ResumeDataError, match="is a str, expected int"):
        await world.resume({context.id: "many"})

    assert await world.pending() == ()


async def test_a_graph_tells_what_nobody_used() -> None:
    asked: list[bool] = []

    def node(_: State) -> State:
        with address_segment("process", "x"):
            if not asked:
                asked.append(True)
                interrupt("?")
        return {"output": "went on"}

    plan = StateGraph(State).add_node("n", node).add_edge(START, "n")
    graph = plan.compile(checkpoint_store=MemoryCheckpointStore())
    (question,) = (await graph.invoke({}, thread_id="t")).interrupts

    with pytest.raises(UnusedAnswerError, match="node:n;process:x") as raised:
        await graph.invoke(thread_id="t", resume_map={question.id: "no"})

    assert isinstance(raised.value, ResumeError)
    assert (await graph.get_state("t")).values["output"] == "went on"


@pytest.mark.parametrize("kind", [int, int | None, float])
async def test_a_yes_is_no_number(kind: object) -> None:
    async def ask() -> str:
        _, has_answer, number = get_resume_context(kind)
        return str(number) if has_answer else interrupt("how many?")

    world = World([call("t", id="c1"), say("done")], [Plain("t", lambda _: ask())])
    (asked,) = contexts(await world.run()).values()

    with pytest.raises(ResumeDataError, match="is a bool"):
        await world.resume({asked.id: True})
    assert [context.id for context in await world.pending()] == [asked.id]
