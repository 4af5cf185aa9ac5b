"""Tags on a tool: words by which policies know what kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.tools.base import CallText, Tool, ToolSpec


@dataclass(frozen=True, slots=True)
class TaggedTool:
    """A tool with tags.

    Attributes:
        tool: What it is.
        tags: Words by which policies know its kind.
    """

    tool: Tool
    tags: tuple[str, ...]

    @property
    def definition(self) -> ToolSpec:
        """The tool's definition, with these tags after those that it has."""
        inner = self.tool.definition
        return replace(inner, tags=tuple(dict.fromkeys((*inner.tags, *self.tags))))

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Check arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Say in words what a call does; see `Tool.describe`."""
        return self.tool.describe(arguments)

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the tool; see `Tool.call`."""
        return await self.tool.call(arguments)

    def components(self) -> Mapping[tuple[str, str], object]:
        """Return the parts of the tool, such as an agent; see `agents.runs.topology`."""
        found: Mapping[tuple[str, str], object] = (
            self.tool.components() if hasattr(self.tool, "components") else {}
        )
        return found


def with_tags(tool: Tool, *tags: str) -> Tool:
    """Put tags on a tool, such as `money` or `read-only`.

    Args:
        tool: Any tool. Put tags on before gates: a gate inside does not see them.
        tags: Words; a policy's rule can be about tools that have them.

    Raises:
        AgentConfigError: There is no tag, or an empty one.
    """
    if not tags or not all(tags):
        raise AgentConfigError(f"tool {tool.definition.name!r} needs tags that are not empty")
    return TaggedTool(tool, tags)
