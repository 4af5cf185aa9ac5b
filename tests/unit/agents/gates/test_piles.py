"""A pile of gates around one call: who of them is asked for the house, and who has agreed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from agents.core.asking.infos import ApprovalInfo, CallInfo
from agents.core.codec import Json
from agents.core.component.state import address_segment
from agents.core.journal import Journal
from agents.core.scope import RunContext, Scope, current_address, entered
from agents.gates.rulings import Around, Demands, GateState, agreed, all_lapsed, demands, inside
from agents.policy import Allow, Deny

SMALL = Allow(rule="small")
INFO = ApprovalInfo(
    tool_name="pay",
    arguments={"x": 1},
    call_id="c1",
    title="Pay",
    why="",
    preview="",
    schema={},
    digest="d",
    rule="dear",
    ruling="dear",
    thread="1",
    address="tool:pay:c1",
)


@dataclass
class Layer:
    """A gate that demands what it is told, and remembers whether another is for the house."""

    slot: str
    demanded: CallInfo | Allow | Deny | None = None
    fills_in: bool = False
    asks_people: bool = True
    insides: list[bool] = field(default_factory=list)

    async def demand(
        self, arguments: Mapping[str, Json], before: GateState, *, inside: bool
    ) -> CallInfo | Allow | Deny | None:
        self.insides.append(inside)
        return self.demanded


async def demanded(own: Layer, *around: Layer) -> Demands:
    """The demands of a pile, of which nobody has asked anybody yet."""
    run = RunContext(checkpoint_id="1", new_id=str, journal=Journal(None, "1"))
    with entered(Scope(run=run)), address_segment("tool", "pay", "c1"):
        here = current_address()
        with inside(*(Around(address=here, gate=gate, state=GateState()) for gate in around)):
            return await demands(own, GateState(arguments={"x": 1}))


async def test_for_the_house_the_outermost_gate_is_asked_that_does_not_fill_in() -> None:
    own, filling, outer = Layer("own", fills_in=True), Layer("f", fills_in=True), Layer("outer")
    await demanded(own, filling, outer)
    assert (own.insides, filling.insides, outer.insides) == ([True], [True], [False])


async def test_where_all_gates_fill_in_the_own_one_is_asked_for_the_house() -> None:
    own, filling = Layer("own", fills_in=True), Layer("f", fills_in=True)
    await demanded(own, filling)
    assert (own.insides, filling.insides) == ([False], [True])


async def test_a_gate_that_agrees_is_the_last_word_for_the_house_alone() -> None:
    own, outer = Layer("own", SMALL, fills_in=True), Layer("outer", INFO)
    assert await demanded(own, outer) == Demands(left=[("outer", INFO)])
    outer.demanded = SMALL
    own.demanded = None
    assert await demanded(own, outer) == Demands(left=[], allow=SMALL)


async def test_a_gate_without_a_demand_leaves_the_others_theirs() -> None:
    own, first, second = Layer("own"), Layer("first"), Layer("second", INFO)
    assert await demanded(own, first, second) == Demands(left=[("second", INFO)])


@pytest.mark.parametrize(
    ("fills_in", "changes", "is_agreed"),
    [
        (False, {}, True),
        (False, {"info": None}, False),
        (False, {"edited": True}, False),
        (False, {"allow": SMALL}, False),
        (False, {"edited": True, "agreed": {"own": "dear"}}, True),
        (True, {}, False),
        (True, {"asking": "outer"}, True),
        (True, {"asking": "outer", "info": None}, False),
    ],
)
def test_who_fills_in_agrees_to_nothing_but_for_another_gate(
    fills_in: bool, changes: dict[str, object], is_agreed: bool
) -> None:
    state = GateState(info=INFO, arguments={"x": 1})
    gate = Layer("own", fills_in=fills_in)
    assert agreed(gate, replace(state, **changes)) is is_agreed  # type: ignore[arg-type]


def test_nothing_is_left_of_what_was_agreed_to_a_call_that_has_lapsed() -> None:
    kept = GateState(arguments={"x": 1}, edited=True, edited_by="UADA", editors=("UMIA",))
    decided = replace(
        kept,
        info=INFO,
        approved=True,
        agreed={"own": "dear"},
        decided_by=("UMIA",),
        decisions=("i1",),
        allow=SMALL,
    )
    assert all_lapsed(decided) == replace(kept, lapsed=True)
