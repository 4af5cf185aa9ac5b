"""Gates as middlewares: which tools run only after people have agreed, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agents.middlewares.base import Middleware
from agents.middlewares.matching import ALL, Choice, Tools
from agents.tools.base import Tool
from agents.tools.gates import DEFAULT_RULE, approval_gate, review_edit_gate


class GateMiddleware(Middleware):
    """Puts a gate around some tools. Made by `approval_middleware` and `review_middleware`.

    Args:
        kind: Name of the gate, as in `ToolSpec.gates`.
        choice: Around which tools.
        gate: Makes the gate.
    """

    def __init__(self, kind: str, choice: Choice, gate: Callable[[Tool], Tool]) -> None:
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
    choice = Choice("approval_middleware", tools, except_for)
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
    choice = Choice("review_middleware", tools, except_for)
    return GateMiddleware("review", choice, lambda tool: review_edit_gate(tool, rule=rule))
