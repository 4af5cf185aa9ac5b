"""Commands that nodes, routers and answers give to a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from agents.core.codec import register

START = "__start__"
"""The beginning of a graph: a name for edges."""

END = "__end__"
"""The end of a graph: a name for edges, routers and commands."""


@register("countersign.graph_send/1")
@dataclass(frozen=True, slots=True)
class Send:
    """Run a node with a state of its own. Stored: version 1, must stay readable.

    Attributes:
        node: Which.
        arg: What it gets in place of the graph's state; storable.
    """

    node: str
    arg: object


Target: TypeAlias = str | Send
Targets: TypeAlias = Target | Sequence[Target]


@register("countersign.graph_command/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Say where to go on, and write to the state. Stored: version 1, must stay readable.

    From a node, `goto` takes the place of its edges. Given with a resume, the update is written
    before anything runs, and the nodes of `goto` run in the step that goes on.

    With `graph=Command.PARENT`, a node of a sub-graph commands the graph around it: the sub-graph
    ends when its step does, and the node that it is there writes and leads as the command says.
    What the sub-graph itself wrote counts only as far as the command passes it on.

    Attributes:
        goto: A node, a `Send`, `END`, or several; empty follows the edges.
        update: By key of the state, through its reducer.
        graph: Which graph is meant: empty for that of the node, or `Command.PARENT`.
    """

    PARENT: ClassVar[str] = "__parent__"

    goto: Targets = ()
    update: Mapping[str, object] = field(default_factory=dict)
    graph: str = ""

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets to go to, as a tuple."""
        return (self.goto,) if isinstance(self.goto, str | Send) else tuple(self.goto)


@register("countersign.graph_state_update/1")
@dataclass(frozen=True, slots=True)
class StateUpdate:
    """Answers a breakpoint: go on, with these keys of the state replaced.

    Stored: version 1, must stay readable.

    Attributes:
        values: New values by key, as they shall be: no reducer is asked.
    """

    values: dict[str, object]


@register("countersign.graph_multiple_answers/1")
@dataclass(frozen=True, slots=True)
class MultipleAnswers:
    """Answers several questions of one node, in the order in which it asks them.

    Stored: version 1, must stay readable.

    Attributes:
        values: The first is for the question that waits; never empty.
    """

    values: tuple[object, ...]
