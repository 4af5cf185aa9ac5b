"""Any tree of agents, answered bit by bit in any order, comes to what it comes to at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.agent import Agent, AgentEvent, InterruptEvent
from agents.chat.agent import ChatModelAgent
from agents.core.asking.answers import InDoubtResult
from agents.core.asking.infos import ApprovalInfo, InDoubtInfo
from agents.core.checkpoint import CheckpointStatus
from agents.core.pending import InterruptContext, Untargeted
from agents.core.tools import Tool
from agents.gates.approval import approval_gate
from agents.memory import MemoryCheckpointStore
from agents.models import call, say
from agents.prebuilt.supervisor import supervisor
from agents.runs.answers import ResumeParams
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from agents.workflows.transfer import transfer_tool_to
from tests.unit.agents.support import Died, DyingStore, Plain, brief, follow, yes
from tests.unit.agents.team import Team

Tree: TypeAlias = tuple[str, tuple["Tree", ...]]
Turns: TypeAlias = Sequence[Sequence[ModelResponsePart]]

LEAVES: st.SearchStrategy[Tree] = st.sampled_from([("ask", ()), ("say", ()), ("chat", ())])


def above(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    several = st.lists(trees, min_size=1, max_size=3).map(tuple)
    kinds = st.sampled_from(["seq", "par", "loop", "sup"])
    return st.tuples(kinds, several) | st.tuples(st.just("tool"), st.tuples(trees))


TREES = st.recursive(LEAVES, above, max_leaves=5)


@dataclass
class Grove:
    """Makes the agents of a tree, each with a name of its own, and counts their tools' calls."""

    tools: dict[str, Plain] = field(default_factory=dict)

    def grow(self, team: Team, tree: Tree, name: str) -> Agent:
        kind, below = tree
        inner = [self.grow(team, subtree, f"{name}{at}") for at, subtree in enumerate(below)]
        make: dict[str, Callable[[], Agent]] = {
            "ask": lambda: team.asker(name),
            "say": lambda: team.sayer(name),
            "chat": lambda: self._chat(name),
            "seq": lambda: SequentialAgent(name, inner),
            "par": lambda: ParallelAgent(name, inner),
            "loop": lambda: LoopAgent(name, inner, max_iterations=2),
            "tool": lambda: _calling(name, inner[0]),
            "sup": lambda: _supervised(name, inner),
        }
        return make[kind]()

    def _chat(self, name: str) -> Agent:
        pay = self.tools.setdefault(f"pay{name}", Plain(f"pay{name}"))
        log = self.tools.setdefault(f"log{name}", Plain(f"log{name}"))
        calls = [call(pay.name, id="p"), call(log.name, id="l")]
        return _scripted(name, [calls, [say(f"{name} done")]], [approval_gate(pay), log])


def _calling(name: str, inner: Agent) -> Agent:
    turns: Turns = [[call(inner.name, {"request": name}, id="t")], [say(f"{name} done")]]
    return _scripted(name, turns, [AgentTool(inner)])


def _supervised(name: str, inner: list[Agent]) -> Agent:
    turns: Turns = [
        [call("transfer_to_agent", {"agent_name": agent.name}, id=f"s{at}")]
        for at, agent in enumerate(inner)
    ]
    boss = _scripted(f"{name}b", [*turns, [say(f"{name} done")]], [transfer_tool_to(inner)])
    return supervisor(supervisor=boss, sub_agents=inner, name=name)


def _scripted(name: str, turns: Turns, tools: list[Tool]) -> Agent:
    """An agent whose model answers from what it said before; in each round the same."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        said = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[*turns[said % len(turns)]])

    return ChatModelAgent(name=name, model=FunctionModel(answer), tools=tools)


def answer_for(context: InterruptContext) -> object:
    if isinstance(context.info, InDoubtInfo):
        return InDoubtResult(choice="again")
    return yes(context) if isinstance(context.info, ApprovalInfo) else str(context.address)


@dataclass
class Outcome:
    """What came of a run, whatever the order of answers."""

    heard: str
    entered: Counter[str]
    calls: Mapping[str, int]


async def play(tree: Tree, data: st.DataObject | None, *, dies_at: int = 0) -> Outcome:
    """Run a tree to its end; with all answers at once, or with those that are drawn."""
    grove, store = Grove(), MemoryCheckpointStore()

    def build(team: Team) -> Agent:
        return SequentialAgent("root", [grove.grow(team, tree, "n"), team.listener("Fin")])

    team = Team(build, store=store, durability="step" if dies_at else "interrupt")
    if dies_at:
        team.store = DyingStore(store, at=dies_at, before=False)
    received: list[AgentEvent] = []
    for _ in range(200):
        try:
            is_over = await _step(team, store, data, received)
        except Died:
            team.store = store
            continue
        if is_over:
            calls = {name: len(tool.calls) for name, tool in grove.tools.items()}
            asked = Counter(entry for entry in team.entered if not entry.endswith("resume"))
            return Outcome(brief(received)[-1], asked, calls)
    pytest.fail("the run did not end")


async def _step(
    team: Team, store: MemoryCheckpointStore, data: st.DataObject | None, received: list[AgentEvent]
) -> bool:
    """Go on from whatever the checkpoint says; whether the run has ended."""
    stored, runner = await store.load("1"), team.runner()
    if stored is None:
        await follow(runner.query("hi", checkpoint_id="1"), received)
    elif stored.status is CheckpointStatus.CLOSED:
        return True
    elif stored.status is CheckpointStatus.RUNNING:
        await follow(runner.recover("1"), received)
    else:
        params = _drawn(await runner.pending("1"), data)
        await follow(runner.resume_with_params("1", params), received)
    return not isinstance(received[-1], InterruptEvent)


def _drawn(waiting: Sequence[InterruptContext], data: st.DataObject | None) -> ResumeParams:
    """Answers for all that waits, or for some of it."""
    if data is None:
        return ResumeParams(targets={context.id: answer_for(context) for context in waiting})
    some = st.lists(st.sampled_from(range(len(waiting))), min_size=1, unique=True)
    chosen = [waiting[at] for at in data.draw(some)]
    untargeted: Untargeted = data.draw(st.sampled_from(["preserve", "reenter"]))
    return ResumeParams(
        targets={context.id: answer_for(context) for context in chosen}, untargeted=untargeted
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES, data=st.data())
async def test_i6_answers_bit_by_bit_give_what_all_at_once_give(
    tree: Tree, data: st.DataObject
) -> None:
    at_once = await play(tree, None)
    bit_by_bit = await play(tree, data)

    assert bit_by_bit == at_once
    assert at_once.heard.startswith("says Fin heard hi")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=TREES, dies_at=st.integers(1, 30))
async def test_i4_a_process_may_die_in_any_tree(tree: Tree, dies_at: int) -> None:
    at_once = await play(tree, None)

    outcome = await play(tree, None, dies_at=dies_at)

    assert outcome.heard == at_once.heard
