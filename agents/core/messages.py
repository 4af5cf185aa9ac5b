"""Store and load model messages, and repair malformed model answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from threading import Lock
from typing import Any, Literal, TypeVar, cast

from cachetools import LRUCache
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from agents.core.calls import ToolCall
from agents.core.checkpoint import LOG_VERSION
from agents.core.codec import (
    Json,
    check_version,
    from_text,
    read_back,
    to_text,
    types,
    well_formed,
)
from agents.core.errors import CheckpointDecodeError, UnstorableValueError

__all__ = ["user_message"]

_Message = TypeVar("_Message", ModelRequest, ModelResponse)

_DEEPEST = 100
"""Number of levels that call arguments may have. Deeper messages cannot be stored."""

_INVALID = "INVALID_JSON"  # pydantic-ai uses the same key


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A tool call with the problem that was found when it was parsed.

    Attributes:
        problem: Empty if the arguments are a JSON object.
    """

    call: ToolCall
    problem: str = ""


def dump_messages(messages: Sequence[ModelMessage]) -> list[Json]:
    """Write messages as compact JSON data, without empty fields."""
    if not messages:
        return []
    try:
        data = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", exclude_none=True)
    except (TypeError, ValueError) as error:
        raise _unstorable(error) from error
    for message in data:
        # Most usage fields are zero, and every answer of a model has all of them.
        if "usage" in message:
            message["usage"] = {key: value for key, value in message["usage"].items() if value}
    return cast("list[Json]", data)


def dump_new(messages: Sequence[ModelMessage]) -> list[Json]:
    """Write new messages as JSON data, and check that they can be read back."""
    data = dump_messages(messages)
    try:
        load_messages(data)
    except CheckpointDecodeError as error:
        raise _unstorable(error) from error
    return data


def load_messages(data: Json) -> list[ModelMessage]:
    """Read what `dump_messages` wrote."""
    if data == []:
        return []
    try:
        return ModelMessagesTypeAdapter.validate_python(data)
    except ValidationError as error:
        raise CheckpointDecodeError(f"{error.error_count()} faults in stored messages") from error


def log_text(messages: Sequence[ModelMessage]) -> str:
    """Write a turn's entry for the message log. Stored: version 1, must stay readable."""
    text = to_text({"schema": LOG_VERSION, "messages": dump_messages(messages)})
    read_back(text, lambda entry: _parsed([entry]))
    return text


def read_log(entries: Sequence[str], *, log_id: str = "") -> list[ModelMessage]:
    """Read entries of the message log, from the first on; cached by the id of the log."""
    with _lock:
        known = _logs.get(log_id, _Log())
    size = min(len(entries), len(known.entries))
    # A log can be deleted and begun again, so the cached entries may be outdated.
    if tuple(entries[:size]) != known.entries[:size]:
        size = 0
    turns = known.turns[:size] + tuple(_parsed(entries[size:]))
    if log_id and len(entries) > size:
        with _lock:
            _logs[log_id] = _Log(tuple(entries), turns)
    return [message for turn in turns for message in turn]


@dataclass(frozen=True, slots=True)
class _Log:
    """The entries of a message log that were read last, and their messages."""

    entries: tuple[str, ...] = ()
    turns: tuple[tuple[ModelMessage, ...], ...] = ()

    @property
    def size(self) -> int:
        return min(sum(map(len, self.entries)), _LOGS_SIZE)


# Entries never change, and parsing them is the largest cost of a long thread.
_LOGS_SIZE = 4_000_000
_logs: LRUCache[str, _Log] = LRUCache(_LOGS_SIZE, getsizeof=lambda log: log.size)
_lock = Lock()

_TURNS: TypeAdapter[list[list[ModelMessage]]] = TypeAdapter(
    list[list[ModelMessage]],
    config=ConfigDict(defer_build=True, ser_json_bytes="base64", val_json_bytes="base64"),
)
"""Like `ModelMessagesTypeAdapter`, for several turns."""


def _parsed(entries: Sequence[str]) -> list[tuple[ModelMessage, ...]]:
    """Return the messages of each entry. Well-formed entries are parsed in one call."""
    start = f'{{"schema":{LOG_VERSION},"messages":'
    if entries and all(entry.startswith(start) and entry.endswith("}") for entry in entries):
        # Joined as text: one call of the parser is much faster than one per entry.
        joined = ",".join(entry[len(start) : -1] for entry in entries)
        # On any fault, parse one by one, which raises an error about the right entry.
        with contextlib.suppress(ValidationError):
            turns = _TURNS.validate_json(f"[{joined}]")
            if len(turns) == len(entries):
                return [tuple(turn) for turn in turns]
    return [_turn(entry) for entry in entries]


def _turn(entry: str) -> tuple[ModelMessage, ...]:
    data = from_text(entry)
    check_version(data, LOG_VERSION)
    return tuple(load_messages(data.get("messages")))


