"""Selection of the tools that a middleware applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from agents.core.errors import AgentConfigError
from agents.tools.base import ToolSpec

Tools: TypeAlias = str | Iterable[str] | Callable[[ToolSpec], bool]
"""A name, several names, `*` for all tools, or a function that tests each tool."""

ALL = "*"


class ToolChoice:
    """A selection of an agent's tools.

    Raises:
        AgentConfigError: The selection is empty.
    """

    def __init__(self, owner: str, tools: Tools, except_for: Iterable[str] = ()) -> None:
        self._owner = owner
        self._rule = tools if callable(tools) else None
        self._names = frozenset(() if callable(tools) else _listed(tools))
        self._without = frozenset(_listed(except_for))
        if self._rule is None and not self._names:
            raise AgentConfigError(f"{owner} names no tool; name some, or take {ALL!r} for all")

    @property
    def is_by_name(self) -> bool:
        """Whether the tools were listed by name."""
        return self._rule is None and ALL not in self._names

    def check(self, names: Iterable[str]) -> None:
        """Check that each name is the name of a tool.

        Raises:
            AgentConfigError: A name is unknown; it may be misspelled.
        """
        known = set(names)
        unknown = sorted((self._names | self._without) - known - {ALL})
        if unknown:
            raise AgentConfigError(
                f"{self._owner} names {unknown[0]!r}, and there is no such tool; "
                f"tools are: {', '.join(sorted(known)) or 'none'}"
            )

    def has(self, spec: ToolSpec) -> bool:
        """Whether a tool is selected."""
        if spec.name in self._without:
            return False
        if self._rule is not None:
            return bool(self._rule(spec))
        return ALL in self._names or spec.name in self._names


def _listed(names: str | Iterable[str]) -> Iterable[str]:
    return [names] if isinstance(names, str) else names
