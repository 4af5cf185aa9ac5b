"""The chat model agent: a model, its tools, and the loop between them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal, cast

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from agents.agent import AgentEvent, AgentInput, MessageEvent, TextDelta, header
from agents.calls import ToolOutcome, ToolReturn
from agents.codec import Json, register
from agents.context import (
    current_scope,
    get_interrupt_state,
    get_resume_context,
    publish,
)
from agents.errors import (
    AgentConfigError,
    AgentError,
    ArgumentError,
    CheckpointDecodeError,
    InvalidArgumentsError,
    ModelError,
    ResumeDataError,
    StepLimitError,
    TopologyChangedError,
)
from agents.interrupt import composite_interrupt, keep_waiting
from agents.journal import MODEL
from agents.messages import (
    PlannedCall,
    call_ids,
    dump_messages,
    load_messages,
    planned_calls,
    repaired,
    text_of,
)
from agents.toolbatch import ToolBatch, call_address
from agents.tools.base import Tool

_MODEL_VIEW: dict[ToolOutcome, Literal["success", "failed", "denied"]] = {
    ToolOutcome.RAN: "success",
    ToolOutcome.ANSWERED: "success",
    ToolOutcome.FAILED: "failed",
    ToolOutcome.REFUSED: "failed",
    ToolOutcome.REJECTED: "denied",
    ToolOutcome.EXPIRED: "denied",
    ToolOutcome.CANCELLED: "denied",
}


@register("countersign.chat-data/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatResumeData:
    """What people said to an agent while its tool calls waited; an answer for the agent itself.

    Attributes:
        messages: The model reads them after the results of the calls that wait.
    """

    messages: tuple[str, ...]


@register("countersign.chat-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInterruptInfo:
    """Tool calls of an agent wait. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Which agent.
    """

    agent_name: str

    def check_answer(self, answer: object) -> None:
        """Take messages for the model; the calls are answered one by one.

        Raises:
            ResumeDataError: It is something else.
        """
        if not isinstance(answer, ChatResumeData):
            raise ResumeDataError(
                f"agent {self.agent_name!r} takes ChatResumeData, got {type(answer).__name__}; "
                "answer its pending tool calls by their own ids"
            )


@register("countersign.chat-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatState:
    """What an interrupted agent needs to go on. Stored: version 1, must stay readable.

    Attributes:
        messages: What the agent and its tools said in this run.
        rounds: How often the model was asked.
        results: Text and outcome of finished calls of the last answer, by call id.
        gates: Names of the gates around each waiting call, by call id.
        said: What people said meanwhile.
    """

    messages: list[Json]
    rounds: int
    results: dict[str, list[str]]
    gates: dict[str, list[str]]
    said: list[str]


@dataclass(slots=True)
class _Work:
    """A run of the agent, as far as it has come."""

    messages: list[ModelMessage] = field(default_factory=list)
    rounds: int = 0
    results: dict[str, ToolReturn] = field(default_factory=dict)
    gates: dict[str, list[str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    @property
    def answer(self) -> ModelResponse | None:
        """The model's answer, when nothing has come after it."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, ModelResponse) else None

    @classmethod
    def thaw(cls, state: ChatState) -> _Work:
        """Go on from a stored state."""
        results = {
            call_id: ToolReturn(text, ToolOutcome(outcome))
            for call_id, (text, outcome) in state.results.items()
        }
        messages = load_messages(state.messages)
        return cls(messages, state.rounds, results, dict(state.gates), list(state.said))

    def freeze(self) -> ChatState:
        """Make a state to store."""
        return ChatState(
            messages=dump_messages(self.messages),
            rounds=self.rounds,
            results={key: [done.text, str(done.outcome)] for key, done in self.results.items()},
            gates=self.gates,
            said=self.said,
        )


