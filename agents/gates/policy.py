"""The policy gate: a policy evaluates each call and can require approval."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.gates.approval import DecisionGate
from agents.gates.base import CallGate
from agents.policy.base import TIME_LIMIT, Allow, Ask, Deny, Policy, ruling_of
from agents.policy.checks import check_tool
from agents.tools.base import Tool

_ALLOWED = "policy: allowed"
"""Rule name in the digest of a call that the policy allowed."""


@dataclass(frozen=True, slots=True)
class PolicyGate(DecisionGate):
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

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return "policy"

    @property
    def asks_people(self) -> bool:
        """See `CallGate`: the policy decides."""
        return False

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | Deny | None:
        match await self._ruling(arguments):
            case Allow():
                return None
            case Deny() as denied:
                return denied
            case Ask() as ask:
                return self._asking(ask, arguments)

    def _rule_of(self, info: CallInfo | None) -> str:
        return info.rule if info else _ALLOWED

    async def _ruling(self, arguments: dict[str, Json]) -> Allow | Deny | Ask:
        return await ruling_of(
            self.policy, self._policy_call(arguments), time_limit=self.time_limit
        )


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
        AgentConfigError: The policy refers to an argument or a tag that the tool does not have.
    """
    if isinstance(tool, CallGate) and tool.completes_arguments:
        return replace(tool, tool=policy_gate(tool.tool, policy, time_limit=time_limit))
    check_tool(policy, tool.definition)
    return PolicyGate(tool, policy, time_limit)


guard = policy_gate
"""Older name of `policy_gate`, kept for compatibility."""
