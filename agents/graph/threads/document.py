"""The stored document of a graph's thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast, get_args

from agents.core.codec import Json, check_version, decode, encode
from agents.core.errors import CheckpointDecodeError
from agents.core.pending import InterruptNode
from agents.graph.state.place import GraphInfo, GraphState, Phase

VERSION = 1
"""Version of a thread's document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadDocument:
    """The stored checkpoint of a thread. Stored: version 1, must stay readable.

    Attributes:
        graph: Name of the graph.
        number: Number of this checkpoint in the thread, from 1.
        parent: Number of the previous checkpoint.
        phase: Phase of the thread.
        reason: Why the thread failed or was cancelled.
        point: The graph's own interrupt, with its state and pending interrupts.
        counts: See `RunContext`.
        session: Values shared by the nodes, tools and agents.
    """

    graph: str
    number: int
    parent: int | None
    phase: Phase
    point: InterruptNode
    reason: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    session: Mapping[str, object] = field(default_factory=dict)

    @property
    def state(self) -> GraphState:
        """The state of the graph."""
        state = decode(self.point.state)
        if not isinstance(state, GraphState):
            raise CheckpointDecodeError("the state of the graph is lost")
        return state

    def with_state(self, state: GraphState, *, phase: Phase, reason: str = "") -> ThreadDocument:
        """Return the document with another state and without pending interrupts."""
        point = bare_point(self.point, state)
        return replace(self, point=point, phase=phase, reason=reason)

    def to_json(self) -> dict[str, Json]:
        """Write the document as JSON data."""
        return {
            "schema": VERSION,
            "graph": self.graph,
            "number": self.number,
            "parent": self.parent,
            "phase": self.phase,
            "reason": self.reason,
            "point": self.point.to_json(),
            "counts": dict(self.counts),
            "session": encode(dict(self.session)),
        }

    @classmethod
    def from_json(cls, data: dict[str, Json]) -> ThreadDocument:
        """Read what `to_json` wrote."""
        check_version(data, VERSION)
        try:
            return cls(
                graph=cast("str", data["graph"]),
                number=cast("int", data["number"]),
                parent=cast("int | None", data["parent"]),
                phase=_phase(data["phase"]),
                reason=cast("str", data["reason"]),
                point=InterruptNode.from_json(data["point"]),
                counts=cast("dict[str, int]", data["counts"]),
                session=cast("dict[str, object]", decode(data["session"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointDecodeError(f"a part of it is damaged: {error!r}") from error


def _phase(text: Json) -> Phase:
    if text not in get_args(Phase):
        raise ValueError(f"unknown phase {text!r}")
    return cast("Phase", text)


def bare_point(before: InterruptNode, state: GraphState) -> InterruptNode:
    """Return a graph's interrupt that only stores its state; nothing is pending in it."""
    return InterruptNode(
        id=before.id,
        address=before.address,
        slot=before.slot,
        info=GraphInfo(graph=state.graph),
        state=encode(state),
        is_hidden=True,
    )
