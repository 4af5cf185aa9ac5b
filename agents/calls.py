"""Tool calls and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from agents.codec import Json, register


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


@register("countersign.transfer/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Another agent goes on in place of this one. Stored: version 1, must stay readable.

    Attributes:
        agent_name: Which.
    """

    agent_name: str


@register("countersign.exit/1")
@dataclass(frozen=True, slots=True)
class Exit:
    """This agent and all workflows around it end. Stored: version 1, must stay readable."""


@register("countersign.break_loop/1")
@dataclass(frozen=True, slots=True)
class BreakLoop:
    """The innermost loop around this agent ends. Stored: version 1, must stay readable."""


Action: TypeAlias = Transfer | Exit | BreakLoop
"""What an agent, or a tool of it, wants to happen next."""


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """What a tool gives back when it has more to say than a text.

    Attributes:
        text: For the model.
        outcome: What came of the call.
        action: What shall happen when all calls of the answer are finished; only when the call
            ran. None goes on with the model.
    """

    text: str
    outcome: ToolOutcome = ToolOutcome.RAN
    action: Action | None = None
