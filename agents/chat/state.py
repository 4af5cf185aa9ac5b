"""The state of a chat model agent: stored, shown to people, and shared with its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from agents.core.calls import Action, File, ToolReturn, dump_files, load_files
from agents.core.codec import Json, encode, register, well_formed
from agents.core.errors import CheckpointDecodeError, OutsideRunError, ResumeDataError
from agents.core.messages import (
    PlannedCall,
    call_ids,
    dump_new,
    load_messages,
    repaired,
)
from agents.core.observers import ToolOutcome
from agents.core.scope import SessionValues
from agents.runs.hook_answers import HookAnswers

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
    """Messages of people to an agent whose tool calls are pending.

    Attributes:
        messages: The model reads them after the results of the pending calls.
    """

    messages: tuple[str, ...]


@register("countersign.chat-info/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatInterruptInfo:
    """Info of an agent's pending calls and hooks.

    Stored: version 1, must stay readable.

    Attributes:
        agent_name: Name of the agent.
    """

    agent_name: str

    def __str__(self) -> str:
        return f"Agent {self.agent_name!r} interrupted"

    def check_answer(self, answer: object) -> None:
        """Accept messages for the model only; each call has an interrupt of its own.

        Raises:
            ResumeDataError: The answer is not `ChatResumeData`.
        """
        if not isinstance(answer, ChatResumeData):
            raise ResumeDataError(
                f"agent {self.agent_name!r} takes ChatResumeData, got {type(answer).__name__}; "
                "answer its pending tool calls by their own ids"
            )


@register("countersign.chat-state/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class ChatState:
    """The state of an interrupted agent. Stored: version 1, must stay readable.

    Attributes:
        messages: Messages of the agent and its tools in this run.
        rounds: Number of model calls.
        results: Text, outcome and, if any, action and files of finished calls of the last answer,
            by call id.
        gates: Names of the gates around each pending call, by call id.
        said: Messages of people during the interrupt.
        draft: An answer of the model that has not passed the middlewares.
        ending: The final text and next action, when only hooks are left to run.
        instruction: See `agents.chat.instruction.settle`; None before the run has begun.
        values: The run's local values.
        hooks: See `HookAnswers`.
    """

    messages: list[Json]
    rounds: int
    results: dict[str, list[object]]
    gates: dict[str, list[str]]
    said: list[str]
    draft: Json = None
    ending: list[object] | None = None
    instruction: Json = None
    values: dict[str, object] = field(default_factory=dict)
    hooks: dict[str, list[object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an agent's run."""

    text: str
    action: Action | None = None


