"""The approval gate and the review gate: a call runs only after people approve it.

A gate stores whether the call was approved. The wrapped tool may then ask people itself, at any
depth.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.gates.answers import declined, edited_in
from agents.gates.base import CallGate, gates_in
from agents.gates.rulings import DEFAULT_RULE, GateState
from agents.policy.base import Ask
from agents.tools.base import Tool

__all__ = ["DEFAULT_RULE", "Gate", "GateState", "Kind", "approval_gate", "review_edit_gate"]

Kind = Literal["approval", "review"]


@dataclass(frozen=True, slots=True)
class DecisionGate(CallGate):
    """A gate whose request is answered with `ApprovalResult` or `ReviewEditResult`."""

    def _declined(self, info: CallInfo, answer: object) -> ToolReturn | None:
        return declined(info, answer)

    def _narrowed(self, info: CallInfo, ask: Ask) -> CallInfo:
        # Only a review has an answer to remove: the edit.
        if ask.kind == "review" or type(info) is not ReviewEditInfo:
            return info
        return ApprovalInfo(**{one.name: getattr(info, one.name) for one in fields(info)})

    @property
    def _defers(self) -> bool:
        # Such an inner gate applies the policy together with its own request.
        return any(gate.always_asks for gate in gates_in(self.tool))

    def _wanted(
        self,
        info: CallInfo,  # noqa: ARG002 - see CallGate
        answer: object,
        arguments: dict[str, Json],
    ) -> dict[str, Json]:
        edited = edited_in(answer)
        return arguments if edited is None else self._checked(edited)

    def _ask(self, kind: Kind, arguments: dict[str, Json], rule: str, ruling: str = "") -> CallInfo:
        shown = self._shown(arguments, rule, ruling)
        return ApprovalInfo(**shown) if kind == "approval" else ReviewEditInfo(**shown)


@dataclass(frozen=True, slots=True)
class Gate(DecisionGate):
    """A tool whose calls run only after approval.

    Attributes:
        kind: Whether approvers can only approve and reject, or also edit.
        rule: Name of the rule; part of the digest.
    """

    kind: Kind
    rule: str = DEFAULT_RULE

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return self.kind

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        return self._ask(self.kind, arguments, self.rule)

    @property
    def always_asks(self) -> bool:
        """See `CallGate`."""
        return True

    def _rule_of(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
        # Not the rule of the request: if the rule has changed since, nothing may run.
        return self.rule


def approval_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Require approval of each call of a tool; requests it with `ApprovalInfo`.

    Args:
        tool: Any tool, including one that asks people itself.
        rule: Name of the rule that requires approval.
    """
    return Gate(tool, "approval", rule)


def review_edit_gate(tool: Tool, *, rule: str = DEFAULT_RULE) -> Tool:
    """Require approval of each call, which approvers may edit.

    Requests approval with `ReviewEditInfo`.

    Args:
        tool: Any tool, including one that asks people itself.
        rule: Name of the rule that requires approval.
    """
    return Gate(tool, "review", rule)
