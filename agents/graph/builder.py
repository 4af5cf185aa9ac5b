"""Graph builder: add nodes and edges, then check and compile the graph."""

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
from agents.graph.drawing import line_of
from agents.graph.errors import GraphBuildError
from agents.graph.options import Options, refuse_unknown
from agents.graph.state.channels import Channels
from agents.graph.state.plan import Branch, Draft, Node, NodeFunction, RetryPolicy, Router, Topology

EVERY = "*"
"""All nodes, as the value of a breakpoint option."""


class CompileOptions(TypedDict, total=False):
    """Options of a compiled graph; see `StateGraph.compile`.

    Attributes:
        checkpoint_store: Stores the threads. Without a store, interrupts are returned but cannot be
            resumed. A sub-graph needs none.
        interrupt_before: Nodes with a breakpoint before them; "*" for all but hidden nodes.
        interrupt_after: Nodes with a breakpoint after them.
        name: Part of addresses: never change it while threads are pending. Default: "graph".
        durability: When to store: after each node and step ("step", the default), or only when the
            graph stops ("interrupt").
        step_limit: Maximum number of steps of one call, from its input or answer to its end or the
            next interrupt. Default: 100.
        new_id: Creates ids of interrupts. Default: UUIDs.
        patience: How long an answer by id waits while another answer of the thread is processed.
            Default: ten seconds.
        observers: Receive the graph's events.
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
        destinations: Possible targets of the node's commands; None allows every node. A node that
            only commands lead to must be listed here. For a sub-graph, list the targets of its
            commands to the parent, too.
        to_input: For a sub-graph: converts the state to its input; by default, the shared keys.
        to_update: For a sub-graph: converts its final state to the node's update; by default, its
            changes of the shared keys.
        retry_policy: Retries the node when it fails; by default, no retry. A sub-graph is retried
            from its failed node.
        idempotent: Whether a second run has no further effect. After a crash behind an approved
            breakpoint, the node then runs again without asking people.
        stateful: For a sub-graph: whether its private keys are kept from one run of the node to the
            next, also in later turns of the thread. Of parallel runs, the last one counts.
        hidden: Whether breakpoints at "*" and streams of updates skip the node.
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
        schema: The state's keys: a TypedDict, a dataclass or a pydantic model. Nodes receive a
            dict, or an instance of the model, and return a dict of changes. `Annotated[list, add]`
            merges updates. A model is validated at each write of the state: its constraints,
            validators and required fields hold from the input on. Values are not converted
            otherwise.

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
            node: A function of the state, or of the state and a `NodeContext`; a plain function
                runs in a thread of its own. Or a compiled graph.
            **options: See `NodeOptions`.

        Raises:
            GraphBuildError: The name is taken, or `node` cannot be a node.
            TypeError: An option is unknown.
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
        """Add an edge from a node to the next.

        Args:
            source: A node, or `START`. If there are several nodes, the edge waits for all of them.
            target: A node, or `END`.

        Raises:
            GraphBuildError: The target is `START`, or the source is `END` or empty.
        """
        sources = (source,) if isinstance(source, str) else tuple(dict.fromkeys(source))
        if target == START or END in sources or not sources:
            raise GraphBuildError(f"an edge cannot lead from {source!r} to {target!r}")
        if isinstance(source, str):
            self._draft.edges.setdefault(source, []).append(target)
        elif START in sources:
            raise GraphBuildError("an edge that waits for several nodes cannot wait for START")
        elif not any(
            set(sources) == set(joined) and target == end for joined, end in self._draft.joins
        ):
            self._draft.joins.append((sources, target))
        return self

    def add_conditional_edges(
        self,
        source: str,
        router: Router,
        destinations: Sequence[str] | Mapping[Any, str] | None = None,
    ) -> StateGraph:
        """Add edges that a router function selects at run time.

        Args:
            source: A node, or `START`.
            router: A function of the state that runs after the step, must be fast and must not
                interrupt. It returns a node, `END`, a `Send`, or several of them.
            destinations: Possible targets, or a map from the router's results to targets. None
                allows every node.

        Raises:
            GraphBuildError: The source is `END`, or the router cannot be called.
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
        """Add an edge from `START`."""
        return self.add_edge(START, name)

    def set_finish_point(self, name: str) -> StateGraph:
        """Add an edge to `END`."""
        return self.add_edge(name, END)

    def compile(self, **options: Unpack[CompileOptions]) -> CompiledGraph:
        """Check the graph and return it ready to run.

        Args:
            **options: See `CompileOptions`.

        Raises:
            GraphBuildError: An edge or a breakpoint names an unknown node, no edge leads from
                `START`, or a node is unreachable.
            TypeError: An option is unknown.
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
    """Whether a node's function takes a `NodeContext`."""
    if not callable(function):
        raise GraphBuildError(f"node {name!r} is neither a function nor a compiled graph")
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have no signature
        return False
    for count in (2, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 2 and _wants_two(signature)
    raise GraphBuildError(f"node {name!r} must take the state, or the state and a NodeContext")


def _wants_two(signature: inspect.Signature) -> bool:
    """Whether the function has a second parameter for us: no default, no `*args`."""
    second = list(signature.parameters.values())[1:2]
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return bool(second) and second[0].kind in kinds and second[0].default is second[0].empty
