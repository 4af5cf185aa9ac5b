"""Tool calls, their results, and the actions that follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import pydantic
from pydantic_ai.messages import (
    BinaryContent,
    MultiModalContent,
    UploadedFile,
    is_multi_modal_content,
)

from agents.core.codec import Json, register
from agents.core.errors import CheckpointDecodeError, ToolError, UnstorableValueError
from agents.core.observers import ToolOutcome

__all__ = ["Action", "BreakLoop", "Exit", "ToolCall", "ToolReturn", "Transfer"]

MAX_FILE_BYTES = 1_000_000
"""Maximum size of all files of one tool result, in bytes."""


Risk = Literal["low", "medium", "high", "critical"]
"""The harm that a tool call can do."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model requests.

    Attributes:
        id: Unique among the calls of one agent run; never empty.
        name: Name of the tool. The model may name a tool that does not exist.
        arguments: Arguments as the model wrote them, not validated.
    """

    id: str
    name: str
    arguments: dict[str, Json]


@register("countersign.transfer/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Another agent continues in place of this one.

    Stored: version 1, must stay readable.
    """

    agent_name: str


@register("countersign.exit/1")
@dataclass(frozen=True, slots=True)
class Exit:
    """Ends this agent and all workflows around it.

    Stored: version 1, must stay readable.
    """


@register("countersign.break_loop/1")
@dataclass(frozen=True, slots=True)
class BreakLoop:
    """Ends the innermost loop around this agent.

    Stored: version 1, must stay readable.
    """


Action: TypeAlias = Transfer | Exit | BreakLoop
"""The next step that an agent or a tool requests."""


File: TypeAlias = MultiModalContent
"""A file for the model, of a type of pydantic-ai.

`BinaryContent`, or the URL of an image, a document, a sound or a video (`ImageUrl`, …).
"""

_FILES: pydantic.TypeAdapter[list[File]] = pydantic.TypeAdapter(
    list[File],
    config=pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", defer_build=True),
)


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """A tool's result with an outcome, a text and files.

    Attributes:
        text: Text for the model.
        outcome: Outcome of the call.
        action: What happens after all calls of the model's answer have finished. Only allowed if
            the call ran. None continues with the model.
        files: Files for the model; at most `MAX_FILE_BYTES` together.
        said: The tool's own text for people, if `text` contains more. The model does not see it.

    Raises:
        ToolError: `text` is not a string, or `files` are too large or have a wrong type.
    """

    text: str
    outcome: ToolOutcome = ToolOutcome.RAN
    action: Action | None = None
    files: tuple[File, ...] = ()
    said: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ToolError(f"the text of a result is a text, not a {type(self.text).__name__}")
        for file in self.files:
            if not is_multi_modal_content(file):
                raise ToolError(f"a result may have files, not a {type(file).__name__}")
        size = sum(map(_size, self.files))
        if size > MAX_FILE_BYTES:
            raise ToolError(
                f"the files of a result have {size:,} bytes, and may have {MAX_FILE_BYTES:,} "
                "together; make them smaller, or give a URL"
            )


def _size(file: File) -> int:
    """Return the size in bytes; of a URL, its length, because a data URL is the file."""
    match file:
        case BinaryContent():
            return len(file.data)
        case UploadedFile():
            return len(file.file_id)
        case _:
            return len(file.url)


def dump_files(files: tuple[File, ...]) -> Json:
    """Write files as JSON data. Stored: version 1, must stay readable."""
    try:
        data = cast("Json", _FILES.dump_python(list(files), mode="json", exclude_none=True))
        load_files(data)
    except (TypeError, ValueError, CheckpointDecodeError) as error:
        raise UnstorableValueError("File", f"it could not be read again: {error}") from error
    return data


def load_files(data: Json) -> tuple[File, ...]:
    """Read what `dump_files` wrote."""
    try:
        return tuple(_FILES.validate_python(data))
    except pydantic.ValidationError as error:
        raise CheckpointDecodeError(f"{error.error_count()} faults in stored files") from error