@dataclass(slots=True)
class ChatRun:
    """The progress of one run. Its attributes are described at `ChatState`.

    Attributes:
        messages: Append-only.
        results: Finished calls, by call id.
    """

    messages: list[ModelMessage] = field(default_factory=list)
    rounds: int = 0
    results: dict[str, ToolReturn] = field(default_factory=dict)
    gates: dict[str, list[str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    draft: ModelResponse | None = None
    ending: Ending | None = None
    instruction: Json = None
    values: SessionValues = field(default_factory=SessionValues)
    hooks: HookAnswers = field(default_factory=HookAnswers)
    _dumped: list[Json] = field(default_factory=list)

    @property
    def answer(self) -> ModelResponse | None:
        """The model's answer, if it is the last message."""
        last = self.messages[-1] if self.messages else None
        return last if isinstance(last, ModelResponse) else None

    def add_answer(self, answer: ModelResponse, *, is_repaired: bool = False) -> None:
        """Add an answer that has passed the middlewares."""
        fit = answer if is_repaired else repaired(answer, call_ids(self.messages))
        self.messages.append(fit)
        self.draft = None
        self.rounds += 1

    def note(self, session: SessionValues) -> dict[str, Json]:
        """Return the last answer and the values that hooks changed, for the journal."""
        note: dict[str, Json] = {"messages": self._dump()[-1:]}
        changes = {"session": session.take_changes(), "values": self.values.take_changes()}
        note.update({key: cast("Json", changed) for key, changed in changes.items() if changed})
        return note

    def recall(self, note: Mapping[str, Json], session: SessionValues) -> None:
        """Restore what `note` wrote."""
        self.messages += load_messages(note["messages"])
        self.draft = None
        self.rounds += 1
        session.apply_changes(cast("dict[str, Json]", note.get("session", {})))
        self.values.apply_changes(cast("dict[str, Json]", note.get("values", {})))

    def add_results(self, message: ModelMessage) -> None:
        """Add the results of all calls, which completes the answer."""
        self.messages.append(message)
        self.results, self.gates, self.said = {}, {}, []

    @classmethod
    def thaw(cls, state: ChatState) -> ChatRun:
        """Restore a run from its stored state."""
        draft = load_messages([state.draft]) if state.draft is not None else []
        work = cls(
            messages=load_messages(state.messages),
            rounds=state.rounds,
            results={key: load_result(done) for key, done in state.results.items()},
            gates=dict(state.gates),
            said=list(state.said),
            draft=cast("ModelResponse", draft[0]) if draft else None,
            ending=_ending(state.ending) if state.ending is not None else None,
            instruction=state.instruction,
            values=SessionValues(state.values),
            hooks=HookAnswers.from_json(state.hooks),
        )
        # Stored messages are reused as they are, so only new messages are serialized.
        work._dumped = list(state.messages)
        return work

    def freeze(self) -> ChatState:
        """Return the state to store."""
        ending = self.ending
        return ChatState(
            messages=self._dump(),
            rounds=self.rounds,
            results={key: dump_result(done) for key, done in self.results.items()},
            gates=self.gates,
            said=self.said,
            draft=dump_new([self.draft])[0] if self.draft else None,
            ending=[ending.text, ending.action] if ending else None,
            instruction=self.instruction,
            values=dict(self.values),
            hooks=self.hooks.to_json(),
        )

    def _dump(self) -> list[Json]:
        self._dumped += dump_new(self.messages[len(self._dumped) :])
        return self._dumped


_values: ContextVar[SessionValues] = ContextVar("agents_run_local_values")


def run_local_values() -> SessionValues:
    """Return values shared by the hooks and tools of the current chat model agent.

    They survive interrupts and are deleted when the agent ends. Use `session_values` for values
    that other agents need, or that a tool must keep over a crash.

    Raises:
        OutsideRunError: No chat model agent is running.
    """
    try:
        return _values.get()
    except LookupError:
        raise OutsideRunError("run_local_values()") from None


def use_values(values: SessionValues) -> None:
    """Set the local values of the current task."""
    _values.set(values)


_Said: TypeAlias = tuple[Sequence[ModelMessage], Sequence[ModelMessage]]
_conversation: ContextVar[_Said] = ContextVar("agents_conversation", default=((), ()))


def conversation() -> tuple[ModelMessage, ...]:
    """Return the model messages of the agent that called this tool, or none."""
    given, said = _conversation.get()
    return (*given, *said)


def share_conversation(given: Sequence[ModelMessage], said: Sequence[ModelMessage]) -> None:
    """Make the conversation of the current agent available to its tools."""
    _conversation.set((given, said))


def results_message(calls: Sequence[PlannedCall], work: ChatRun) -> ModelRequest:
    """Build the message with the results in call order, and with people's messages."""
    parts: list[ModelRequestPart] = [
        tool_return(planned, work.results[planned.call.id]) for planned in calls
    ]
    parts += [UserPromptPart(text) for text in work.said]
    return ModelRequest(parts=parts)


def tool_return(planned: PlannedCall, done: ToolReturn) -> ToolReturnPart:
    """Convert the result of one call to the part that the model reads."""
    return ToolReturnPart(
        tool_name=planned.call.name,
        content=[well_formed(done.text), *done.files] if done.files else well_formed(done.text),
        tool_call_id=planned.call.id,
        outcome=_MODEL_VIEW[done.outcome],
    )


def dump_result(done: ToolReturn) -> list[object]:
    """Serialize the result of a call for `ChatState.results`."""
    entry: list[object] = [done.text, str(done.outcome)]
    if done.files:
        return [*entry, done.action, dump_files(done.files)]
    return [*entry, done.action] if done.action is not None else entry


def load_result(entry: Sequence[object]) -> ToolReturn:
    """Parse what `dump_result` wrote."""
    try:
        text, outcome, *rest = entry
        action, files, *_ = (*rest, None, None)
        return ToolReturn(str(text), ToolOutcome(str(outcome)), _action(action), _files_of(files))
    except ValueError as error:
        raise CheckpointDecodeError(f"the result of a call is damaged: {error}") from error


def _files_of(data: object) -> tuple[File, ...]:
    return load_files(cast("Json", data)) if data is not None else ()


def _ending(entry: Sequence[object]) -> Ending:
    try:
        text, action = entry
    except ValueError as error:
        raise CheckpointDecodeError(f"the end of an agent is damaged: {error}") from error
    return Ending(str(text), _action(action))


def _action(value: object) -> Action | None:
    if value is None or isinstance(value, Action):
        return value
    raise CheckpointDecodeError(f"{encode(value)} is not an action")
