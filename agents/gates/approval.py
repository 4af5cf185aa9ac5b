"""The approval gate and the review gate: a tool runs only after people have agreed.

A gate keeps whether people have agreed; what it wraps may then ask people itself, at any depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agents.core.calls import ToolOutcome, ToolReturn
from agents.core.codec import Json
from agents.core.infos import (
    ApprovalInfo,
    ApprovalResult,
    CallInfo,
    ReviewEditInfo,
    ReviewEditResult,
)
from agents.gates.base import DEFAULT_RULE, CallGate
from agents.gates.rulings import GateState
from agents.tools.base import Tool
from agents.tools.texts import rejected_text

__all__ = ["DEFAULT_RULE", "Gate", "GateState", "Kind", "approval_gate", "review_edit_gate"]

Kind = Literal["approval", "review"]


@dataclass(frozen=True, slots=True)
class DecisionGate(CallGate):
    """A gate whose question is answered with `ApprovalResult` or `ReviewEditResult`."""

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        match answer:
            case ApprovalResult(approved=True):
                return None
            case ApprovalResult(reason=reason):
                pass
            case ReviewEditResult(disapproved=True, disapprove_reason=reason):
                pass
            case _:
                return None
        return ToolReturn(rejected_text(info.tool_name, reason), ToolOutcome.REJECTED)

    def _wanted(
        self,
        info: CallInfo,  # noqa: ARG002 - see CallGate
        answer: object,
        arguments: dict[str, Json],
    ) -> dict[str, Json]:
        match answer:
            case ReviewEditResult(no_need_to_edit=False, edited_arguments=dict() as edited):
                return self._checked(edited)
            case _:
                return arguments

    def _ask(self, kind: Kind, arguments: dict[str, Json], rule: str, ruling: str = "") -> CallInfo:
        shown = self._shown(arguments, rule, ruling)
        return ApprovalInfo(**shown) if kind == "approval" else ReviewEditInfo(**shown)


@dataclass(frozen=True, slots=True)
class Gate(DecisionGate):
    """A tool that runs only after a person has agreed to the call.

    Attributes:
        kind: Whether people can only approve and reject, or also edit.
        rule: Name of the rule that asks; a part of the digest.
    """

    kind: Kind
    rule: str = DEFAULT_RULE

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return self.kind

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        return self._ask(self.kind, arguments, self.rule)

    def _rule_of(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        # Not the rule that asked: when it has changed since, nothing may run.
        return self.rule


def approval_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Let a tool run only after a person has approved the call; asks with `ApprovalInfo`.

    Args:
        tool: The tool in it; any tool, also one that asks people itself.
        rule: Name of the rule that asks.
    """
    return Gate(tool, "approval", rule)


def review_edit_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Let a tool run only after a person has approved or edited it; asks with `ReviewEditInfo`.

    Args:
        tool: The tool in it; any tool, also one that asks people itself.
        rule: Name of the rule that asks.
    """
    return Gate(tool, "review", rule)
