"""The components at the addresses of a run: noted with each interrupt, compared at each resume.

Only what lies on the way to something that waits is noted, so that a program which is started anew
may add tools and agents, and change texts and models, as it likes. An agent, a tool or a gate above
a question must be what it was when people were asked.
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
from agents.tools.base import Tool

__all__ = ["Component", "Described", "agent_component", "tool_component"]

Key: TypeAlias = tuple[str, str]
"""Type and id of an address segment."""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of an agent or a tool, as far as answers depend on it.

    Attributes:
        kind: Stored, and compared with a resume: for an agent its class, for a tool its gates.
        inner: The part itself; when it is `Described`, its own parts are compared, too.
    """

    kind: str
    inner: object = None


@runtime_checkable
class Described(Protocol):
    """An agent or a tool that says what it is made of. The others are not compared."""

    def components(self) -> Mapping[Key, Component]:
        """Its direct parts, by type and id of their address segment: `("tool", "pay")`."""
        ...


def is_described(part: object) -> TypeGuard[Described]:
    """Whether a part is `Described`, in a tenth of the time that `isinstance` takes for it."""
    return getattr(part, "components", None) is not None


@runtime_checkable
class Holder(Protocol):
    """A part whose own parts have names of their own at run time: they are not compared."""

    def held(self) -> Iterable[object]:
        """Agents, tools and other holders in it, as far as it knows them."""
        ...


def agent_component(agent: Agent) -> tuple[Key, Component]:
    """Describe an agent, as a part of what runs it."""
    kind = type(agent).__name__ if is_described(agent) else "an agent"
    return ("agent", agent.name), Component(kind, agent)


def tool_component(tool: Tool) -> tuple[Key, Component]:
    """Describe a tool with its gates, as a part of an agent."""
    spec = tool.definition
    return ("tool", spec.name), Component(", ".join(spec.gates) or "no gate", tool)


def component_at(agent: Agent, address: Address) -> object:
    """Find the part that is declared at an address; None where parts do not say what they are.

    Args:
        agent: The root agent.
        address: Of an agent or a call, with its gates: `agent:Boss;agent:Worker;tool:pay:c1`.
    """
    found = list(_declared(agent, [(one.type, one.id) for one in address.segments]))
    return found[-1].inner if found and len(found) == len(address) else None


def topology(agent: Agent, waiting: InterruptNode) -> dict[str, str]:
    """Return the declared components at the addresses of waiting points, and above them.

    Args:
        agent: The root agent.
        waiting: What waits.

    Returns:
        Kinds of components, by address without sub-ids, as text.
    """
    # Calls of one tool stand at many addresses, and are declared once.
    ways = {tuple((one.type, one.id) for one in point.address.segments) for point in waiting.walk()}
    found: dict[tuple[Key, ...], str] = {}
    # The longest first: with it, all above it is found.
    for way in sorted(ways, key=len, reverse=True):
        if way not in found:
            for length, part in enumerate(_declared(agent, way), start=1):
                found[way[:length]] = part.kind
    return {_text(way): kind for way, kind in found.items()}


@lru_cache(maxsize=1_024)
def _text(way: tuple[Key, ...]) -> str:
    """An address without sub-ids, as text: that of a tool is the same for all of its calls."""
    return str(Address(tuple(Segment(*key) for key in way)))


def check_topology(agent: Agent, waiting: InterruptNode, was: Mapping[str, str]) -> None:
    """Refuse a resume into something else than what asked, also beside what is answered.

    Args:
        agent: The root agent, as it is now.
        waiting: What waits.
        was: What `topology` gave when people were asked.

    Raises:
        AgentChangedError: An agent, a tool or its gates have changed or are gone.
    """
    now = topology(agent, waiting)
    for at, kind in was.items():
        if now.get(at) != kind:
            raise AgentChangedError(at, kind, now.get(at, "nothing of that name"))


def _declared(agent: Agent, way: Iterable[Key]) -> Iterator[Component]:
    """The parts on the way to an address, as far as they are declared."""
    root, part = agent_component(agent)
    parts: Mapping[Key, Component] = {root: part}
    for key in way:
        found = parts.get(key)
        if found is None:
            return
        yield found
        parts = found.inner.components() if is_described(found.inner) else {}
