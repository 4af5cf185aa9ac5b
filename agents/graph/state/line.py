"""Detects graphs whose nodes run in a fixed order, so that people see progress."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from agents.graph.commands import END, START
from agents.graph.state.plan import Draft, Node


def line_of(draft: Draft) -> tuple[str, ...]:
    """Return the nodes of a graph in their fixed order, or nothing if there is none.

    The order is fixed if each node has one edge, to the next, and no other target: its
    `destinations` are empty, or its function's return type contains no command. Hidden nodes are
    not steps to people.
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
    """Return the target of a node's single edge, else an empty text."""
    targets = set(draft.edges.get(name, ()))
    return targets.pop() if len(targets) == 1 else ""


def _keeps_to_edges(node: Node) -> bool:
    """Whether a node can only follow its edges or end the graph."""
    if node.destinations is not None:
        return not node.destinations
    return node.function is not None and _is_update(_result_of(node.function))


def _result_of(function: object) -> Any:
    """Return the declared return type of a function, or `Any` if it cannot be read."""
    try:
        return get_type_hints(function).get("return", Any)
    except Exception:  # noqa: BLE001 - annotations are code of a node's author
        return Any


def _is_update(result: object) -> bool:
    """Whether a type allows state updates only."""
    if result is None or result is NoneType:
        return True
    kind = get_origin(result) or result
    if kind is Union or kind is UnionType:
        return all(map(_is_update, get_args(result)))
    return isinstance(kind, type) and issubclass(kind, Mapping)
