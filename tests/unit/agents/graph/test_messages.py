"""Conversations in graphs: messages in the state, and the node that runs their calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents import (
    AgentConfigError,
    ApprovalInfo,
    MemoryCheckpointStore,
    ResumeDataError,
    approval_gate,
)
from agents.agent import ToolEvent
from agents.core.errors import AgentChangedError, DuplicateNameError
from agents.core.tools import Tool
from agents.graph import (
    END,
    START,
    CompiledGraph,
    MessagesState,
    NothingToCallError,
    StateGraph,
    ToolsNode,
    ToolsNodeInfo,
    add_messages,
    tools_condition,
)
from agents.models import ScriptedModel, Turn, call, say
from tests.unit.agents.support import Plain


@dataclass
class Desk:
    """A model node and a tool node over one conversation; each run compiles the graph anew."""

    turns: list[Turn]
    tools: Callable[[], list[Tool]]
    store: MemoryCheckpointStore = field(default_factory=MemoryCheckpointStore)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.turns)

    @property
    def graph(self) -> CompiledGraph:
        async def ask_model(state: MessagesState) -> object:
            return {"messages": await model_request(self.model, state["messages"])}

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask_model)
        graph.add_node("tools", ToolsNode(self.tools(), **self.options))
        graph.add_edge(START, "model").add_conditional_edges(
            "model", tools_condition, ["tools", END]
        )
        return graph.add_edge("tools", "model").compile(checkpoint_store=self.store)

    async def run(self, given: dict[str, object] | None = None, **more: Any) -> Any:
        return await self.graph.invoke(given, thread_id="t", **more)


def results(messages: list[ModelMessage]) -> list[str]:
    return [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


async def test_a_model_and_its_tools_over_one_conversation() -> None:
    look = Plain("look", lambda given: f"seen {given['x']}")
    chat = Desk([[call("look", {"x": 1}), call("look", {"x": 2})], say("Done.")], lambda: [look])
    done = await chat.run({"messages": "look twice"})
    messages = done.values["messages"]
    assert [type(message) for message in messages] == [
        ModelRequest,
        ModelResponse,
        ModelRequest,
        ModelResponse,
    ]
    assert results(messages) == ["seen 1", "seen 2"]
    assert messages[-1].parts == [TextPart("Done.")]


async def test_a_gated_call_waits_at_its_own_address_and_siblings_stay_finished() -> None:
    look, pay = Plain("look"), Plain("pay", lambda _: "paid")
    chat = Desk(
        [[call("look", {"x": 1}, id="c1"), call("pay", {"x": 5}, id="c2")], say("Done.")],
        lambda: [look, approval_gate(pay)],
    )
    first = await chat.run({"messages": ["pay"]})
    [pending] = first.interrupts
    assert pending.address == "runnable:graph;node:tools;tool:pay:c2"
    info = pending.context.info
    assert isinstance(info, ApprovalInfo)
    assert info.arguments == {"x": 5}
    assert (len(look.calls), pay.calls) == (1, [])
    done = await chat.run(resume_map={pending.id: info.approve(by="U1")})
    assert (len(look.calls), pay.calls) == (1, [{"x": 5}])
    assert results(done.values["messages"])[1] == "paid"


async def test_the_node_itself_takes_no_answer() -> None:
    chat = Desk([call("pay", {"x": 1})], lambda: [approval_gate(Plain("pay"))])
    [pending] = (await chat.run({"messages": "pay"})).interrupts
    around = pending.context.parent
    assert around is not None
    assert around.info == ToolsNodeInfo(tools=("pay",))
    with pytest.raises(ResumeDataError, match="pending calls by their own ids"):
        around.info.check_answer("yes")


async def test_a_gate_that_is_gone_lets_nothing_run() -> None:
    pay, is_gated = Plain("pay"), True
    turns: list[Turn] = [call("pay", {"x": 1}), say("Done.")]
    chat = Desk(turns, lambda: [approval_gate(pay) if is_gated else pay])
    [pending] = (await chat.run({"messages": "pay"})).interrupts
    is_gated = False
    with pytest.raises(AgentChangedError):
        await chat.run(resume_map={pending.id: pending.context.info.reject("no")})
    assert pay.calls == []
    is_gated = True
    await chat.run(resume_map={pending.id: pending.context.info.approve()})
    assert pay.calls == [{"x": 1}]


async def test_a_gate_that_is_gone_stops_no_other_call_and_its_own_call_waits_on() -> None:
    pay, send, is_gated = Plain("pay"), Plain("send"), True
    calls = [call("pay", {"x": 1}, id="c1"), call("send", {"x": 2}, id="c2")]
    chat = Desk(
        [calls, say("Done.")],
        lambda: [approval_gate(pay) if is_gated else pay, approval_gate(send)],
    )
    paying, sending = (await chat.run({"messages": "both"})).interrupts
    is_gated = False
    [waiting] = (await chat.run(resume_map={sending.id: sending.context.info.approve()})).interrupts
    assert (waiting.address, pay.calls, send.calls) == (paying.address, [], [{"x": 2}])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [ModelRequest(parts=[UserPromptPart("hello")])],
        [ModelResponse(parts=[TextPart("no calls")])],
    ],
)
async def test_without_calls_there_is_nothing_to_do(messages: list[ModelMessage]) -> None:
    with pytest.raises(NothingToCallError):
        await ToolsNode([Plain("look")])({"messages": messages})


async def test_calls_need_ids_of_their_own() -> None:
    parts = [ToolCallPart("look", {}, tool_call_id="c"), ToolCallPart("look", {}, tool_call_id="c")]
    with pytest.raises(NothingToCallError, match="add_messages"):
        await ToolsNode([Plain("look")])({"messages": [ModelResponse(parts=parts)]})


def test_messages_are_put_behind_and_repaired() -> None:
    parts = [ToolCallPart("a", "{}", tool_call_id="c"), ToolCallPart("b", "[", tool_call_id="c")]
    messages = add_messages([], ["hello", ModelResponse(parts=parts)])
    assert [type(message) for message in messages] == [ModelRequest, ModelResponse]
    calls = [part for part in messages[1].parts if isinstance(part, ToolCallPart)]
    assert [part.tool_call_id for part in calls] == ["c", "c-2"]
    assert calls[0].args == {}
    again = add_messages(messages, ModelResponse(parts=[parts[0]]))
    assert again[2].parts[0].tool_call_id == "c-3"  # type: ignore[union-attr]
    assert len(messages) == 2


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(TypeError, match="a message or a text was expected, not a int"):
        add_messages([], [5])  # type: ignore[list-item]


def test_tools_are_named_once() -> None:
    with pytest.raises(DuplicateNameError):
        ToolsNode([Plain("look"), Plain("look")])
    with pytest.raises(AgentConfigError, match="at least one"):
        ToolsNode([])


def test_the_condition_looks_at_the_newest_message() -> None:
    asked = ModelResponse(parts=[ToolCallPart("look", {}, tool_call_id="c")])
    assert tools_condition({"messages": [asked]}) == "tools"
    assert tools_condition({"messages": [asked, ModelRequest(parts=[])]}) == END
    assert tools_condition({"messages": []}) == END
    assert tools_condition({}) == END


class Talk(BaseModel):
    """A pydantic state with its conversation under another key."""

    said: list[Any] = []
    count: int = 0


async def test_another_key_and_a_pydantic_state() -> None:
    look = Plain("look", lambda _: "seen")
    answer = ModelResponse(parts=[ToolCallPart("look", {"x": 1}, tool_call_id="c")])
    graph = StateGraph(Talk)
    graph.add_node("tools", ToolsNode([look], messages_key="said", sequential=True))
    graph.add_edge(START, "tools").add_edge("tools", END)
    done = await graph.compile().invoke({"said": [answer]})
    assert results(dict(done.values)["said"]) == ["seen"]


async def test_tools_tell_their_events() -> None:
    chat = Desk([call("look", {"x": 1}), say("Done.")], lambda: [Plain("look", lambda _: "seen")])
    given = {"messages": "look"}
    events = [event async for event in chat.graph.stream(given, mode="events", thread_id="t")]
    assert [type(event) for event in events] == [ToolEvent]
    assert events[0].result == "seen"  # type: ignore[attr-defined]