def user_message(*texts: str) -> ModelRequest:
    """Make a message from a person to an agent."""
    return ModelRequest(parts=[UserPromptPart(text) for text in texts])


Cut = Literal["", "length", "unknown"]
"""Why an answer is incomplete: it reached a limit, or the connection ended."""

_TELLING = frozenset({"openai", "azure", "anthropic", "google", "google-cloud", "bedrock"})
"""Providers that always report why an answer ends."""


def cut_of(response: ModelResponse) -> Cut:
    """Return why an answer is incomplete; empty if it is complete or unknown."""
    if response.finish_reason == "length":
        return "length"
    is_broken = response.finish_reason is None and response.provider_name in _TELLING
    return "unknown" if is_broken else ""


def text_of(response: ModelResponse) -> str:
    """Return the text of a model's answer, without its tool calls."""
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    return "\n\n".join(text for text in texts if text)


def repaired(response: ModelResponse, taken: Iterable[str]) -> ModelResponse:
    """Repair an answer so that it can be stored and sent again.

    Each tool call gets a unique id and a JSON object as arguments. Halves of surrogate pairs are
    repaired in all texts.
    """
    ids = set(taken)
    parts = [_repaired(part, ids) for part in response.parts]
    return replace(response, parts=parts)


def call_ids(messages: Iterable[ModelMessage]) -> set[str]:
    """Return the ids of all tool calls in the messages."""
    return {
        part.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }


def planned_calls(response: ModelResponse) -> list[PlannedCall]:
    """Return the tool calls of a repaired answer, in order."""
    return [_planned(part) for part in response.parts if isinstance(part, ToolCallPart)]


def _unstorable(error: Exception) -> UnstorableValueError:
    return UnstorableValueError("ModelMessage", f"some could not be read again: {error}")


def _planned(part: ToolCallPart) -> PlannedCall:
    arguments = cast("dict[str, Json]", part.args)
    if len(arguments) == 1 and _INVALID in arguments:
        problem = f"its arguments are not a JSON object of at most {_DEEPEST} levels"
        return PlannedCall(ToolCall(part.tool_call_id, part.tool_name, {}), problem)
    return PlannedCall(ToolCall(part.tool_call_id, part.tool_name, arguments))


def _repaired(part: ModelResponsePart, ids: set[str]) -> ModelResponsePart:
    part = _readable(part)
    if not isinstance(part, ToolCallPart):
        return part
    # Models may repeat ids or send none, but results are matched by id.
    base = part.tool_call_id or "call"
    name, number = base, 1
    while name in ids:
        number += 1
        name = f"{base}-{number}"
    ids.add(name)
    args: Any = _well_formed(_arguments(part.args))
    return replace(part, tool_call_id=name, args=args)


def _readable(part: ModelResponsePart) -> ModelResponsePart:
    """Repair the texts of a part, including names and ids."""
    changed: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.init and isinstance(value, str) and well_formed(value) != value:
            changed[field.name] = well_formed(value)
    return replace(part, **changed) if changed else part


def _well_formed(value: Json) -> Json:
    """Repair all texts in JSON data."""
    match value:
        case str():
            return well_formed(value)
        case list():
            return [_well_formed(item) for item in value]
        case dict():
            return {well_formed(key): _well_formed(item) for key, item in value.items()}
        case _:
            return value


def _arguments(args: object) -> dict[str, Json]:
    try:
        text = args if isinstance(args, str) else json.dumps(args or {}, allow_nan=False)
        # Python's parser accepts NaN and Infinity, which are not JSON.
        arguments = json.loads(text or "{}", parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError):
        return {_INVALID: _as_text(args)}
    is_fine = isinstance(arguments, dict) and not _is_deeper(arguments, _DEEPEST)
    return cast("dict[str, Json]", arguments) if is_fine else {_INVALID: _as_text(args)}


def _is_deeper(value: Json, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    below = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(item, levels - 1) for item in below)


def _as_text(args: object) -> str:
    try:
        return str(args)
    except (ValueError, RecursionError) as error:  # too many digits, or too deeply nested
        return f"unreadable: {error}"


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _register_messages() -> None:
    """Register messages as storable values, for graph state and session values."""

    def write(message: ModelMessage) -> object:
        return dump_messages([message])[0]

    types.add("pydantic_ai.request/1", ModelRequest, write, _reader(ModelRequest), compare=False)
    types.add("pydantic_ai.response/1", ModelResponse, write, _reader(ModelResponse), compare=False)


def _reader(kind: type[_Message]) -> Callable[[Json], _Message]:
    def read(data: Json) -> _Message:
        (message,) = load_messages([data])
        if not isinstance(message, kind):
            raise TypeError(
                f"a {kind.__name__} was stored, and a {type(message).__name__} is there"
            )
        return message

    return read


_register_messages()
