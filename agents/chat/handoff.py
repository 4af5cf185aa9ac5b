"""Notes of what one agent said and did, retold to the next agent.

Workflow agents keep notes of the events that pass through them. The next agent reads the notes
after its input: its own words as its own, and the words of other agents as a user's, in the form
`For context: [Reviewer] said: shorter.`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agents.agent import ActionEvent, AgentEvent, AgentInput, MessageEvent, ToolEvent
from agents.core.calls import Action, Exit, ToolCall
from agents.core.codec import Json, decode, encode
from agents.core.errors import CheckpointDecodeError
from agents.core.observers import ToolOutcome

_YOUR_TURN = "It is your turn again. Go on with the task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing that an agent said or did. Stored: version 1, must stay readable.

    Attributes:
        agent_name: The agent.
        text: The agent's text, or the result of a tool.
        calls: Tool calls that the agent requested.
        result_of: The call whose result `text` is; None for the agent's own words.
        outcome: Outcome of that call.
        action: Requested action that has not been carried out.
        branches: See `Event.branches`.
    """

    agent_name: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    result_of: ToolCall | None = None
    outcome: ToolOutcome = ToolOutcome.RAN
    action: Action | None = None
    branches: tuple[tuple[str, int], ...] = ()

    @property
    def is_message(self) -> bool:
        """Whether the note holds the agent's own words."""
        return self.result_of is None and self.action is None

    def to_json(self) -> Json:
        """Serialize the note without empty fields."""
        fields: dict[str, Json] = {"by": self.agent_name}
        if self.text:
            fields["text"] = self.text
        if self.calls:
            fields["calls"] = [_call_json(call) for call in self.calls]
        if self.result_of is not None:
            fields["of"] = _call_json(self.result_of)
        if self.outcome is not ToolOutcome.RAN:
            fields["outcome"] = str(self.outcome)
        if self.action is not None:
            fields["action"] = encode(self.action)
        if self.branches:
            fields["branches"] = [[at, number] for at, number in self.branches]
        return fields

    @classmethod
    def from_json(cls, data: Json) -> Note:
        """Parse what `to_json` wrote."""
        try:
            fields = cast("dict[str, Json]", data)
            calls = cast("list[Json]", fields.get("calls", []))
            branches = cast("list[list[str | int]]", fields.get("branches", []))
            return cls(
                agent_name=str(fields["by"]),
                text=str(fields.get("text", "")),
                calls=tuple(_call(call) for call in calls),
                result_of=_call(fields["of"]) if "of" in fields else None,
                outcome=ToolOutcome(str(fields.get("outcome", ToolOutcome.RAN))),
                action=cast("Action | None", decode(fields.get("action"))),
                branches=tuple((str(at), int(number)) for at, number in branches),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointDecodeError(f"a note of an agent is damaged: {error!r}") from error


@dataclass(slots=True)
class Notes:
    """The notes of a run, in order of arrival."""

    all: list[Note] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.all)

    def add_event(self, event: AgentEvent) -> None:
        """Add a note of an event if other agents need it."""
        # Events inside a tool call are summarized by the call's result.
        if event.is_inner:
            return
        note = Note(agent_name=event.agent_name, branches=event.branches)
        match event:
            case MessageEvent(text=text, tool_calls=calls):
                self.all.append(replace(note, text=text, calls=calls))
            case ToolEvent(call=call, result=text, outcome=outcome):
                self.all.append(replace(note, text=text, result_of=call, outcome=outcome))
            case ActionEvent(action=action, is_done=False):
                self.all.append(replace(note, action=action))
            case _:
                pass

    def action(self, since: int = 0) -> Action | None:
        """Return the next action after some notes: the first exit, else the first action."""
        actions = [note.action for note in in_order(self.all[since:]) if note.action is not None]
        first_exit = next((action for action in actions if isinstance(action, Exit)), None)
        return first_exit or next(iter(actions), None)

    def to_json(self) -> list[Json]:
        """Serialize the notes."""
        return [note.to_json() for note in self.all]

    @classmethod
    def from_json(cls, data: list[Json]) -> Notes:
        """Parse what `to_json` wrote."""
        return cls([Note.from_json(note) for note in data])


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The origin of an input's messages, to rebuild them for another agent.

    Attributes:
        given: Messages that all agents work on.
        notes: Notes taken since.
        messages: The messages of the input that this origin describes.
    """

    given: tuple[ModelMessage, ...]
    notes: tuple[Note, ...]
    messages: tuple[ModelMessage, ...]


def input_after(name: str, given: AgentInput, notes: Sequence[Note]) -> AgentInput:
    """Build the input of an agent that runs after other agents."""
    # If the messages were replaced on the way, their old origin no longer describes them.
    origin = given.origin
    if not isinstance(origin, Origin) or origin.messages is not given.messages:
        origin = Origin(given=given.messages, notes=(), messages=given.messages)
    known_notes = (*origin.notes, *notes)
    retelling = shown_to(name, known_notes)
    if retelling and isinstance(retelling[-1], ModelResponse):
        # Most models answer only if the last message is not their own.
        retelling.append(ModelRequest(parts=[UserPromptPart(_YOUR_TURN)]))
    messages = (*origin.given, *retelling)
    origin = Origin(given=origin.given, notes=known_notes, messages=messages)
    return replace(given, messages=messages, origin=origin)


def shown_to(name: str, notes: Sequence[Note]) -> list[ModelMessage]:
    """Convert notes to messages for an agent's model."""
    messages: list[ModelMessage] = []
    begun = 0
    for is_own, group in groupby(in_order(notes), key=lambda note: note.agent_name == name):
        agent_notes = list(group)
        begun += len(agent_notes)
        if is_own:
            messages += _own(agent_notes, begun)
            continue
        lines = [line for note in agent_notes if (line := _context_line(note))]
        if lines:
            messages.append(ModelRequest(parts=[UserPromptPart(line) for line in lines]))
    return messages


