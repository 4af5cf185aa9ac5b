"""Tags on a tool, by which policies recognize kinds of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.core.calls import ToolReturn
from agents.core.codec import Json
from agents.core.errors import AgentConfigError
from agents.tools.base import CallText, Tool, ToolSpec


@dataclass(frozen=True, slots=True)
class TaggedTool:
    """A tool with tags."""

    tool: Tool
    tags: tuple[str, ...]

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's definition with these tags added at the end."""
        inner = self.tool.definition
        return replace(inner, tags=tuple(dict.fromkeys((*inner.tags, *self.tags))))

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments; see `Tool.validate`."""
        return self.tool.validate(arguments)

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call for people; see `Tool.describe`."""
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
    """Add tags to a tool, such as `money` or `read-only`.

    Args:
        tool: Any tool. Add tags before gates: inner gates do not see tags added later.
        tags: Kinds of tools that the rules of a policy can refer to.

    Raises:
        AgentConfigError: No tag is given, or one is empty.
    """
    if not tags or not all(tags):
        raise AgentConfigError(f"tool {tool.definition.name!r} needs tags that are not empty")
    return TaggedTool(tool, tags)
