"""Gates whose requests are approvals and reviews: in code, by a policy, by the application.

A gate stores whether the call was approved. The wrapped tool may then ask people itself, at any
depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast

from agents.core.asking.infos import ApprovalInfo, CallInfo, ReviewEditInfo
from agents.core.codec import Json
from agents.core.scope import current_scope
from agents.core.tools import Tool, ToolSpec
from agents.gates.base import DEFAULT_RULE, CallGate, gates_in
from agents.gates.rulings import GateState
from agents.policy.base import TIME_LIMIT, Allow, Ask, Deny, Policy, ruling_of
from agents.policy.checks import check_policy, check_tool
from agents.policy.house import HOUSE_SLOT, ApplicationPolicy, House

Kind = Literal["approval", "review"]


@dataclass(frozen=True, slots=True)
class Gate(CallGate):
    """A tool whose calls run only after approval.

    Attributes:
        kind: Whether approvers can only approve and reject, or also edit.
        rule: Name of the rule; part of the digest.
    """

    kind: Kind
    rule: str = DEFAULT_RULE
    always_asks = True

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return self.kind

    async def _question(self, arguments: dict[str, Json]) -> CallInfo:
        shown = self._shown(arguments, self.rule)
        return ApprovalInfo(**shown) if self.kind == "approval" else ReviewEditInfo(**shown)

    def _decision_rule(self, info: CallInfo | None) -> str:  # noqa: ARG002 - see CallGate
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


@dataclass(frozen=True, slots=True)
class _RuledGate(CallGate):
    """A gate that asks only if a policy says so."""

    asks_people = False  # the policy decides

    @property
    def _defers(self) -> bool:
        # An inner gate that always asks applies the policy together with its own request.
        return any(gate.always_asks for gate in gates_in(self.tool))

    def _decision_rule(self, info: CallInfo | None) -> str:
        return info.rule if info else f"{self.gate_name}: allowed"


@dataclass(frozen=True, slots=True)
class PolicyGate(_RuledGate):
    """A tool whose calls a policy evaluates.

    The ruling is stored with the interrupt. If a person edits the arguments, in this gate or an
    inner one, the policy evaluates the edited call. If it denies, the edit is refused and the
    request stays pending. If it asks under different terms, approval under these terms is required.

    Attributes:
        policy: The policy.
        time_limit: Maximum time for one call, in seconds.
    """

    policy: Policy
    time_limit: float = TIME_LIMIT
    gate_name = "policy"

    async def _question(self, arguments: dict[str, Json]) -> Ask | Deny | None:
        call = self._policy_call(arguments)
        ruling = await ruling_of(self.policy, call, time_limit=self.time_limit)
        return None if isinstance(ruling, Allow) else ruling


def policy_gate(tool: Tool, policy: Policy, *, time_limit: float = TIME_LIMIT) -> Tool:
    """Evaluate a policy for each call of a tool.

    The start of an allowed call is recorded like that of an approved one. After a crash, the call
    does not run again without asking people, unless the tool is idempotent. If the tool has a
    completing gate, the policy's gate goes inside it, where it sees all arguments.

    Args:
        tool: Any tool, including one that asks people itself.
        policy: Evaluated once per call; see `Policy.evaluate`.
        time_limit: Maximum time for one call, in seconds.

    Raises:
        AgentConfigError: `policy` is not a policy, the time limit is not positive, or the policy
            refers to an argument or a tag that the tool does not have.
    """
    check_policy(policy, time_limit)
    if isinstance(tool, CallGate) and tool.completes_arguments:
        return replace(tool, tool=policy_gate(tool.tool, policy, time_limit=time_limit))
    check_tool(policy, tool.definition)
    return PolicyGate(tool, policy, time_limit)


@dataclass(frozen=True, slots=True)
class HouseGate(_RuledGate):
    """A tool whose calls the application's policy evaluates, if no gate in code asks.

    The run adds this gate when a call begins. It is not part of the tool's definition.

    Attributes:
        in_code: Whether the tool has gates in code, none of which had to ask.
    """

    in_code: bool
    gate_name = "house"
    slot = HOUSE_SLOT  # inner gates number their slots without this gate

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's own definition."""
        return self.tool.definition

    async def _question(self, arguments: dict[str, Json]) -> None:  # noqa: ARG002 - see CallGate
        return None

    def _code(self, asked: object) -> Allow | None:  # noqa: ARG002 - see CallGate
        return Allow() if self.in_code else None

    def _guarded(self, state: GateState) -> Tool:  # noqa: ARG002 - see CallGate
        return self.tool


def house(policy: ApplicationPolicy) -> House:
    """Prepare an application's policy for a run."""

    def guard(tool: Tool, *, in_code: bool = False) -> Tool:
        scope = current_scope("a house")
        has_gates = any(True for _ in gates_in(tool))
        # The policy itself may have requested approval of this call already.
        waits = scope.run.waits_at(scope.address, HOUSE_SLOT)
        is_free = policy.allows_ungated and not in_code and not waits
        return tool if has_gates or is_free else HouseGate(tool, in_code=in_code)

    return House(policy, guard)


def pile_of(tool: object, slot: str) -> Iterator[CallGate]:
    """Yield the gates of a declared tool in the order of a call, outermost first.

    The policy's own gate is included only for its own slot.
    """
    inner, in_code = tool, False
    for gate in gates_in(tool):
        yield gate
        inner, in_code = gate.tool, in_code or not gate.fills_in
    if slot == HOUSE_SLOT:
        yield HouseGate(cast("Tool", inner), in_code=in_code)
