"""The `Tool` protocol, the definition of a tool, the description of a call, and wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from agents.core.calls import Risk, ToolReturn
from agents.core.codec import Json
from agents.core.errors import AgentConfigError

EXTERNAL = "external"
"""Tag of a tool whose effects people outside of the company see, such as mail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool's definition: name, arguments and gates, without its code.

    Attributes:
        name: Name for the model; unique among the tools of one agent.
        description: What the tool does, for the model.
        schema: JSON schema of the arguments, an object.
        gates: Names of its gates, outermost first. Stored with an interrupt, so that a removed gate
            is noticed.
        idempotent: Whether a second run of the same call has no further effect.
        cancellable: Whether a person's stop cancels a running call.
        timeout: Longest time of a call; None uses the default of the run.
        tags: Kinds of tools that policies refer to, such as `money` or `read-only`. `EXTERNAL` is
            shown to approvers.
        risk: The harm that a call can do, according to the tool's author.
        secret: Names of arguments that people never see, such as a password.
        shown: Names of arguments that look secret but are not, such as an account number.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    gates: tuple[str, ...] = ()
    idempotent: bool = False
    cancellable: bool = False
    timeout: timedelta | None = None
    tags: tuple[str, ...] = ()
    risk: Risk = "medium"
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def masks(self) -> dict[str, tuple[str, ...]]:
        """Return the lists `secret` and `shown` by name."""
        return {"secret": self.secret, "shown": self.shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """Description of a call for people.

    Attributes:
        title: Verb and object, one line.
        preview: The expected effect, from the tool's author; may be empty.
        named: Names of the arguments that the title contains completely and unambiguously.
    """

    title: str
    preview: str = ""
    named: tuple[str, ...] = ()


class Tool(Protocol):
    """A tool that a model can call.

    The runtime first validates, then calls with the result of `validate`, inside the address
    segment `tool:<name>:<call_id>`.
    """

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's definition; the same on each access."""
        ...

    def validate(self, arguments: Mapping[str, object]) -> dict[str, Json]:
        """Validate arguments and return them in canonical form, with defaults filled in.

        Runs nothing. Validating the result again returns the same.

        Raises:
            InvalidArgumentsError: The arguments do not fit the schema.
        """
        ...

    def describe(self, arguments: Mapping[str, Json]) -> CallText:
        """Describe a call with validated arguments for people. Runs nothing."""
        ...

    async def call(self, arguments: dict[str, Json]) -> str | ToolReturn:
        """Run the tool with validated arguments.

        Returns:
            The result for the model, with its outcome if that is not `ran`.

        Raises:
            InterruptSignal: The tool asks people. Do not catch it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolWrapper:
    """A tool around another tool. It delegates everything; override what differs.

    Attributes:
        tool: The wrapped tool.
    """

    tool: Tool

    def __post_init__(self) -> None:
        check_tool(self.tool)

    @property
    def definition(self) -> ToolSpec:
        """Return the wrapped tool's definition; see `Tool.definition`."""
        return self.tool.definition

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
        """Return the parts of the innermost tool, such as an agent."""
        *_, inner = layers_of(self.tool)
        parts: Mapping[tuple[str, str], object] = (
            inner.components() if hasattr(inner, "components") else {}
        )
        return parts


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


def layers_of(tool: object) -> Iterator[object]:
    """Yield a tool and all that it wraps, outermost first."""
    while tool is not None:
        yield tool
        tool = getattr(tool, "tool", None)


def check_tool(tool: object) -> None:
    """Check that an object is a tool when it is configured, long before its call.

    Raises:
        AgentConfigError: The object is not a tool.
    """
    if not isinstance(getattr(tool, "definition", None), ToolSpec):
        raise AgentConfigError(f"{tool!r} is no tool; make one of a function with `@tool`")


def check_timeout(owner: str, name: str, limit: object) -> None:
    """Check a limit of time.

    Raises:
        AgentConfigError: The limit is neither None nor a positive duration.
    """
    if limit is not None and (not isinstance(limit, timedelta) or limit <= timedelta()):
        raise AgentConfigError(
            f"{owner} has {name}={limit!r}; give a positive duration such as timedelta(seconds=30)"
        )
