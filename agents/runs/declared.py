"""Declarations of an agent: tools, nested agents, approvers and policy rules."""

from __future__ import annotations

from collections.abc import Iterator

from agents.agent import Agent
from agents.core.errors import AgentConfigError
from agents.core.tools import ToolSpec
from agents.gates.approval import PolicyGate
from agents.policy.base import UNNAMED
from agents.policy.checks import check_rule_names, people_of, rule_names
from agents.runs.topology import is_described, is_holder


def people_named(agent: Agent) -> tuple[str, ...]:
    """Return all people that policies on an agent's declared tools may ask.

    Includes wrapped tools, in any order of wrappers. Tools that the code of an agent or node calls
    itself are not found.
    """
    return people_of(*_policies(agent))


def check_rules(agent: Agent) -> None:
    """Refuse policy rules in code that the application's policy could not tell apart."""
    for policy in _policies(agent):
        names = rule_names([policy])
        if UNNAMED in names:
            raise AgentConfigError(
                "a policy in code asks people without a name for its rule, and cards, audit and "
                "the application's policy go by it; give one: `Ask(rule=…)`"
            )
        check_rule_names(names)


def _policies(agent: Agent) -> Iterator[object]:
    """Yield the policies in code on an agent's declared tools."""
    for part, _ in _parts(agent):
        if isinstance(part, PolicyGate):
            yield part.policy


def tools_declared(agent: Agent) -> tuple[ToolSpec, ...]:
    """Return the definitions of all tools that an agent declares, with their gates.

    Finds the same tools as `people_named`. Different tools may have the same name.
    """
    specs: list[ToolSpec] = []
    for part, is_wrapped in _parts(agent):
        spec = getattr(part, "definition", None)
        if isinstance(spec, ToolSpec) and not is_wrapped and spec not in specs:
            specs.append(spec)
    return tuple(specs)


def agents_declared(agent: Agent) -> tuple[str, ...]:
    """Return the names of an agent and all nested agents that `people_named` visits."""
    names = [str(getattr(part, "name", "")) for part, _ in _parts(agent) if hasattr(part, "run")]
    return tuple(dict.fromkeys(name for name in names if name))


def _parts(agent: Agent) -> Iterator[tuple[object, bool]]:
    """Yield each part of an agent once, and whether it is wrapped as a tool."""
    # Agents can contain each other.
    seen: set[tuple[int, bool]] = set()
    waiting: list[tuple[object, bool]] = [(agent, False)]
    while waiting:
        part, is_wrapped = waiting.pop()
        if part is None or (id(part), is_wrapped) in seen:
            continue
        seen.add((id(part), is_wrapped))
        yield part, is_wrapped
        if is_described(part):
            waiting += [(component.inner, False) for component in part.components().values()]
        if is_holder(part):
            waiting += [(held, False) for held in part.held()]
        waiting.append((getattr(part, "tool", None), True))  # a wrapper of a tool calls it as one
