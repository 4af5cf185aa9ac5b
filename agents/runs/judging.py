"""Evaluate the policy for a pending call with edited arguments; runs nothing.

A form shows the result while the person is still editing. The gate is therefore found through what
agents and tools declare: no code of an agent runs, and nothing is stored. The gate evaluates the
policy again when the answer arrives; the result here allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agents.agent import Agent
from agents.core.asking.infos import CallInfo
from agents.core.codec import decode
from agents.core.errors import ResumeDataError
from agents.core.journal import Journal
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, Scope, SessionValues, entered
from agents.gates.approval import pile_of
from agents.gates.base import CallGate
from agents.gates.rulings import Around, GateState, Judgement, inside
from agents.policy.house import House
from agents.runs.document import RunDocument
from agents.runs.topology import component_at


async def judge(
    agent: Agent,
    document: RunDocument,
    checkpoint_id: str,
    interrupt_id: str,
    arguments: Mapping[str, object],
    *,
    house: House | None = None,
) -> Judgement | None:
    """Return what the policy requires of a pending call with other arguments.

    The arguments may be validated or not. The result is None if the interrupt is not about a call,
    or if its gate cannot be found because a component does not declare its parts.
    """
    way = _way(document.waiting, interrupt_id)
    info = way[-1].info if way else None
    if not isinstance(info, CallInfo):
        return None
    asks = way[-1]
    pile = list(pile_of(component_at(agent, asks.address), asks.slot))
    here = [gate for gate in pile if gate.slot == asks.slot]
    if not here:
        return None
    wanted = here[0].validate(arguments)
    run = RunContext(
        checkpoint_id=checkpoint_id,
        new_id=lambda: "",
        journal=Journal(None, checkpoint_id),
        # A copy: a policy that modifies session values must not change the run.
        session=SessionValues(document.session),
        waiting=asks,
        house=house,
    )
    scope = Scope(run=run, address=asks.address, why=info.why)
    with entered(scope), inside(*_around(pile[: pile.index(here[0])], way)):
        return await here[0].judge(wanted)


def _way(root: InterruptNode | None, interrupt_id: str) -> list[InterruptNode]:
    """Return the interrupts from the root to an id; empty if the id is not pending."""
    if root is None:
        return []
    if root.id == interrupt_id and not root.children:
        return [root]
    for child in root.children:
        rest = _way(child, interrupt_id)
        if rest:
            return [root, *rest]
    return []


def _around(gates: Sequence[CallGate], way: Sequence[InterruptNode]) -> Iterator[Around]:
    """Yield the outer gates that allowed the call, with their stored state."""
    address = way[-1].address
    points = {point.slot: point for point in way[:-1] if point.address == address}
    for gate in gates:
        point = points.get(gate.slot)
        state = decode(point.state) if point is not None else None
        if point is None or not isinstance(state, GateState):
            raise ResumeDataError(f"a gate around {address} has lost what it let pass")
        info = point.info if isinstance(point.info, CallInfo) else state.info
        yield Around(address=address, gate=gate, state=replace(state, info=info))
