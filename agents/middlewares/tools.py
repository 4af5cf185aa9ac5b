"""Middlewares around tools: the choice of tools, and errors as results that the model reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import AgentConfigError, AgentError, ToolError
from agents.core.observers import ToolOutcome
from agents.core.scope import Scope, current_scope, entered
from agents.core.tools import Tool, ToolSpec, ToolWrapper
from agents.middlewares.base import Middleware

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
        """Check that each name is the name of a tool."""
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


@contextmanager
def recording(scope: Scope, pieces: list[str]) -> Iterator[None]:
    """Collect the pieces of a result that a tool streams in a scope, and pass them on."""

    def record(text: str) -> None:
        pieces.append(text)
        if scope.sink is not None:
            scope.sink(text)

    with entered(replace(scope, sink=record)):
        yield


class ToolErrorHandler(Middleware):
    """Turns the error of a tool into the result `[tool error] …`, outcome `failed`.

    If the tool had streamed a part of its result, the model reads that part before the error. The
    middleware works inside and outside of a gate. Interrupts, cancellation, and runtime errors that
    end a run are raised.

    Args:
        tools: Names of tools, or `*`.

    Source:
        cloudwego/eino-examples, `helpers/middleware.go`, for the text.
    """

    def __init__(self, tools: str | Iterable[str] = "*") -> None:
        self._tools = ToolChoice("ToolErrorHandler", tools)

    def check_tools(self, names: Iterable[str]) -> None:
        """See `Middleware.check_tools`."""
        self._tools.check(names)

    def wrap_tool(self, tool: Tool) -> Tool:
        """See `Middleware.wrap_tool`."""
        return _SafeTool(tool) if self._tools.has(tool.definition) else tool


@dataclass(frozen=True, slots=True)
class _SafeTool(ToolWrapper):
    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        scope = current_scope("ToolErrorHandler")
        pieces: list[str] = []
        try:
            with recording(scope, pieces):
                return await self.tool.call(arguments)
        except Exception as error:
            if isinstance(error, AgentError) and not isinstance(error, ToolError):
                raise  # the runtime's own: it decides what becomes of the run
            text = f"[tool error] {str(error) or type(error).__name__}"
            last = f"\n{text}" if pieces else text
            if pieces and scope.sink is not None:
                scope.sink(last)
            return ToolReturn("".join([*pieces, last]), ToolOutcome.FAILED)
