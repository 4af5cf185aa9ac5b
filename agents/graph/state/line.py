"""Graphs whose nodes run one after the other, so that people can be told which step this is."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from agents.graph.commands import END, START
from agents.graph.state.plan import Draft, Node


def line_of(draft: Draft) -> tuple[str, ...]:
    """The nodes of a graph in the order in which they run; empty where that is not certain.

    It is certain where each node has one edge, to the next, and can lead nowhere else: its
    `destinations` are empty, or its function's return type has no command in it. Hidden nodes are
    no steps to people.

    Args:
        draft: The graph, checked.
    """
    if draft.branches or draft.joins or not all(map(_keeps_to_edges, draft.nodes.values())):
        return ()
    found: list[str] = []
    name = _next(draft, START)
    while name != END:
        if not name or name in found:
            return ()
        found.append(name)
        name = _next(draft, name)
    return tuple(one for one in found if not draft.nodes[one].is_hidden)


def _next(draft: Draft, name: str) -> str:
    """The only node that an edge leads to; empty where there is none, or more than one."""
    targets = set(draft.edges.get(name, ()))
    return targets.pop() if len(targets) == 1 else ""


def _keeps_to_edges(node: Node) -> bool:
    """Whether a node can lead nowhere but along its edges, or to the end."""
    if node.destinations is not None:
        return not node.destinations
    return node.function is not None and _is_update(_result_of(node.function))


def _result_of(function: object) -> Any:
    """The type that a function says it returns; `Any` where it says none that can be read."""
    try:
        return get_type_hints(function).get("return", Any)
    except Exception:  # noqa: BLE001 - annotations are code of a node's author
        return Any


def _is_update(result: object) -> bool:
    """Whether a type is that of updates of the state alone."""
    if result is None or result is NoneType:
        return True
    kind = get_origin(result) or result
    if kind is Union or kind is UnionType:
        return all(map(_is_update, get_args(result)))
    return isinstance(kind, type) and issubclass(kind, Mapping)
