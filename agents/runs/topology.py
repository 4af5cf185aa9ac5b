"""Components at the addresses of a run; a resume checks that they are unchanged.

Only the components above a pending interrupt are stored. A new version of a program may therefore
add tools and agents, and change texts and models. An agent, a tool or a gate above a pending
interrupt must not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeGuard, runtime_checkable

from agents.agent import Agent
from agents.core.address import Address, Segment
from agents.core.errors import AgentChangedError
from agents.core.pending import InterruptNode
from agents.core.tools import Tool

__all__ = ["Component", "Described", "agent_component", "tool_component"]

Key: TypeAlias = tuple[str, str]
"""Type and id of an address segment."""


@dataclass(frozen=True, slots=True)
class Component:
    """The part of an agent or a tool that answers depend on.

    Attributes:
        kind: Stored and compared on resume: the class of an agent, the gates of a tool.
        inner: The component itself. If it is `Described`, its parts are compared, too.
    """

    kind: str
    inner: object = None


@runtime_checkable
class Described(Protocol):
    """An agent or a tool that declares its parts. Others are not compared."""

    def components(self) -> Mapping[Key, Component]:
        """Return its direct parts by segment type and id: `("tool", "pay")`."""
        ...


def is_described(part: object) -> TypeGuard[Described]:
    """Whether a component is `Described`; ten times faster than `isinstance`."""
    return getattr(part, "components", None) is not None


class Holder(Protocol):
    """A component whose parts are only named at run time and are not compared."""

    def held(self) -> Iterable[object]:
        """Return its agents, tools and other holders, as far as they are known."""
        ...


def is_holder(part: object) -> TypeGuard[Holder]:
    """Whether a component is a `Holder`; as fast as `is_described`."""
    return getattr(part, "held", None) is not None


def agent_component(agent: Agent) -> tuple[Key, Component]:
    """Describe an agent as a part of its parent."""
    kind = type(agent).__name__ if is_described(agent) else "an agent"
    return ("agent", agent.name), Component(kind, agent)


def tool_component(tool: Tool) -> tuple[Key, Component]:
    """Describe a tool with its gates as a part of an agent."""
    spec = tool.definition
    return ("tool", spec.name), Component(", ".join(spec.gates) or "no gate", tool)


def component_at(agent: Agent, address: Address) -> object:
    """Return the component declared at an address, or None if it is not declared.

    The address is of an agent or of a call: `agent:Boss;agent:Worker;tool:pay:c1`.
    """
    components = list(
        _declared(agent, [(segment.type, segment.id) for segment in address.segments])
    )
    return components[-1].inner if components and len(components) == len(address) else None


def topology(agent: Agent, waiting: InterruptNode) -> dict[str, str]:
    """Return the kinds of the declared components at and above the addresses of interrupts.

    The keys are addresses without sub-ids, as text.
    """
    # All calls of a tool have one declaration.
    ways = {
        tuple((segment.type, segment.id) for segment in point.address.segments)
        for point in waiting.walk()
    }
    kind_by_way: dict[tuple[Key, ...], str] = {}
    # Longest first: it also finds all components above.
    for way in sorted(ways, key=len, reverse=True):
        if way not in kind_by_way:
            for length, part in enumerate(_declared(agent, way), start=1):
                kind_by_way[way[:length]] = part.kind
    return {_text(way): kind for way, kind in kind_by_way.items()}


@lru_cache(maxsize=1_024)
def _text(way: tuple[Key, ...]) -> str:
    """Return an address without sub-ids as text, so that all calls of a tool share it."""
    return str(Address(tuple(Segment(*key) for key in way)))


def check_topology(agent: Agent, waiting: InterruptNode, was: Mapping[str, str]) -> None:
    """Refuse a resume if a component above any pending interrupt has changed."""
    now = topology(agent, waiting)
    # Additional components are allowed.
    for at, kind in was.items():
        if now.get(at) != kind:
            raise AgentChangedError(at, kind, now.get(at, "nothing of that name"))


def _declared(agent: Agent, way: Iterable[Key]) -> Iterator[Component]:
    """Yield the components on the way to an address, as far as they are declared."""
    root, part = agent_component(agent)
    parts: Mapping[Key, Component] = {root: part}
    for key in way:
        component = parts.get(key)
        if component is None:
            return
        yield component
        parts = component.inner.components() if is_described(component.inner) else {}
