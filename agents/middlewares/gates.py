"""Gates as middlewares: which tools run only after people have agreed, in one place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from agents.core.errors import AgentConfigError
from agents.gates.approval import DEFAULT_RULE, approval_gate, review_edit_gate
from agents.gates.policy import policy_gate
from agents.middlewares.base import Middleware
from agents.middlewares.matching import ALL, ToolChoice, Tools
from agents.policy.base import TIME_LIMIT, Policy
from agents.policy.checks import check_names, check_tags
from agents.tools.base import Tool


class GateMiddleware(Middleware):
    """Puts a gate around some tools. Made by `approval_middleware` and `review_middleware`.

    Args:
        kind: Name of the gate, as in `ToolSpec.gates`.
        choice: Around which tools.
        gate: Makes the gate.
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
        # "All tools" does not mean that people are asked the same thing twice.
        if self._kind in tool.definition.gates and not self._choice.is_by_name:
            return tool
        return self._gate(tool)


class PolicyMiddleware(Middleware):
    """Has a policy judge each call of each tool. Made by `policy_middleware`.

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
    """Let tools run only after a person has approved each call; see `approval_gate`.

    Args:
        tools: Which; all, when it is left out. A function is asked about each tool.
        except_for: Names of tools that need nobody, such as those that only read.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: No tool is named; or, when the agent is made, a name is that of no tool.
    """
    choice = ToolChoice("approval_middleware", tools, except_for)
    return GateMiddleware("approval", choice, lambda tool: approval_gate(tool, rule=rule))


def review_middleware(
    tools: Tools = ALL, *, except_for: Iterable[str] = (), rule: str = DEFAULT_RULE
) -> Middleware:
    """Let tools run only after a person has approved or edited each call; see `review_edit_gate`.

    Args:
        tools: Which; all, when it is left out. A function is asked about each tool.
        except_for: Names of tools that need nobody, such as those that only read.
        rule: Name of the rule that asks.

    Raises:
        AgentConfigError: No tool is named; or, when the agent is made, a name is that of no tool.
    """
    choice = ToolChoice("review_middleware", tools, except_for)
    return GateMiddleware("review", choice, lambda tool: review_edit_gate(tool, rule=rule))


def policy_middleware(policy: Policy, *, time_limit: float = TIME_LIMIT) -> Middleware:
    """Have a policy judge each call of each tool; see `policy_gate`.

    Gates that a tool has of its own stay: what the policy allows, they may still ask about.

    Args:
        policy: Asked once for each call; see `Policy.evaluate`. The tools that it names must be
            tools of the agent, the tags those of some of them, and the arguments those of each
            tool that a rule is about.
        time_limit: How long it may take for a call, in seconds; more than 0.

    Raises:
        AgentConfigError: It is no policy, or has no time; or, when the agent is made, it names a
            tool, a tag or an argument that is not there.
    """
    if not callable(getattr(policy, "evaluate", None)):
        raise AgentConfigError(f"{policy!r} is no policy: it has no method `evaluate`")
    if not time_limit > 0:
        raise AgentConfigError(
            f"a policy that has {time_limit} seconds would deny all calls; give it more than 0"
        )
    return PolicyMiddleware(policy, time_limit)
