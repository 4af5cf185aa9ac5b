"""Middlewares that put gates around tools: approval, review, or a policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from agents.core.tools import Tool
from agents.gates.approval import approval_gate, policy_gate, review_edit_gate
from agents.gates.base import DEFAULT_RULE
from agents.middlewares.base import Middleware
from agents.middlewares.tools import ALL, ToolChoice, Tools
from agents.policy.base import TIME_LIMIT, Policy
from agents.policy.checks import check_names, check_policy, check_tags


class GateMiddleware(Middleware):
    """Puts a gate around chosen tools. See `approval_middleware`, `review_middleware`.

    Args:
        kind: Name of the gate, as in `ToolSpec.gates`.
        choice: The tools to wrap.
        gate: Wraps a tool in the gate.
    """

    def __init__(self, kind: str, choice: ToolChoice, gate: Callable[[Tool], Tool]) -> None:
        self._kind = kind
        self._choice = choice
        self._gate = gate

    @property
    def name(self) -> str:
        """See `Middleware.name`."""
        return self._kind

    def check_tools(self, names: Iterable[str]) -> None:
        """See `Middleware.check_tools`."""
        self._choice.check(names)

    def wrap_tool(self, tool: Tool) -> Tool:
        """See `Middleware.wrap_tool`."""
        if not self._choice.has(tool.definition):
            return tool
        # `*` must not add a second gate of the same kind: people would be asked twice.
        if self._kind in tool.definition.gates and not self._choice.is_by_name:
            return tool
        return self._gate(tool)


class PolicyMiddleware(Middleware):
    """Puts a policy gate around each tool. Made by `policy_middleware`.

    Args:
        policy: See `policy_middleware`.
        time_limit: See `policy_middleware`.
    """

    def __init__(self, policy: Policy, time_limit: float) -> None:
        self._policy = policy
        self._time_limit = time_limit

    @property
    def name(self) -> str:
        """See `Middleware.name`."""
        return "policy"

    def check_tools(self, names: Collection[str]) -> None:
        """See `Middleware.check_tools`."""
        check_names(self._policy, names)

    def check_tags(self, tags: Collection[str]) -> None:
        """See `Middleware.check_tags`."""
        check_tags(self._policy, tags)

    def wrap_tool(self, tool: Tool) -> Tool:
        """See `Middleware.wrap_tool`."""
        return policy_gate(tool, self._policy, time_limit=self._time_limit)


def approval_middleware(
    tools: Tools = ALL, *, except_for: Iterable[str] = (), rule: str = DEFAULT_RULE
) -> Middleware:
    """Require a person's approval for each call of the tools; see `approval_gate`.

    Args:
        tools: The tools to guard; all by default. A function is called with each tool.
        except_for: Names of tools that need no approval, such as read-only tools.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: No tool is named; or, when the agent is created, a tool is unknown.
    """
    choice = ToolChoice("approval_middleware", tools, except_for)
    return GateMiddleware("approval", choice, lambda tool: approval_gate(tool, rule=rule))


def review_middleware(
    tools: Tools = ALL, *, except_for: Iterable[str] = (), rule: str = DEFAULT_RULE
) -> Middleware:
    """Require a person to approve or edit each call; see `review_edit_gate`.

    Args:
        tools: The tools to guard; all by default. A function is called with each tool.
        except_for: Names of tools that need no approval, such as read-only tools.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: No tool is named; or, when the agent is created, a tool is unknown.
    """
    choice = ToolChoice("review_middleware", tools, except_for)
    return GateMiddleware("review", choice, lambda tool: review_edit_gate(tool, rule=rule))


def policy_middleware(policy: Policy, *, time_limit: float = TIME_LIMIT) -> Middleware:
    """Evaluate a policy for each call of each tool; see `policy_gate`.

    Gates that a tool already has stay: they may require approval of a call that the policy allows.

    Args:
        policy: Evaluated once per call; see `Policy.evaluate`. The agent must have the tools that
            the policy names, a tool with each of its tags, and the arguments that its rules use.
        time_limit: Longest time to evaluate one call, in seconds; more than 0.

    Raises:
        AgentConfigError: `policy` is not a policy, or the time limit is not positive. Or, when the
            agent is created, the policy names an unknown tool, tag or argument.
    """
    check_policy(policy, time_limit)
    return PolicyMiddleware(policy, time_limit)
