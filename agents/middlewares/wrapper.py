"""The base class of tools that wrap a tool without being gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.scope import Scope, entered
from agents.tools.base import CallText, Tool, ToolSpec


@dataclass(frozen=True, slots=True)
class ToolWrapper:
    """Delegates to the wrapped tool; override `call`.

    Attributes:
        tool: The wrapped tool.
    """

    tool: Tool

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition; see `Tool.definition`."""
        return self.tool.definition

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call in words; see `Tool.describe`."""
        return self.tool.describe(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the tool; see `Tool.call`."""
        return await self.tool.call(arguments)

    def components(self) -> Mapping[tuple[str, str], object]:
        """The components of the innermost tool, such as the agent in it."""
        core: object = self.tool
        while hasattr(core, "tool"):
            core = core.tool
        found: Mapping[tuple[str, str], object] = (
            core.components() if hasattr(core, "components") else {}
        )
        return found


@contextmanager
def recording(scope: Scope, pieces: list[str]) -> Iterator[None]:
    """Collect the pieces of a result that a tool streams in a scope, and pass them on."""

    def record(text: str) -> None:
        pieces.append(text)
        if scope.sink is not None:
            scope.sink(text)

    with entered(replace(scope, sink=record)):
        yield
