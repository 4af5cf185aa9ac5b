"""The words of tools: for a call, for several, and for one that runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCall:
    """A pending call with edited or completed arguments, as its tool reads them.

    Attributes:
        arguments: In canonical form.
        title: Verb and object, in the tool's words; empty where it has none.
        preview: What will happen; empty where the tool does not say.
    """

    arguments: dict[str, Any]
    title: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWords:
    """The words of a tool for several of its calls that wait on one card.

    Attributes:
        title: For all on the card; empty where it has none.
        rest: For those that wait; empty where it has none.
        largest: Ids of the approvals, the largest first; empty where it does not say.
    """

    title: str = ""
    rest: str = ""
    largest: tuple[str, ...] = ()


class TaskStatus(StrEnum):
    """The state of a tool's call, in Slack's words."""

    RUNNING = "in_progress"
    COMPLETE = "complete"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTask:
    """A call of a tool, as people see that it runs.

    Attributes:
        task_id: Of the call.
        title: The tool's name in words, without arguments.
        status: Whether it has ended, and how.
    """

    task_id: str
    title: str
    status: TaskStatus = TaskStatus.RUNNING
