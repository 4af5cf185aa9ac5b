"""Adapters: a graph as an agent, and a graph as a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from pydantic import BaseModel
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from agents.agent import AgentEvent, AgentInput, MessageEvent, make_action, make_message
from agents.core.calls import Exit, ToolReturn
from agents.core.codec import Json
from agents.core.component.context import publish
from agents.core.errors import AgentConfigError, NotAnsweredError
from agents.core.events import Outlet, current_outlet, telling
from agents.core.interrupt import refuse_orphans
from agents.core.observers import ToolOutcome
from agents.core.tools import CallText, Tool, ToolSpec
from agents.gates.decorator import tool
from agents.graph.compiled import CompiledGraph
from agents.graph.errors import NodeRefusedError
from agents.graph.state.channels import Values
from agents.tools.function import FunctionTool, result_text

_NO = "Do not try the same call again or work around it."

ToInput = Callable[[AgentInput], Mapping[str, object] | BaseModel]
ToText = Callable[[Values], str]


class GraphAgent:
    """A graph as an agent. The graph's interrupts belong to the agent's run.

    Args:
        graph: The graph; its own store is not used.
        name: See `Agent`.
        description: See `Agent`.
        to_input: Converts the agent's input to the graph's input; by default, the last text of a
            user, as the key `input`.
        to_text: Converts the graph's final state to the agent's text; by default, the key `output`.

    Raises:
        AgentConfigError: The graph lacks these keys.
    """

    def __init__(
        self,
        graph: CompiledGraph,
        name: str,
        *,
        description: str = "",
        to_input: ToInput | None = None,
        to_text: ToText | None = None,
    ) -> None:
        wanted = [("to_input", to_input, "input"), ("to_text", to_text, "output")]
        for argument, given, key in wanted:
            if given is None and key not in graph.topology.channels.names:
                raise AgentConfigError(
                    f"the state of graph {graph.name!r} has no key {key!r}; give `{argument}`"
                )
        self._graph = graph
        self._name = name
        self._description = description
        self._to_input = to_input or _last_text
        self._to_text = to_text or _output_text

    @property
    def name(self) -> str:
        """See `Agent`."""
        return self._name

    @property
    def description(self) -> str:
        """See `Agent`."""
        return self._description

    def held(self) -> Iterable[object]:
        """The nodes; see `agents.runs.topology.Holder`."""
        return self._graph.topology.held()

    async def run(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Run the graph; see `Agent.run`.

        If people refuse a breakpoint, or a node's interrupt expires, the agent says so and exits
        all enclosing workflows, because later agents were not approved.
        """
        action: Exit | None = None
        last = _LastText(current_outlet())
        try:
            with telling(last, passes_on=False):
                values = await self._graph.run_inside(self._to_input(input))
            text = self._to_text(values)
        except NodeRefusedError as error:
            text, action = error.message, Exit()
        except NotAnsweredError as error:
            text, action = f"Stopped: {error.outcome}. This is not a rejection.", Exit()
        # Otherwise an agent in a node has already emitted this text
        if not text or text != last.text:
            yield make_message(text)
        publish(ModelResponse(parts=[TextPart(text)]))
        if action is not None:
            yield make_action(action)

    def resume(self, input: AgentInput) -> AsyncIterator[AgentEvent]:  # noqa: A002 - see Agent
        """Resume the graph, which stores its own place. See `Agent.resume`."""
        return self.run(input)


@dataclass(slots=True)
class _LastText:
    """Passes events on and remembers the newest text."""

    outlet: Outlet | None
    text: str = ""

    def __call__(self, event: object) -> None:
        if isinstance(event, MessageEvent):
            self.text = event.text
        if self.outlet is not None:
            self.outlet(event)


def _last_text(input: AgentInput) -> Mapping[str, object]:  # noqa: A002 - see Agent
    for message in reversed(input.messages):
        parts = message.parts if isinstance(message, ModelRequest) else ()
        for part in reversed(parts):
            if isinstance(part, UserPromptPart) and isinstance(part.content, str):
                return {"input": part.content}
    return {"input": ""}


def _output_text(values: Values) -> str:
    return result_text(values.get("output"))


@dataclass(frozen=True, slots=True)
class GraphTool:
    """A graph as a tool. The graph's interrupts belong to the call.

    Attributes:
        graph: The graph; its own store is not used.
        arguments: The function that returns the graph's input, as a tool.
        to_text: Converts the graph's final state to the result.
    """

    graph: CompiledGraph
    arguments: FunctionTool
    to_text: ToText

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition."""
        return self.arguments.definition

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.arguments.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call in words; see `Tool.describe`."""
        return self.arguments.describe(arguments)

    def held(self) -> Iterable[object]:
        """The nodes; see `agents.runs.topology.Holder`."""
        return self.graph.topology.held()

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the graph; see `Tool.call`. A refused breakpoint is a result, not an error."""
        refuse_orphans()
        made = self.arguments.function(**self.arguments.values(arguments))
        try:
            values = await self.graph.run_inside(cast("Mapping[str, object] | BaseModel", made))
        except NodeRefusedError as error:
            is_no = error.outcome is ToolOutcome.REJECTED
            return ToolReturn(f"{error.message}\n{_NO}" if is_no else error.message, error.outcome)
        return self.to_text(values)


def graph_tool(
    graph: CompiledGraph,
    arguments: Callable[..., Mapping[str, object] | BaseModel],
    *,
    name: str = "",
    description: str = "",
    title: str = "",
    to_text: ToText | None = None,
) -> Tool:
    """Create a tool that runs a graph. Gates wrap it like any other tool.

    Args:
        graph: The graph; its own store is not used.
        arguments: A plain function that returns the graph's input. The model sees its signature and
            docstring, and cannot set other keys of the state.
        name: Name for the model; by default the function's name.
        description: Description for the model; by default from the docstring.
        title: Title for people, such as `Transfer {amount}`; by default from the name.
        to_text: Converts the graph's final state to the result; by default, all of it as JSON.

    Raises:
        AgentConfigError: The function cannot be a tool.
    """
    made = cast("FunctionTool", tool(name=name, title=title)(arguments))
    if description:
        definition = replace(made.definition, description=description)
        made = replace(made, definition=definition)
    return GraphTool(graph, made, to_text or result_text)
