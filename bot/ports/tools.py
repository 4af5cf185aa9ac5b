"""The texts of tools: for a pending call, for a batch of calls, and for a running call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A pending call with edited or completed arguments.

    Attributes:
        arguments: The arguments. If the tool is known, it has validated them and filled in
            defaults.
        title: The tool's title for the call: verb and object; empty if the tool has no title.
        preview: The effect of the call; empty if the tool has no preview.
    """

    arguments: dict[str, Any]
    title: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWords:
    """A tool's texts for a batch: several of its calls on one card.

    Attributes:
        title: Title of all calls on the card; empty if the tool has none.
        rest: Title of the pending calls; empty if the tool has none.
        largest: Approval ids, the largest call first; empty if the tool has no order.
    """

    title: str = ""
    rest: str = ""
    largest: tuple[str, ...] = ()


class TaskStatus(StrEnum):
    """The state of a running call. The values are Slack's."""

    RUNNING = "in_progress"
    COMPLETE = "complete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """A running or finished call in a thread's task message.

    Attributes:
        task_id: Id of the task within its message.
        title: The tool's name in words, without arguments.
        status: The state of the call.
    """

    task_id: str
    title: str
    status: TaskStatus = TaskStatus.RUNNING
