"""The policy gate: a policy judges each call, and people are asked when it says so."""

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
"""The rule named in a call's digest when nobody was asked."""


@dataclass(frozen=True, slots=True)
class PolicyGate(DecisionGate):
    """A tool whose calls a policy judges.

    The ruling is frozen with the interrupt. When a person edits the arguments, here or in a gate
    inside of this one, the policy is asked about the edited call: what it denies is refused, and
    the person can answer again; what it asks about under another ruling, in whatever part, runs
    only when people have agreed under that one.

    Attributes:
        policy: The policy.
        time_limit: How long it may take for a call, in seconds.
    """

    policy: Policy
    time_limit: float = TIME_LIMIT

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return "policy"

    @property
    def asks_people(self) -> bool:
        """See `CallGate`: the policy says whether they do."""
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
    """Have a policy judge each call of a tool.

    A call that it allows is noted as started, like one that people agreed to: after a crash it is
    not run again without a question, unless the tool is idempotent. Around a gate whose people
    complete the arguments, the policy is put inside of it, where it sees all of them.

    Args:
        tool: The tool in it; any tool, also one that asks people itself.
        policy: Asked once for each call; see `Policy.evaluate`.
        time_limit: How long it may take for a call, in seconds.

    Raises:
        AgentConfigError: The policy names an argument, or a tag, that the tool does not have.
    """
    if isinstance(tool, CallGate) and tool.completes_arguments:
        return replace(tool, tool=policy_gate(tool.tool, policy, time_limit=time_limit))
    check_tool(policy, tool.definition)
    return PolicyGate(tool, policy, time_limit)


guard = policy_gate
"""An older name of `policy_gate`, kept for programs that use it."""
