"""The state of a graph in the stored document of its thread."""

from __future__ import annotations

from dataclasses import replace

from agents.core.codec import decode, encode
from agents.core.errors import CheckpointDecodeError
from agents.core.pending import InterruptNode
from agents.graph.state.place import GraphInfo, GraphState
from agents.runs.document import Phase, RunDocument


def graph_point(document: RunDocument) -> InterruptNode:
    """Return the graph's own interrupt, with its state and the pending interrupts."""
    if document.waiting is None:
        raise CheckpointDecodeError("the state of the graph is lost")
    return document.waiting


def graph_state(document: RunDocument) -> GraphState:
    """Return the state of the graph."""
    state = decode(graph_point(document).state)
    if not isinstance(state, GraphState):
        raise CheckpointDecodeError("the state of the graph is lost")
    return state


def with_state(
    document: RunDocument, state: GraphState, *, phase: Phase, reason: str = ""
) -> RunDocument:
    """Return the document with another state and without pending interrupts."""
    point = bare_point(graph_point(document), state)
    return replace(document, waiting=point, phase=phase, reason=reason)


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
