"""Random agent trees: how they are drawn, and how they are built, new for each process."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.agent import Agent, AgentEvent, AgentInput, run_agent
from agents.chat.agent import ChatModelAgent
from agents.core.cancel import CancelToken
from agents.core.codec import Json
from agents.core.component.state import get_interrupt_state
from agents.core.interrupt import InterruptSignal, composite_interrupt
from agents.core.scope import current_address
from agents.core.tools import CallText, Tool, ToolSpec
from agents.gates.approval import approval_gate, review_edit_gate
from agents.gates.followup import follow_up_tool
from agents.models import call, say
from agents.prebuilt.supervisor import supervisor
from agents.workflows import LoopAgent, ParallelAgent, SequentialAgent
from agents.workflows.agenttool import AgentTool
from agents.workflows.transfer import transfer_tool_to
from tests.unit.agents.support import Died

ToolKind = Literal["plain", "approval", "review", "ask", "agent", "gated agent"]
Verdict = Literal["approve", "reject", "edit"]
NodeKind = Literal["chat", "custom", "sequential", "parallel", "loop", "supervised"]


@dataclass(frozen=True)
class Planned:
    """A tool, and what people will say when they are asked about a call of it."""

    kind: ToolKind
    verdict: Verdict
    name: str = ""
    number: int = 0
    agent: Node | None = None

    @property
    def is_gated(self) -> bool:
        return self.kind in {"approval", "review"}

    @property
    def runs_with(self) -> int | None:
        """The argument with which it may run; None when it must not."""
        if not self.is_gated or self.verdict == "approve":
            return self.number
        return self.number + 100 if (self.kind, self.verdict) == ("review", "edit") else None


@dataclass(frozen=True)
class Node:
    """An agent: a chat agent with its turns, or one that runs others."""

    kind: NodeKind
    turns: tuple[tuple[Planned, ...], ...] = ()
    is_sequential: bool = False
    children: tuple[Node, ...] = ()
    name: str = ""

    def tools(self) -> list[Planned]:
        """All tools in it, at any depth."""
        listed = [planned for turn in self.turns for planned in turn]
        inner = [planned.agent for planned in listed if planned.agent]
        return listed + [tool for node in (*self.children, *inner) for tool in node.tools()]


def _planned(agents: st.SearchStrategy[Node] | None) -> st.SearchStrategy[Planned]:
    verdicts = st.sampled_from(["approve", "approve", "edit", "reject"])
    leaf = st.builds(
        Planned, kind=st.sampled_from(["plain", "approval", "review", "ask"]), verdict=verdicts
    )
    if agents is None:
        return leaf
    nested = st.builds(
        Planned,
        kind=st.sampled_from(["agent", "gated agent"]),
        verdict=st.just("approve"),
        agent=agents,
    )
    return st.one_of(leaf, leaf, nested)


def _chat(agents: st.SearchStrategy[Node] | None) -> st.SearchStrategy[Node]:
    turn = st.lists(_planned(agents), min_size=1, max_size=3).map(tuple)
    return st.builds(
        Node,
        kind=st.just("chat"),
        turns=st.lists(turn, min_size=1, max_size=2).map(tuple),
        is_sequential=st.booleans(),
    )


def _group(agents: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.builds(
        Node,
        kind=st.sampled_from(["custom", "sequential", "parallel", "loop", "supervised"]),
        children=st.lists(agents, min_size=1, max_size=2).map(tuple),
    )


def trees() -> st.SearchStrategy[Node]:
    """Trees of agents, at most four deep, whose parts all have names of their own."""
    low = _chat(None)
    middle = st.one_of(_chat(low), _group(low))
    return st.one_of(_chat(middle), _group(middle), middle).map(lambda node: _named(node, [0]))


def _named(node: Node, last: list[int]) -> Node:
    last[0] += 1
    name = f"A{last[0]}"
    turns = tuple(tuple(_named_tool(planned, last) for planned in turn) for turn in node.turns)
    children = tuple(_named(child, last) for child in node.children)
    return replace(node, name=name, turns=turns, children=children)


def _named_tool(planned: Planned, last: list[int]) -> Planned:
    if planned.agent is not None:
        agent = _named(planned.agent, last)
        return replace(planned, agent=agent, name=agent.name)
    last[0] += 1
    return replace(planned, name=f"t{last[0]}", number=last[0])


@dataclass
class Effects:
    """What tools did to the world: it outlives every process.

    Attributes:
        done: How often each call took effect, by address.
        allowed: With which argument a gated call may run, by address.
        wrong: What must not have happened.
        dies_at: At which step (a tool's effect, or a write) the process dies; 0 is never.
        stops_at: At which effect somebody stops the run while the tool works; 0 is never.
        steps: How many steps there were.
        cancel: Stops the run of this process.
        is_dead: Whether this process has died.
    """

    done: Counter[str] = field(default_factory=Counter)
    allowed: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    dies_at: int = 0
    stops_at: int = 0
    steps: int = 0
    cancel: CancelToken = field(default_factory=CancelToken)
    is_dead: bool = False

    def step(self) -> None:
        """Die here, if it is time; a dead process does nothing."""
        self.steps += 1
        if self.is_dead or self.steps == self.dies_at:
            self.is_dead = True
            raise Died

    def begin_process(self) -> None:
        """Another process takes over."""
        self.is_dead = False
        self.cancel = CancelToken()


@dataclass
class Acting:
    """A tool that has an effect on the world."""

    planned: Planned
    effects: Effects

    @property
    def definition(self) -> ToolSpec:
        schema: dict[str, Json] = {"type": "object", "properties": {"x": {"type": "integer"}}}
        return ToolSpec(name=self.planned.name, description="acts", schema=schema)

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        return json.loads(json.dumps(dict(arguments)))  # type: ignore[no-any-return]

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        return CallText(title=f"Do {self.planned.name}")

    async def call(self, arguments: dict[str, Json]) -> str:
        effects, at = self.effects, str(current_address())
        effects.step()  # before the effect
        if self.planned.is_gated and effects.allowed.get(at) != arguments["x"]:
            effects.wrong.append(f"{at} ran with {arguments}, nobody agreed to that")
        effects.done[at] += 1
        number = effects.done.total()
        await asyncio.sleep(0)  # others get a turn
        if number == effects.stops_at:
            effects.cancel.cancel()
            await asyncio.Event().wait()
        effects.step()  # after the effect
        return result_of(self.planned, arguments)


def result_of(planned: Planned, arguments: Mapping[str, object]) -> str:
    return f"{planned.name} did {arguments['x']}"


class Several:
    """An agent as a user may write it: runs its parts one by one, whatever waits in them."""

    def __init__(self, name: str, parts: Sequence[Agent]) -> None:
        self.name = name
        self.description = ""
        self._parts = parts

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        _, _, before = get_interrupt_state(list)
        done: list[str] = list(before or [])
        signals, at = [], str(current_address())
        for number, part in enumerate(self._parts):
            if part.name in done:
                continue
            try:
                async for event in run_agent(part, input):
                    # Which part ends first depends on people; what is told of them must not.
                    yield replace(event, branches=((at, number), *event.branches))
                done.append(part.name)
            except InterruptSignal as signal:
                signals.append(signal)
        if signals:
            composite_interrupt(f"{self.name} waits", done, *signals)

    resume = run


def build(node: Node, effects: Effects) -> Agent:
    """Make the agents of a new process."""
    children = [build(child, effects) for child in node.children]
    match node.kind:
        case "chat":
            return ChatModelAgent(
                name=node.name,
                model=FunctionModel(_Answers(node)),
                tools=[_tool(planned, effects) for turn in node.turns for planned in turn],
                sequential_tools=node.is_sequential,
            )
        case "custom":
            return Several(node.name, children)
        case "sequential":
            return SequentialAgent(node.name, children)
        case "parallel":
            return ParallelAgent(node.name, children)
        case "loop":
            return LoopAgent(node.name, children, max_iterations=2)
        case "supervised":
            boss = _boss(f"{node.name}b", children)
            return supervisor(supervisor=boss, sub_agents=children, name=node.name)


def _boss(name: str, children: Sequence[Agent]) -> Agent:
    """An agent that hands over to each of the others in turn, and says that it is done."""
    turns: list[ModelResponsePart] = [
        call("transfer_to_agent", {"agent_name": child.name}, id=f"s{number}")
        for number, child in enumerate(children)
    ]
    turns.append(say(f"{name} done"))

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        answered = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[turns[answered % len(turns)]])

    return ChatModelAgent(
        name=name, model=FunctionModel(answer), tools=[transfer_tool_to(children)]
    )


def _tool(planned: Planned, effects: Effects) -> Tool:
    match planned.kind:
        case "plain":
            return Acting(planned, effects)
        case "approval":
            return approval_gate(Acting(planned, effects))
        case "review":
            return review_edit_gate(Acting(planned, effects))
        case "ask":
            return follow_up_tool(planned.name)
        case "agent" | "gated agent":
            assert planned.agent is not None
            made = AgentTool(build(planned.agent, effects))
            return made if planned.kind == "agent" else approval_gate(made)


class _Answers:
    """A model that says the same whenever it hears the same; its last words tell what it heard."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        own = len(messages) - 1 - max(map(_asked_at, enumerate(messages)))
        turn = own // 2  # answers and results take turns
        if turn >= len(self._node.turns):
            return ModelResponse(parts=[TextPart(f"{self._node.name} heard {_heard(messages)}")])
        calls: list[ModelResponsePart] = [
            ToolCallPart(planned.name, _arguments(planned), tool_call_id=f"c{turn}-{number}")
            for number, planned in enumerate(self._node.turns[turn])
        ]
        return ModelResponse(parts=calls)


def _asked_at(item: tuple[int, ModelMessage]) -> int:
    at, message = item
    is_asked = isinstance(message, ModelRequest) and any(
        isinstance(part, UserPromptPart) for part in message.parts
    )
    return at if is_asked else -1


def _arguments(planned: Planned) -> dict[str, object]:
    match planned.kind:
        case "ask":
            return {"questions": [f"{planned.name}?"]}
        case "agent" | "gated agent":
            return {"request": f"work, {planned.name}"}
        case _:
            return {"x": planned.number}


def _heard(messages: Sequence[ModelMessage]) -> str:
    parts = [
        (part.part_kind, getattr(part, "tool_call_id", ""), str(getattr(part, "content", "")))
        for message in messages
        for part in message.parts
    ]
    return f"{zlib.crc32(repr(parts).encode()):08x}"
