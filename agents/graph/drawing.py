"""A graph as people see it: a Mermaid diagram, and its steps if their order is fixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from agents.graph.commands import END, START
from agents.graph.state.plan import Branch, Draft, Node, Topology, join_key

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-./,+!?()")
_INDENT = "    "


def mermaid(topology: Topology) -> str:
    """Draw a graph as a Mermaid `flowchart` with sub-graphs, edges and breakpoints.

    A solid arrow is an edge. A dotted arrow is a possible target of a router or a command, labeled
    with the router's result. A bar joins edges that wait for several nodes. Nodes with a thick
    border have a breakpoint before or after them. A router that may lead to any node is marked.

    Returns:
        Lines of text with a final line end. Node names are escaped.
    """
    lines = ["flowchart TD", *_graph(topology, "", 1)]
    breakpoints = sorted(_breakpoints(topology, ""))
    if breakpoints:
        lines.append(f"{_INDENT}classDef asks stroke-width:4px")
        lines.append(f"{_INDENT}class {','.join(breakpoints)} asks")
    return "\n".join(lines) + "\n"


def _graph(topology: Topology, prefix: str, depth: int) -> Iterator[str]:
    ids = _ids(topology, prefix)
    indent = _INDENT * depth
    yield f"{indent}{ids[START]}((start))"
    yield f"{indent}{ids[END]}(((end)))"
    for name, node in topology.nodes.items():
        if node.graph is None:
            yield f"{indent}{ids[name]}[{_label(name)}]"
            continue
        yield f"{indent}subgraph {ids[name]}[{_label(name)}]"
        yield from _graph(node.graph, f"{ids[name]}_", depth + 1)
        yield f"{indent}end"
    for line in _edges(topology, ids):
        yield f"{indent}{line}"


def _edges(topology: Topology, ids: dict[str, str]) -> Iterator[str]:
    for source, targets in topology.edges.items():
        for target in targets:
            yield f"{ids[source]} --> {ids[target]}"
    for number, (sources, target) in enumerate(sorted(topology.joins, key=_key)):
        bar = f"{ids[START]}_join{number}"
        yield f"{bar}[ ]"
        for source in sources:
            yield f"{ids[source]} --- {bar}"
        yield f"{bar} --> {ids[target]}"
    for branch in topology.branches:
        yield from _branch(topology, branch, ids)
    for name, node in topology.nodes.items():
        for target in node.destinations or ():
            yield f"{ids[name]} -.-> {ids[target]}"


def _branch(topology: Topology, branch: Branch, ids: dict[str, str]) -> Iterator[str]:
    source = ids[branch.source]
    if branch.destinations is None:
        for name in (*topology.nodes, END):
            yield f"{source} -.-> {ids[name]}"
        return
    for choice, name in branch.destinations.items():
        label = "" if str(choice) == name else f"|{_label(str(choice))}|"
        yield f"{source} -.->{label} {ids[name]}"


def _breakpoints(topology: Topology, prefix: str) -> Iterator[str]:
    ids = _ids(topology, prefix)
    for name in topology.before | topology.after:
        yield ids[name]
    for name, node in topology.nodes.items():
        if node.graph is not None:
            yield from _breakpoints(node.graph, f"{ids[name]}_")


def _ids(topology: Topology, prefix: str) -> dict[str, str]:
    """Return an id for each node. Ids of Mermaid permit fewer characters than names."""
    ids = {name: f"{prefix}n{number}" for number, name in enumerate(topology.nodes)}
    return {START: f"{prefix}start", END: f"{prefix}finish", **ids}


def _label(text: str) -> str:
    """Escape all characters of a label but letters, digits and a few signs."""
    return '"' + "".join(sign if sign in _SAFE else f"#{ord(sign)};" for sign in text) + '"'


def _key(join: tuple[tuple[str, ...], str]) -> str:
    return join_key(*join)


def line_of(draft: Draft) -> tuple[str, ...]:
    """Return the nodes of a graph in their fixed order, or nothing if there is none.

    The order is fixed if each node has one edge, to the next, and no other target: its
    `destinations` are empty, or its function's return type contains no command. Hidden nodes are
    not steps to people.
    """
    if draft.branches or draft.joins or not all(map(_keeps_to_edges, draft.nodes.values())):
        return ()
    names: list[str] = []
    name = _next(draft, START)
    while name != END:
        if not name or name in names:
            return ()
        names.append(name)
        name = _next(draft, name)
    return tuple(node for node in names if not draft.nodes[node].is_hidden)


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
