"""The policy gate: a policy judges each call, and people are asked when it says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from agents.calls import ToolOutcome, ToolReturn
from agents.codec import Json
from agents.policy.base import TIME_LIMIT, Allow, Ask, Deny, Policy, ruling_of
from agents.policy.checks import check_tool
from agents.tools.asking import CallGate, GateState, judged_by, outer_objection
from agents.tools.base import Tool
from agents.tools.gates import DecisionGate
from agents.tools.infos import CallInfo
from agents.tools.texts import denied_text

_ALLOWED = "policy: allowed"
"""What the digest of a call names as its rule when nobody was asked."""


@dataclass(frozen=True, slots=True)
class PolicyGate(DecisionGate):
    """A tool whose calls a policy judges.

    The ruling is frozen with the interrupt. When a person edits the arguments, here or in a gate
    inside of this one, the policy is asked about the edited call: what it denies, or would ask
    about under another rule, is refused, and the person can answer again.

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

    async def _question(self, arguments: dict[str, Json]) -> CallInfo | ToolReturn | None:
        match await self._ruling(arguments):
            case Allow():
                return None
            case Deny(reason=reason):
                return ToolReturn(denied_text(self._name, reason), ToolOutcome.REFUSED)
            case Ask() as ask:
                info = self._ask(ask.kind, arguments, ask.rule)
                return replace(
                    info,
                    title=ask.title or info.title,
                    reason=ask.reason,
                    approvers=ask.approvers,
                    expires_in=ask.expires_in,
                    remind_in=ask.remind_in,
                    escalate_in=ask.escalate_in,
                    backups=ask.backups,
                )

    def _rule_of(self, info: CallInfo | None) -> str:
        return info.rule if info else _ALLOWED

    async def _inner(self, state: GateState, arguments: dict[str, Json]) -> str | ToolReturn:
        with judged_by(partial(self._judge, state.info)):
            return await self.tool.call(arguments)

    async def _objection(self, info: CallInfo, arguments: dict[str, Json]) -> str:
        return await self._judge(info, arguments) or await outer_objection(arguments)

    async def _judge(self, info: CallInfo | None, arguments: dict[str, Json]) -> str:
        """Say what the policy has against other arguments than those it has judged."""
        match await self._ruling(arguments):
            case Allow():
                return ""
            case Deny(reason=reason):
                return f"the rules do not allow the call with these arguments: {reason}"
            case Ask(rule=rule) if info is not None and rule == info.rule:
                return ""
            case Ask(rule=rule):
                return f"with these arguments another rule asks ({rule}): reject, and ask anew"

    async def _ruling(self, arguments: dict[str, Json]) -> Allow | Deny | Ask:
        return await ruling_of(
            self.policy, self._policy_call(arguments), time_limit=self.time_limit
        )


def guard(tool: Tool, policy: Policy, *, time_limit: float = TIME_LIMIT) -> Tool:
    """Have a policy judge each call of a tool.

    A call that it allows is noted as started, like one that people agreed to: after a crash it is
    not run again without a question, unless the tool is idempotent. Around a gate whose people
    complete the arguments, the policy is put inside of it, where it sees all of them.

    Args:
        tool: What is guarded; any tool, also one that asks people itself.
        policy: Asked once for each call; see `Policy.evaluate`.
        time_limit: How long it may take for a call, in seconds.

    Raises:
        AgentConfigError: The policy names an argument, or a tag, that the tool does not have.
    """
    if isinstance(tool, CallGate) and tool.completes_arguments:
        return replace(tool, tool=guard(tool.tool, policy, time_limit=time_limit))
    check_tool(policy, tool.definition)
    return PolicyGate(tool, policy, time_limit)


policy_gate = guard
"""The same, named like the other gates."""