def retold(name: str, messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """Retell the messages of one agent to another. Messages of users stay unchanged."""
    parts: list[UserPromptPart] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            line = _said_line(name, text, [(call.tool_name, _arguments(call)) for call in calls])
            parts += [UserPromptPart(line)] if line else []
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                parts.append(part)
            elif isinstance(part, ToolReturnPart):
                line = _result_line(name, part.tool_name, part.model_response_str())
                parts.append(UserPromptPart(line))
    return [ModelRequest(parts=parts)] if parts else []


def in_order(notes: Iterable[Note], depth: int = 0) -> list[Note]:
    """Sort notes in order of arrival as the events happened: by branch, and results by call.

    `depth` is the number of leading branches that all notes share.
    """
    ordered: list[Note] = []
    for at, group in groupby(notes, key=lambda note: _branching(note, depth)):
        if at is None:
            ordered += _results_in_order(list(group))
            continue
        by_branch = sorted(group, key=lambda note: note.branches[depth][1])
        for _, branch in groupby(by_branch, key=lambda note: note.branches[depth][1]):
            ordered += in_order(branch, depth + 1)
    return ordered


def final_text(notes: Iterable[Note]) -> str:
    """Return the final text; for parallel branches, the final texts of each."""
    return _final_text([note for note in in_order(notes) if note.action is None], 0)


def _final_text(notes: list[Note], depth: int) -> str:
    if not notes:
        return ""
    at = _branching(notes[-1], depth)
    if at is not None:
        last = _trailing(notes, lambda note: _branching(note, depth) == at)
        branches = groupby(last, key=lambda note: note.branches[depth][1])
        texts = [_final_text(list(branch), depth + 1) for _, branch in branches]
    elif notes[-1].is_message:
        return notes[-1].text
    else:
        texts = [note.text for note in _trailing(notes, lambda note: not note.is_message)]
    return "\n\n".join(text for text in texts if text)


def _trailing(notes: list[Note], fits: Callable[[Note], bool]) -> list[Note]:
    start = len(notes)
    while start and fits(notes[start - 1]):
        start -= 1
    return notes[start:]


def _branching(note: Note, depth: int) -> str | None:
    """Return the address of the parallel agent at this depth, if any."""
    return note.branches[depth][0] if len(note.branches) > depth else None


def _results_in_order(notes: list[Note]) -> list[Note]:
    """Sort the results after a message in the order of the message's calls."""
    ordered: list[Note] = []
    order: dict[str, int] = {}
    for are_results, group in groupby(notes, key=lambda note: note.result_of is not None):
        if are_results:
            ordered += sorted(group, key=lambda note: order.get(_call_id(note), len(order)))
            continue
        ordered += group
        order = {call.id: number for number, call in enumerate(ordered[-1].calls)}
    return ordered


def _own(notes: list[Note], begun: int) -> list[ModelMessage]:
    """Return the earlier messages of an agent's model.

    The calls get new ids, because some models reuse ids in each run.
    """
    messages: list[ModelMessage] = []
    for at, note in enumerate(notes):
        if not note.is_message:
            continue
        results = {_call_id(result): result.text for result in _results_after(notes, at)}
        done = [call for call in note.calls if call.id in results]
        ids = {call.id: f"past-{begun + at}-{number}" for number, call in enumerate(done)}
        parts: list[ModelResponsePart] = [TextPart(note.text)] if note.text else []
        parts += [ToolCallPart(call.name, dict(call.arguments), ids[call.id]) for call in done]
        if parts:
            messages.append(ModelResponse(parts=parts))
        if done:
            returns = [ToolReturnPart(call.name, results[call.id], ids[call.id]) for call in done]
            messages.append(ModelRequest(parts=returns))
    return messages


def _results_after(notes: list[Note], at: int) -> Iterator[Note]:
    for note in notes[at + 1 :]:
        if note.is_message:
            return
        if note.result_of is not None:
            yield note


def _context_line(note: Note) -> str:
    if note.action is not None:
        return ""
    if note.result_of is not None:
        return _result_line(note.agent_name, note.result_of.name, note.text)
    calls = [(call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in note.calls]
    return _said_line(note.agent_name, note.text, calls)


def _said_line(name: str, text: str, calls: Iterable[tuple[str, str]]) -> str:
    text_and_calls = f" [{name}] said: {_sentence(text)}" if text else ""
    for tool, arguments in calls:
        text_and_calls += f" [{name}] called tool: `{tool}` with arguments: {arguments}."
    return f"For context:{text_and_calls}" if text_and_calls else ""


def _result_line(name: str, tool: str, text: str) -> str:
    if not text:
        return ""
    return f"For context: [{name}] `{tool}` tool returned result: {_sentence(text)}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _arguments(call: ToolCallPart) -> str:
    return json.dumps(call.args_as_dict(), ensure_ascii=False)


def _call_id(note: Note) -> str:
    return note.result_of.id if note.result_of is not None else ""


def _call_json(call: ToolCall) -> Json:
    return [call.id, call.name, call.arguments]


def _call(data: Json) -> ToolCall:
    call_id, name, arguments = cast("list[Json]", data)
    return ToolCall(str(call_id), str(name), dict(cast("dict[str, Json]", arguments)))
