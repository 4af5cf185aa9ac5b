"""Commands to a graph: where to continue and what to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from agents.core.codec import register

START = "__start__"
"""The source of a graph's first edges."""

END = "__end__"
"""The end of a graph, as a target of edges, routers and commands."""


@register("countersign.graph_send/1")
@dataclass(frozen=True, slots=True)
class Send:
    """Runs a node with a state of its own. Stored: version 1, must stay readable.

    Attributes:
        node: Name of the node.
        arg: The node's input instead of the graph's state; storable.
    """

    node: str
    arg: object


Target: TypeAlias = str | Send
Targets: TypeAlias = Target | Sequence[Target]


@register("countersign.graph_command/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Writes to the state and selects the next nodes.

    Stored: version 1, must stay readable.

    From a node, `goto` replaces the node's edges. With a resume, the update is written before
    anything runs, and the nodes of `goto` run at once, also while other nodes wait for answers. A
    node that is part of the step, or has a breakpoint before it, and every node while the step
    waits at a breakpoint, runs in the next step; until then it is in `StateSnapshot.next`.

    With `graph=Command.PARENT`, a node of a sub-graph commands the parent graph: the sub-graph ends
    with its step, and its node in the parent applies the command. The sub-graph's own writes count
    only if the command contains them.

    Attributes:
        goto: A node, a `Send`, `END`, or several; empty follows the edges.
        update: By key of the state, through its reducer.
        graph: The target graph: empty for the node's own, or `Command.PARENT`.
    """

    PARENT: ClassVar[str] = "__parent__"

    goto: Targets = ()
    update: Mapping[str, object] = field(default_factory=dict)
    graph: str = ""

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of `goto` as a tuple."""
        return (self.goto,) if isinstance(self.goto, str | Send) else tuple(self.goto)

    def plain(self) -> Command:
        """Return the same command in a form that can be stored."""
        return Command(goto=self.targets, update=dict(self.update))


@register("countersign.graph_state_update/1")
@dataclass(frozen=True, slots=True)
class StateUpdate:
    """Answer to a breakpoint: continue with these keys of the state replaced.

    Stored: version 1, must stay readable.

    Attributes:
        values: New values by key. Reducers are not applied.
    """

    values: dict[str, object]


@register("countersign.graph_multiple_answers/1")
@dataclass(frozen=True, slots=True)
class MultipleAnswers:
    """Answers to several interrupts of one node, in the order of its interrupts.

    Stored: version 1, must stay readable.

    Attributes:
        values: The first value answers the pending interrupt; never empty.
    """

    values: tuple[object, ...]
