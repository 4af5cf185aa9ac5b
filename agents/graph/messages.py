"""Conversations in a graph: the messages reducer and the node of tool calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, TypedDict

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart

from agents.agent import emit
from agents.chat.state import dump_result, load_result, tool_return
from agents.core.codec import register
from agents.core.component.context import is_outside_of_tools
from agents.core.component.state import get_interrupt_state
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    AgentError,
    DuplicateNameError,
    ResumeDataError,
)
from agents.core.events import current_outlet
from agents.core.interrupt import composite_interrupt, keep_waiting
from agents.core.messages import (
    PlannedCall,
    call_ids,
    planned_calls,
    repaired,
    text_of,
    user_message,
)
from agents.core.scope import current_scope
from agents.core.tools import Tool
from agents.graph.commands import END
from agents.tools.batch import ToolBatch, call_address

MESSAGES = "messages"
"""Default key of the state for the conversation."""


def add_messages(
    before: Sequence[ModelMessage], update: ModelMessage | str | Sequence[ModelMessage | str]
) -> list[ModelMessage]:
    """Append messages to a conversation: the reducer of a messages key.

    Model answers are repaired: each call gets an id of its own, and arguments that are a JSON
    object, so that `ToolsNode` can run the calls and each model can read them.

    Args:
        before: The conversation.
        update: One message or several; a text is a user message.

    Returns:
        A new list.

    Raises:
        TypeError: A value is neither a message nor a text.
    """
    messages = list(before)
    items = [update] if isinstance(update, str | ModelRequest | ModelResponse) else list(update)
    for item in items:
        match item:
            case str():
                messages.append(user_message(item))
            case ModelRequest():
                messages.append(item)
            case ModelResponse():
                messages.append(repaired(item, call_ids(messages)))
            case _:
                raise TypeError(f"a message or a text was expected, not a {type(item).__name__}")
    return messages


class MessagesState(TypedDict, total=False):
    """A state with a conversation. Subclasses add keys.

    Attributes:
        messages: In order; updates are appended.
    """

    messages: Annotated[list[ModelMessage], add_messages]


def tools_condition(state: Mapping[str, object]) -> str:
    """Route to the node `tools` if the newest message has tool calls, else to the end."""
    messages = state.get(MESSAGES)
    newest = messages[-1] if isinstance(messages, list) and messages else None
    has_calls = isinstance(newest, ModelResponse) and any(
        isinstance(part, ToolCallPart) for part in newest.parts
    )
    return "tools" if has_calls else END


@register("countersign.tools-node-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsNodeInfo:
    """Info of a node with pending tool calls. Stored: version 1, must stay readable.

    Attributes:
        tools: Names of the interrupted tools, in the order of the calls.
    """

    tools: tuple[str, ...]

    def check_answer(self, answer: object) -> None:
        """Refuse any answer, because each call has an interrupt of its own.

        Raises:
            ResumeDataError: Always.
        """
        raise ResumeDataError(
            f"the node of {', '.join(self.tools)} takes no {type(answer).__name__}; answer its "
            "pending calls by their own ids"
        )


@register("countersign.tools-node-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsNodeState:
    """The state of a node with pending calls. Stored: version 1, must stay readable.

    Attributes:
        results: Results of finished calls, by call id; see `ChatState.results`.
        gates: Names of the gates around each pending call, by call id.
    """

    results: dict[str, list[object]]
    gates: dict[str, list[str]]


class NothingToCallError(AgentError):
    """The newest message of a state has no tool calls."""


class ToolsNode:
    """A node that runs all tool calls of the newest message and appends their results.

    The calls run in parallel, each at its address `…;node:NAME;tool:TOOL:CALL`, and pass the gates
    of their tools. If some calls interrupt, the other calls are finished and never run again; the
    node ends when all calls have a result. Actions of tools (`Exit`, `Transfer`) have no effect
    here: edges decide how a graph continues.

    Args:
        tools: Tools that can be called.
        messages_key: Key of the state for the conversation.
        sequential: Whether the calls of one message run one after the other.

    Raises:
        DuplicateNameError: Two tools share a name.
        AgentConfigError: There is no tool.

    Source:
        Eino's `compose.ToolsNode`; LangGraph's `ToolNode`.
    """

    def __init__(
        self, tools: Sequence[Tool], *, messages_key: str = MESSAGES, sequential: bool = False
    ) -> None:
        self._tools = _by_name(tools)
        self._key = messages_key
        self._is_sequential = sequential

    def held(self) -> Iterable[object]:
        """The tools; see `agents.runs.topology.Holder`."""
        return self._tools.values()

    async def __call__(self, state: object) -> dict[str, object]:
        """Run the calls; see `StateGraph.add_node`.

        Raises:
            InterruptSignal: Some calls are interrupted.
            NothingToCallError: The newest message has no calls, or its calls have no unique ids.
        """
        answer, calls = self._calls(state)
        _, _, kept = get_interrupt_state(ToolsNodeState)
        results = {}
        if kept is not None:
            results = {name: load_result(entry) for name, entry in kept.results.items()}
            self._check_unchanged(calls, kept)
        batch = ToolBatch(
            calls, self._tools, results, why=text_of(answer), is_sequential=self._is_sequential
        )
        is_told = current_outlet() and is_outside_of_tools(current_scope("ToolsNode").address)
        async with aclosing(batch.run()) as events:
            async for event in events:
                if is_told:
                    emit(event)
        if batch.signals:
            self._wait(calls, batch)
        parts = [tool_return(planned, results[planned.call.id]) for planned in calls]
        return {self._key: [ModelRequest(parts=parts)]}

    def _calls(self, state: object) -> tuple[ModelResponse, list[PlannedCall]]:
        stored = state.get(self._key) if isinstance(state, Mapping) else getattr(state, self._key)
        messages = list(stored or ())
        newest = messages[-1] if messages else None
        if not isinstance(newest, ModelResponse):
            raise NothingToCallError(
                f"the newest message in {self._key!r} is no answer of a model; lead here only "
                "after one with calls, as `tools_condition` does"
            )
        answer = repaired(newest, call_ids(messages[:-1]))
        if call_ids([answer]) != call_ids([newest]):
            raise NothingToCallError(
                f"two calls in {self._key!r} have one id, or one has none; give the key the "
                "reducer `add_messages`, which sees to it"
            )
        calls = planned_calls(answer)
        if not calls:
            raise NothingToCallError(f"the newest message in {self._key!r} calls no tool")
        return answer, calls

    def _wait(self, calls: Sequence[PlannedCall], batch: ToolBatch) -> None:
        waiting = [planned.call for planned in calls if planned.call.id in batch.signals]
        state = ToolsNodeState(
            results={name: dump_result(done) for name, done in batch.results.items()},
            gates={call.id: self._gates_of(call.name) for call in waiting},
        )
        info = ToolsNodeInfo(tools=tuple(call.name for call in waiting))
        composite_interrupt(info, state, *batch.waiting())

    def _gates_of(self, name: str) -> list[str]:
        tool = self._tools.get(name)
        return list(tool.definition.gates) if tool else ["(no such tool)"]

    def _check_unchanged(self, calls: Sequence[PlannedCall], kept: ToolsNodeState) -> None:
        """Refuse to resume if a gate that interrupted is gone."""
        run = current_scope("ToolsNode").run
        for planned in calls:
            before, now = kept.gates.get(planned.call.id), self._gates_of(planned.call.name)
            address = call_address(planned.call)
            if before is not None and before != now and run.untouched(address) is None:
                was, current = (", ".join(gates) or "no gate" for gates in (before, now))
                keep_waiting(AgentChangedError(str(address), was, current))


def _by_name(tools: Collection[Tool]) -> dict[str, Tool]:
    if not tools:
        raise AgentConfigError("a ToolsNode needs at least one tool")
    tools_by_name: dict[str, Tool] = {}
    for tool in tools:
        name = tool.definition.name
        if name in tools_by_name:
            raise DuplicateNameError("ToolsNode", "tool", name)
        tools_by_name[name] = tool
    return tools_by_name
