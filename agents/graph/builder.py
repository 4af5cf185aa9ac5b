"""Building graphs: nodes, edges, and what is checked before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from pydantic import BaseModel

from agents.core.checkpoint import CheckpointStore, Durability, new_uuid
from agents.core.observers import Observer, Observers
from agents.graph.commands import END, START
from agents.graph.compiled import CompiledGraph
from agents.graph.errors import GraphBuildError
from agents.graph.options import Options, refuse_unknown
from agents.graph.state.channels import Channels
from agents.graph.state.line import line_of
from agents.graph.state.plan import Branch, Draft, Node, NodeFunction, Router, Topology
from agents.graph.state.retries import RetryPolicy

EVERY = "*"
"""All nodes, for breakpoints."""


class CompileOptions(TypedDict, total=False):
    """Options of a compiled graph; see `StateGraph.compile`.

    Attributes:
        checkpoint_store: Where threads are kept; without one, questions surface, and nothing can
            be resumed. A sub-graph needs none.
        interrupt_before: Nodes before which people are asked to let the graph go on; "*" for all
            but hidden ones.
        interrupt_after: Nodes after which they are.
        name: Part of addresses: never change it while threads are pending; "graph" when left out.
        durability: When things are stored: each node and step ("step", the default), or only where
            the graph stops ("interrupt").
        step_limit: How many steps one call may take, from its input or answer to its end or the
            next question; 100 when left out.
        new_id: Makes ids of interrupts; UUIDs when left out.
        patience: How long an answer by id waits while another one of its thread is worked on; ten
            seconds when left out.
        observers: Are told what happens.
    """

    checkpoint_store: CheckpointStore | None
    interrupt_before: str | Sequence[str]
    interrupt_after: str | Sequence[str]
    name: str
    durability: Durability
    step_limit: int
    new_id: Callable[[], str]
    patience: timedelta
    observers: Sequence[Observer]


class NodeOptions(TypedDict, total=False):
    """Options of a node; see `StateGraph.add_node`.

    Attributes:
        destinations: Where its commands may lead; None allows every node. Nodes that only commands
            lead to must be named here; of a sub-graph, also what its commands to the parent name.
        to_input: For a graph: makes its input of the state; by default, the keys both have.
        to_update: For a graph: makes this node's update of its state at the end; by default, what
            it changed of the keys both have.
        retry_policy: Lets it run again when it fails; by default, it does not. A sub-graph goes on
            where it failed.
        idempotent: Whether running twice has the same effect as once. Then nobody is asked what
            became of it when its process died after people had let it run at a breakpoint.
        stateful: For a graph: whether it keeps those of its keys that this graph does not have,
            from one time that the node runs to the next, also in later turns of the thread. Of
            several that run side by side, those of the last one count.
        hidden: Whether breakpoints at "*" pass it over, and streams of updates do not tell of it.
    """

    destinations: Sequence[str] | None
    to_input: Callable[[Any], Mapping[str, object] | BaseModel] | None
    to_update: Callable[[Any], Mapping[str, object]] | None
    retry_policy: RetryPolicy | None
    idempotent: bool
    stateful: bool
    hidden: bool


class StateGraph:
    """A graph whose nodes read and write one state.

    Args:
        schema: The state's keys: a TypedDict, a dataclass or a pydantic model. Nodes get a dict, of
            a model an instance of it, and return a dict of what they change. `Annotated[list, add]`
            merges updates. A model is validated whenever its state is written: its constraints,
            validators and required fields hold from the input on; nothing else is converted.

    Raises:
        GraphBuildError: The schema cannot describe a state.
    """

    def __init__(self, schema: type) -> None:
        self._channels = Channels(schema)
        self._draft = Draft()

    def add_node(
        self, name: str, node: NodeFunction | CompiledGraph, **options: Unpack[NodeOptions]
    ) -> StateGraph:
        """Add a node.

        Args:
            name: Unique; part of addresses: never change it while threads are pending.
            node: A function of the state, or of the state and a `NodeContext`; a plain one runs in
                a thread of its own. Or a compiled graph.
            **options: See `NodeOptions`.

        Raises:
            GraphBuildError: The name is taken, or this cannot be a node.
            TypeError: There is no such option.
        """
        refuse_unknown("add_node()", options, NodeOptions)
        if not name or name in {START, END, EVERY}:
            raise GraphBuildError(f"{name!r} cannot be the name of a node; choose another")
        if name in self._draft.nodes:
            raise GraphBuildError(f"there are two nodes {name!r}; rename one")
        graph = node.topology if isinstance(node, CompiledGraph) else None
        to_input, to_update = options.get("to_input"), options.get("to_update")
        if graph is None and (to_input or to_update or options.get("stateful")):
            raise GraphBuildError(
                f"node {name!r} is no graph: it takes no to_input, to_update or stateful"
            )
        allowed = options.get("destinations")
        self._draft.nodes[name] = Node(
            name=name,
            function=None if isinstance(node, CompiledGraph) else node,
            graph=graph,
            takes_context=not isinstance(node, CompiledGraph) and _takes_context(name, node),
            destinations=None if allowed is None else tuple(allowed),
            to_input=to_input,
            to_update=to_update,
            retry_policy=options.get("retry_policy"),
            is_idempotent=options.get("idempotent", False),
            is_stateful=options.get("stateful", False),
            is_hidden=options.get("hidden", False),
        )
        return self

    def add_edge(self, source: str | Sequence[str], target: str) -> StateGraph:
        """Lead from a node to the next.

        Args:
            source: A node, or `START`. Several nodes: the edge waits for all of them.
            target: A node, or `END`.

        Raises:
            GraphBuildError: `START` is no target, `END` is no source, or the source is empty.
        """
        sources = (source,) if isinstance(source, str) else tuple(dict.fromkeys(source))
        if target == START or END in sources or not sources:
            raise GraphBuildError(f"an edge cannot lead from {source!r} to {target!r}")
        if isinstance(source, str):
            self._draft.edges.setdefault(source, []).append(target)
        elif START in sources:
            raise GraphBuildError("an edge that waits for several nodes cannot wait for START")
        elif not any(set(sources) == set(one) and target == end for one, end in self._draft.joins):
            self._draft.joins.append((sources, target))
        return self

    def add_conditional_edges(
        self,
        source: str,
        router: Router,
        destinations: Sequence[str] | Mapping[Any, str] | None = None,
    ) -> StateGraph:
        """Let a function say where to go on.

        Args:
            source: A node, or `START`.
            router: A function of the state that runs after the step, must be quick and ask nobody.
                It returns a node, `END`, a `Send`, or several of them.
            destinations: Where it may lead; or, by what it returns, which node that is. None allows
                every node.

        Raises:
            GraphBuildError: `END` leads nowhere, or the router cannot be called.
        """
        if source == END or not callable(router):
            raise GraphBuildError(f"no function can lead from {source!r} with {router!r}")
        known: Mapping[Hashable, str] | None = None
        if destinations is not None:
            known = (
                dict(destinations)
                if isinstance(destinations, Mapping)
                else {name: name for name in destinations}
            )
        self._draft.branches.append(Branch(source=source, router=router, destinations=known))
        return self

    def set_entry_point(self, name: str) -> StateGraph:
        """Begin with a node; the same as an edge from `START`."""
        return self.add_edge(START, name)

    def set_finish_point(self, name: str) -> StateGraph:
        """End with a node; the same as an edge to `END`."""
        return self.add_edge(name, END)

    def compile(self, **options: Unpack[CompileOptions]) -> CompiledGraph:
        """Check the graph, and make it ready to run.

        Args:
            **options: See `CompileOptions`.

        Raises:
            GraphBuildError: An edge or a breakpoint names no node, nothing leads from `START`, or
                nothing leads to a node.
            TypeError: There is no such option.
        """
        refuse_unknown("compile()", options, CompileOptions)
        self._check()
        step_limit = options.get("step_limit", 100)
        if step_limit < 1:
            raise GraphBuildError(f"step_limit is {step_limit}; a graph needs at least one step")
        durability = options.get("durability", "step")
        if durability not in {"step", "interrupt"}:
            raise GraphBuildError(f"durability is {durability!r}; use 'step' or 'interrupt'")
        topology = Topology(
            name=options.get("name") or "graph",
            channels=self._channels,
            nodes=dict(self._draft.nodes),
            edges={name: tuple(targets) for name, targets in self._draft.edges.items()},
            joins=tuple(self._draft.joins),
            branches=tuple(self._draft.branches),
            before=self._breakpoints("interrupt_before", options.get("interrupt_before", ())),
            after=self._breakpoints("interrupt_after", options.get("interrupt_after", ())),
            step_limit=step_limit,
            line=line_of(self._draft),
        )
        kept = Options(
            every_step=durability == "step",
            new_id=options.get("new_id", new_uuid),
            patience=options.get("patience", timedelta(seconds=10)),
            observers=Observers(tuple(options.get("observers", ()))),
        )
        return CompiledGraph(topology, store=options.get("checkpoint_store"), options=kept)

    def _breakpoints(self, what: str, names: str | Sequence[str]) -> frozenset[str]:
        wanted = {names} if isinstance(names, str) else set(names)
        if EVERY in wanted:
            return frozenset(n.name for n in self._draft.nodes.values() if not n.is_hidden)
        self._check_known(what, wanted)
        return frozenset(wanted)

    def _check(self) -> None:
        draft = self._draft
        self._check_known("an edge", {*draft.edges} - {START})
        for name, targets in draft.edges.items():
            self._check_known(f"an edge from {name!r}", set(targets) - {END})
        for sources, target in draft.joins:
            self._check_known(f"the edge to {target!r}", {*sources, target} - {END})
        for branch in draft.branches:
            ends = {*(branch.destinations or {}).values()} - {END}
            self._check_known(f"the router of {branch.source!r}", {branch.source, *ends} - {START})
        for node in draft.nodes.values():
            self._check_known(f"node {node.name!r}", set(node.destinations or ()) - {END})
        self._check_reachable()

    def _check_reachable(self) -> None:
        reached = self._draft.reachable()
        if not reached:
            raise GraphBuildError("nothing leads from START; add an edge: `add_edge(START, …)`")
        lost = sorted(set(self._draft.nodes) - reached)
        if lost:
            raise GraphBuildError(
                f"nothing leads to {', '.join(lost)}; add an edge, or, if a Command leads there, "
                "name it in the `destinations` of the node that returns it"
            )

    def _check_known(self, what: str, names: Iterable[str]) -> None:
        unknown = sorted(set(names) - set(self._draft.nodes))
        if unknown:
            known = ", ".join(self._draft.nodes) or "none"
            raise GraphBuildError(
                f"{what} names {', '.join(unknown)}, and there is no such node; there are: {known}"
            )


def _takes_context(name: str, function: NodeFunction) -> bool:
    """Whether a node's function takes a second argument."""
    if not callable(function):
        raise GraphBuildError(f"node {name!r} is neither a function nor a compiled graph")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have none
        return False
    for count in (2, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 2 and _wants_two(signature)
    raise GraphBuildError(f"node {name!r} must take the state, or the state and a NodeContext")


def _wants_two(signature: inspect.Signature) -> bool:
    """Whether the second argument is meant for us: a default value or `*args` is not."""
    second = list(signature.parameters.values())[1:2]
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return bool(second) and second[0].kind in kinds and second[0].default is second[0].empty
