"""Tags on a tool, by which policies recognize kinds of tools."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.core.errors import AgentConfigError
from agents.core.tools import Tool, ToolSpec, ToolWrapper


@dataclass(frozen=True, slots=True)
class TaggedTool(ToolWrapper):
    """A tool with tags."""

    tags: tuple[str, ...]

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's definition with these tags added at the end."""
        inner = self.tool.definition
        return replace(inner, tags=tuple(dict.fromkeys((*inner.tags, *self.tags))))


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
