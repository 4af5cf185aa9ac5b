"""Tool calls and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agents.codec import Json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that the model wants.

    Attributes:
        id: Unique among the calls of one agent run; never empty.
        name: Of the tool; there may be no such tool.
        arguments: As the model wrote them; nothing has checked them.
    """

    id: str
    name: str
    arguments: dict[str, Json]


class ToolOutcome(StrEnum):
    """What came of a tool call. Stored: version 1, must stay readable."""

    RAN = "ran"
    REJECTED = "rejected"  # a person said no
    EXPIRED = "expired"  # nobody answered in time
    CANCELLED = "cancelled"  # the question was taken back
    FAILED = "failed"  # it ran and raised an error, or nobody knows whether it ran
    ANSWERED = "answered"  # it asked people, and they answered
    REFUSED = "refused"  # no such tool, or wrong arguments: nothing ran


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """What a tool gives back when it has more to say than a text.

    Attributes:
        text: For the model.
        outcome: What came of the call.
    """

    text: str
    outcome: ToolOutcome = ToolOutcome.RAN
