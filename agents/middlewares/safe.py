"""Middleware that turns errors of tools into results that the model reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import AgentError, ToolError
from agents.core.observers import ToolOutcome
from agents.core.scope import current_scope
from agents.middlewares.base import Middleware
from agents.middlewares.matching import ToolChoice
from agents.middlewares.wrapper import ToolWrapper, recording
from agents.tools.base import Tool


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
            told = f"[tool error] {str(error) or type(error).__name__}"
            last = f"\n{told}" if pieces else told
            if pieces and scope.sink is not None:
                scope.sink(last)
            return ToolReturn("".join([*pieces, last]), ToolOutcome.FAILED)