class ChatModelAgent:
    """An agent that asks a model, runs the tools that it calls, and asks it again.

    Args:
        name: Unique among its siblings; part of addresses.
        model: The model.
        instruction: What the model is told before everything else.
        tools: What the model may call; wrapped in gates where people must agree.
        description: What the agent is good at, for models that may call it.
        max_iterations: How often the model may be asked in a run; a resume does not start again.
        sequential_tools: Whether the calls of one answer run one after the other.

    Raises:
        AgentConfigError: Two tools have one name.
    """

    def __init__(  # noqa: PLR0913 - the documented names, all given by keyword
        self,
        *,
        name: str,
        model: Model,
        instruction: str = "",
        tools: Sequence[Tool] = (),
        description: str = "",
        max_iterations: int = 20,
        sequential_tools: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self._model = model
        self._instruction = instruction
        self._tools = _by_name(name, tools)
        self._max_iterations = max_iterations
        self._sequential_tools = sequential_tools

    def validate_call(self, tool: str, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Bring arguments that a person edited into the tool's canonical form; runs nothing.

        Args:
            tool: Name of the tool.
            arguments: All of its arguments.

        Raises:
            InvalidArgumentsError: They do not fit, or there is no such tool.
        """
        found = self._tools.get(tool)
        if found is None:
            raise InvalidArgumentsError([ArgumentError((), f"there is no tool {tool!r} any more")])
        return found.validate(arguments)

    async def run(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Answer the messages; see `Agent.run`."""
        async with aclosing(self._work(input, _Work())) as events:
            async for event in events:
                yield event

    async def resume(self, input: AgentInput) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Go on with the calls that were answered; see `Agent.resume`."""
        _, has_state, state = get_interrupt_state(ChatState)
        if not has_state or state is None:
            raise CheckpointDecodeError(f"agent {self.name!r} has lost what it was doing")
        work = _Work.thaw(state)
        self._check_gates(work)
        _, _, data = get_resume_context(ChatResumeData)
        work.said += data.messages if data else ()
        async with aclosing(self._work(input, work)) as events:
            async for event in events:
                yield event

    async def _work(self, input: AgentInput, work: _Work) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        while True:
            answer = work.answer
            calls = planned_calls(answer) if answer else []
            if answer and not calls:
                publish(*work.messages)
                return
            step = self._run_tools(answer, calls, work) if answer else self._ask(input, work)
            async with aclosing(step) as events:
                async for event in events:
                    yield event

    async def _ask(self, input: AgentInput, work: _Work) -> AsyncGenerator[AgentEvent, None]:  # noqa: A002 - see Agent
        """Ask the model, or read in the journal what it answered."""
        if work.rounds >= self._max_iterations:
            raise StepLimitError(self.name, self._max_iterations)
        work.rounds += 1
        scope = current_scope("ChatModelAgent")
        journal, at = scope.run.journal, f"{scope.address}#{work.rounds}"
        key = f"{scope.address}/m{work.rounds}"
        known = journal.find(MODEL, at)
        if known is not None:
            work.messages += load_messages(known["messages"])
        else:
            said = [*input.history, *input.messages, *work.messages]
            async with aclosing(self._request(said, key, work)) as deltas:
                async for delta in deltas:
                    yield delta
            if journal.every_step:
                await journal.append(MODEL, at, {"messages": dump_messages(work.messages[-1:])})
        answer = cast("ModelResponse", work.answer)
        calls = tuple(planned.call for planned in planned_calls(answer))
        yield MessageEvent(**header(key), text=text_of(answer), tool_calls=calls)

    async def _request(
        self, said: list[ModelMessage], key: str, work: _Work
    ) -> AsyncGenerator[AgentEvent, None]:
        """Ask the model; its answer is added to the work."""
        answer: ModelResponse | None = None
        try:
            if current_scope("ChatModelAgent").run.streaming:
                async with model_request_stream(
                    self._model, said, model_request_parameters=self._offer()
                ) as stream:
                    begun = False
                    async for piece in stream:
                        text = _text_delta(piece, begun=begun)
                        if text:
                            begun = True
                            yield TextDelta(**header(key), text=text)
                    answer = stream.get()
            else:
                answer = await model_request(
                    self._model, said, model_request_parameters=self._offer()
                )
        except AgentError:
            raise
        except Exception as error:
            raise ModelError(f"the model of agent {self.name!r} failed: {error}") from error
        work.messages.append(repaired(answer, call_ids(work.messages)))

    async def _run_tools(
        self, answer: ModelResponse, calls: list[PlannedCall], work: _Work
    ) -> AsyncGenerator[AgentEvent, None]:
        batch = ToolBatch(
            calls,
            self._tools,
            work.results,
            why=text_of(answer),
            is_sequential=self._sequential_tools,
        )
        async with aclosing(batch.run()) as events:
            async for event in events:
                yield event
        if batch.signals:
            work.gates = {call_id: self._gates_of(calls, call_id) for call_id in batch.signals}
            info = ChatInterruptInfo(agent_name=self.name)
            composite_interrupt(info, work.freeze(), *batch.waiting())
        work.messages.append(_results_message(calls, work))
        work.results, work.gates, work.said = {}, {}, []

    def _gates_of(self, calls: list[PlannedCall], call_id: str) -> list[str]:
        name = next(planned.call.name for planned in calls if planned.call.id == call_id)
        tool = self._tools.get(name)
        return list(tool.definition.gates) if tool else ["(no such tool)"]

    def _check_gates(self, work: _Work) -> None:
        """Refuse to go on with a call whose gates are not those that asked."""
        run = current_scope("ChatModelAgent").run
        calls = planned_calls(work.answer) if work.answer else []
        for planned in calls:
            address = call_address(planned.call)
            before = work.gates.get(planned.call.id)
            if before is None or run.untouched(address) is not None:
                continue
            now = self._gates_of(calls, planned.call.id)
            if now != before:
                was, told = (", ".join(gates) or "no gate" for gates in (before, now))
                keep_waiting(TopologyChangedError(str(address), was, told))

    def _offer(self) -> ModelRequestParameters:
        """What the model is told about its task and its tools."""
        definitions = [
            ToolDefinition(
                name=tool.definition.name,
                description=tool.definition.description,
                parameters_json_schema=dict(tool.definition.schema),
            )
            for tool in self._tools.values()
        ]
        parts = [InstructionPart(content=self._instruction)] if self._instruction else None
        return ModelRequestParameters(function_tools=definitions, instruction_parts=parts)


def _by_name(agent_name: str, tools: Sequence[Tool]) -> Mapping[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        name = tool.definition.name
        if name in found:
            raise AgentConfigError(f"agent {agent_name!r} has two tools {name!r}; rename one")
        found[name] = tool
    return found


def _text_delta(piece: object, *, begun: bool) -> str:
    """The text in a piece of a stream; together they are what `text_of` gives."""
    match piece:
        case PartStartEvent(part=TextPart(content=text)):
            return f"\n\n{text}" if begun else text
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case _:
            return ""


def _results_message(calls: Sequence[PlannedCall], work: _Work) -> ModelRequest:
    """What the tools gave back, in the order of the calls, and what people said meanwhile."""
    parts: list[ModelRequestPart] = [_tool_return(planned, work) for planned in calls]
    parts += [UserPromptPart(text) for text in work.said]
    return ModelRequest(parts=parts)


def _tool_return(planned: PlannedCall, work: _Work) -> ToolReturnPart:
    done = work.results[planned.call.id]
    return ToolReturnPart(
        tool_name=planned.call.name,
        content=done.text,
        tool_call_id=planned.call.id,
        outcome=_MODEL_VIEW[done.outcome],
    )
