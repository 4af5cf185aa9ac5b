"""Nodes that people let run begin at most once (I5), alone, in an agent and in a tool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.agent import ActionEvent, AgentEvent, InterruptEvent, MessageEvent, ToolEvent
from agents.chat.agent import ChatModelAgent
from agents.core.asking.answers import ApprovalResult, Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.calls import Exit
from agents.core.errors import CheckpointClosedError, ModelError
from agents.core.observers import ToolOutcome
from agents.graph import (
    GraphAgent,
    NodeFailedError,
    NodeRefusedError,
    RetryPolicy,
    StateGraph,
    graph_tool,
    node_interrupt,
    task,
)
from agents.memory import MemoryCheckpointStore
from agents.models import ScriptedModel, call, say
from agents.runner import Runner
from agents.workflows import SequentialAgent
from tests.unit.agents.graph.support import Lab, State, chain, ids, values_of
from tests.unit.agents.support import Died, collect

AGAIN, RAN, GIVE_UP = (
    InDoubtResult(choice=choice, by="U1") for choice in ("again", "ran", "give_up")
)


@dataclass
class Deploy:
    """A graph of one step that matters: what it does is played by `fate`, one entry a run."""

    fate: list[BaseException | None]
    options: dict[str, Any] = field(default_factory=dict)
    ran: int = 0

    def node(self, state: State) -> object:
        self.ran += 1
        error = self.fate.pop(0)
        if error is not None:
            raise error
        return {"foo": "deployed"}

    def graph(self, lab: Lab) -> StateGraph:
        graph = StateGraph(State).add_node("deploy", self.node, **self.options)
        return graph.add_edge("__start__", "deploy").add_edge("deploy", "__end__")

    def lab(self, **options: Any) -> Lab:
        return Lab(self.graph, {"interrupt_before": ["deploy"], **options})


@dataclass
class Desk:
    """An agent that is a graph, in a runner that each call makes anew."""

    deploy: Deploy
    durability: str = "interrupt"
    is_tool: bool = False
    store: Any = field(default_factory=MemoryCheckpointStore)
    script: list[Any] = field(default_factory=list)

    @property
    def runner(self) -> Runner:
        graph = self.deploy.lab(checkpoint_store=None).graph
        agent: Any = GraphAgent(
            graph, "ship", to_input=lambda _: {}, to_text=lambda state: str(state.get("foo"))
        )
        if self.is_tool:
            tool = graph_tool(graph, ship, to_text=lambda state: str(state.get("foo")))
            agent = ChatModelAgent(name="ship", model=ScriptedModel(self.script), tools=[tool])
        after = ChatModelAgent(name="next", model=ScriptedModel([say("and on")]))
        agents = SequentialAgent("all", [agent, after])
        return Runner(agents, checkpoint_store=self.store, durability=self.durability)  # type: ignore[arg-type]

    async def begin(self) -> list[AgentEvent]:
        return await collect(self.runner.query("Go.", checkpoint_id="1"))

    async def resume(self, answer: object) -> list[AgentEvent]:
        [waiting] = await self.runner.pending("1")
        return await collect(self.runner.resume("1", {waiting.id: answer}))

    async def recover(self) -> list[AgentEvent]:
        return await collect(self.runner.recover("1"))


def ship() -> dict[str, object]:
    """Ship it."""
    return {}


def said(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, MessageEvent)]


def asked(events: list[AgentEvent]) -> object:
    last = events[-1]
    assert isinstance(last, InterruptEvent)
    [context] = last.contexts
    return context.info


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_a_failure_behind_a_breakpoint_is_not_run_again(durability: str) -> None:
    session = Desk(Deploy([OSError("half done")]), durability)
    await session.begin()
    with pytest.raises(OSError, match="half done"):
        await session.resume(True)
    assert await session.runner.pending("1") == ()
    for _ in range(2):
        with pytest.raises(NodeFailedError, match="OSError: half done"):
            await session.recover()
    assert session.deploy.ran == 1


async def test_a_retry_policy_tries_it_again_at_once() -> None:
    async def sleep(seconds: float) -> None:
        assert seconds

    deploy = Deploy([OSError("away"), None], {"retry_policy": RetryPolicy(sleep=sleep)})
    session = Desk(deploy)
    await session.begin()
    assert said(await session.resume(True)) == ["deployed", "and on"]
    assert deploy.ran == 2


async def test_an_idempotent_node_may_be_answered_again() -> None:
    session = Desk(Deploy([OSError("away"), None], {"idempotent": True}))
    await session.begin()
    with pytest.raises(OSError, match="away"):
        await session.resume(True)
    assert said(await session.resume(True)) == ["deployed", "and on"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize(
    ("answer", "expected", "ran"),
    [
        (AGAIN, ["deployed", "and on"], 2),
        (RAN, ["None", "and on"], 1),
    ],
)
async def test_d157_a_death_in_it_is_a_question(
    durability: str, answer: object, expected: list[str], ran: int
) -> None:
    session = Desk(Deploy([Died(), None]), durability)
    await session.begin()
    with pytest.raises(Died):
        await session.resume(True)
    info = asked(await session.recover())
    assert isinstance(info, InDoubtInfo)
    assert str(info).startswith("Step “deploy” of “graph”: it was started")
    assert session.deploy.ran == 1
    assert said(await session.resume(answer)) == expected
    assert session.deploy.ran == ran


async def test_two_deaths_are_two_questions() -> None:
    session = Desk(Deploy([Died(), Died(), None]))
    await session.begin()
    with pytest.raises(Died):
        await session.resume(True)
    await session.recover()
    with pytest.raises(Died):
        await session.resume(AGAIN)
    assert isinstance(asked(await session.recover()), InDoubtInfo)
    assert said(await session.resume(AGAIN)) == ["deployed", "and on"]


@pytest.mark.parametrize("answer", [GIVE_UP, Expired(), Cancelled(by="U1")])
async def test_a_doubt_that_nobody_settles_ends_everything(answer: object) -> None:
    session = Desk(Deploy([Died()]))
    await session.begin()
    with pytest.raises(Died):
        await session.resume(True)
    await session.recover()
    events = await session.resume(answer)
    assert said(events) == [
        "Stopped at “deploy”: it was started, and nobody knows whether it took effect."
    ]
    with pytest.raises(CheckpointClosedError):
        await session.recover()
    assert session.deploy.ran == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (False, ", as you asked."),
        (ApprovalResult(approved=False), ", as you asked."),
        (ApprovalResult(approved=False, reason="late "), ", as you asked. Reason: late"),
        (Expired(), ": nobody answered in time. This is not a rejection."),
        (Expired(waited="a day"), ": nobody answered in time (a day). This is not a rejection."),
        (
            Cancelled(by="U1", reason="wrong one"),
            ": the request was cancelled. This is not a rejection. Reason: wrong one",
        ),
    ],
)
async def test_a_stop_at_a_breakpoint_ends_the_run_without_an_error(
    answer: object, words: str
) -> None:
    session = Desk(Deploy([]))
    await session.begin()
    events = await session.resume(answer)
    assert said(events) == [f"Stopped before “deploy”{words}"]
    assert [event.action for event in events if isinstance(event, ActionEvent)] == [Exit()]
    with pytest.raises(CheckpointClosedError):
        await session.recover()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (False, ToolOutcome.REJECTED),
        (Expired(), ToolOutcome.EXPIRED),
        (Cancelled(by="U1"), ToolOutcome.CANCELLED),
    ],
)
async def test_i9_a_model_is_told_what_it_was(answer: object, outcome: ToolOutcome) -> None:
    session = Desk(Deploy([]), is_tool=True, script=[call("ship", id="c1")])
    await session.begin()
    session.script = [say("I see.")]
    events = await session.resume(answer)
    [done] = [event for event in events if isinstance(event, ToolEvent)]
    assert done.outcome is outcome
    assert done.result.startswith("Stopped before “deploy”")
    assert ("Do not try" in done.result) is (outcome is ToolOutcome.REJECTED)
    assert said(events) == ["I see.", "and on"]


async def test_a_graph_tool_that_fails_is_told_as_failed() -> None:
    session = Desk(Deploy([OSError("half")]), is_tool=True, script=[call("ship", id="c1")])
    await session.begin()
    session.script = [say("I see.")]
    [done] = [e for e in await session.resume(True) if isinstance(e, ToolEvent)]
    assert (done.outcome, done.result) == (ToolOutcome.FAILED, "The tool failed: OSError: half")


async def test_alone_a_failed_node_runs_again_only_when_somebody_says_so() -> None:
    deploy = Deploy([OSError("away"), None])
    lab = deploy.lab()
    await lab.start()
    with pytest.raises(OSError, match="away"):
        await lab.run(resume=True)
    assert (await lab.graph.recover("t")).next == ("deploy",)
    assert deploy.ran == 1
    assert (await lab.run()).values["foo"] == "deployed"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_alone_a_death_is_a_question_too(durability: str) -> None:
    deploy = Deploy([Died(), None])
    lab = deploy.lab(durability=durability)
    await lab.start()
    with pytest.raises(Died):
        await lab.run(resume=True)
    result = await lab.graph.recover("t")
    assert isinstance(values_of(result)[0], InDoubtInfo)
    assert ids(await lab.run()) == ids(result)
    with pytest.raises(NodeRefusedError, match="nobody knows") as caught:
        await lab.run(resume=GIVE_UP)
    assert caught.value.outcome is ToolOutcome.FAILED
    assert (await lab.state()).phase == "cancelled"


async def test_a_doubt_that_is_entered_again_asks_again() -> None:
    session = Desk(Deploy([Died()]))
    await session.begin()
    with pytest.raises(Died):
        await session.resume(True)
    first = await session.recover()
    again = await collect(session.runner.resume("1"))
    assert asked(again) == asked(first)
    assert session.deploy.ran == 1


async def test_what_finished_behind_a_breakpoint_is_noted_whatever_the_durability() -> None:
    def second(state: State) -> object:
        lab.ran["b"] += 1
        if lab.ran["b"] == 1:
            raise Died
        return {}

    lab = Lab(
        lambda lab: chain(lab, a=lab.write("a"), b=second),
        {"interrupt_before": ["a"], "durability": "interrupt"},
    )
    await lab.start()
    with pytest.raises(Died):
        await lab.run(resume=True)
    assert (await lab.graph.recover("t")).values["log"] == ["a"]
    assert lab.ran == {"a": 1, "b": 2}


async def test_nodes_of_a_sub_graph_behind_a_breakpoint_are_guarded_one_by_one() -> None:
    def second(state: State) -> object:
        lab.ran["i2"] += 1
        raise Died

    def build(lab: Lab) -> StateGraph:
        inner = chain(lab, i1=lab.write("i1"), i2=second).compile()
        return chain(lab, p=inner)  # type: ignore[arg-type]

    lab = Lab(build, {"interrupt_before": ["p"]})
    await lab.start()
    with pytest.raises(Died):
        await lab.run(resume=True)
    [doubt] = (await lab.graph.recover("t")).interrupts
    assert doubt.address == "runnable:graph;node:p;node:i2"
    assert (await lab.run(resume_map={doubt.id: RAN})).values["log"] == ["i1"]
    assert lab.ran == {"i1": 1, "i2": 1}


@pytest.mark.parametrize("durability", ["interrupt", "step"])
async def test_what_was_done_once_is_not_done_again_after_a_doubt(durability: str) -> None:
    async def work() -> str:
        lab.ran["work"] += 1
        return "sent"

    async def node(state: State) -> object:
        returned = await task("send", work)
        lab.ran["a"] += 1
        if lab.ran["a"] == 1:
            raise Died
        return {"a": returned}

    lab = Lab(lambda lab: chain(lab, a=node), {"interrupt_before": ["a"], "durability": durability})
    await lab.start()
    with pytest.raises(Died):
        await lab.run(resume=True)
    await lab.graph.recover("t")
    assert (await lab.run(resume=AGAIN)).values["a"] == "sent"
    assert lab.ran["work"] == (1 if durability == "step" else 2)


async def answered(errors: list[BaseException]) -> tuple[Desk, list[int]]:
    """An agent whose node asks by itself, and then fails."""
    ran: list[int] = []

    def node(state: State) -> object:
        name = node_interrupt("Who?")
        ran.append(1)
        if errors:
            raise errors.pop(0)
        return {"foo": name}

    deploy = Deploy([])
    deploy.node = node  # type: ignore[method-assign]
    deploy.lab = lambda **options: Lab(deploy.graph, options)  # type: ignore[method-assign]
    session = Desk(deploy)
    await session.begin()
    return session, ran


async def test_a_node_that_fails_after_an_answer_is_not_run_again() -> None:
    session, ran = await answered([OSError("half done")])
    with pytest.raises(OSError, match="half done"):
        await session.resume("Rosa")
    with pytest.raises(NodeFailedError):
        await session.recover()
    assert len(ran) == 1


async def test_unless_it_was_a_model_that_was_away() -> None:
    session, ran = await answered([ModelError("busy")])
    with pytest.raises(ModelError):
        await session.resume("Rosa")
    assert said(await session.recover()) == ["Rosa", "and on"]
    assert len(ran) == 2
