"""The rules' judgement of a waiting call with other arguments: worked out, and nothing else.

Whoever shows a form needs to know it while the person still looks at the form. So the way to the
gate is found through what agents and tools declare; no code of an agent is entered, nothing is
written. The gate judges once more when the answer arrives: what is said here lets nothing run.
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
from agents.gates.base import CallGate
from agents.gates.house import pile_of
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
    """Work out what the rules demand of a call that waits, with other arguments.

    Args:
        agent: The root agent.
        document: What is stored of its run.
        checkpoint_id: Of the run.
        interrupt_id: What waits.
        arguments: All of them; canonical or not.
        house: The application's policy.

    Returns:
        None when the gate cannot be found, as something on the way does not say what it is made of,
        or what waits is no call.

    Raises:
        InvalidArgumentsError: They do not fit the tool.
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
        # Decoded anew for this: a policy that writes into them changes nothing of the run.
        session=SessionValues(document.session),
        waiting=asks,
        house=house,
    )
    scope = Scope(run=run, address=asks.address, why=info.why)
    with entered(scope), inside(*_around(pile[: pile.index(here[0])], way)):
        return await here[0].judge(wanted)


def _way(root: InterruptNode | None, interrupt_id: str) -> list[InterruptNode]:
    """The points from the root to an interrupt; empty when it does not wait."""
    if root is None:
        return []
    if root.id == interrupt_id and not root.children:
        return [root]
    for child in root.children:
        found = _way(child, interrupt_id)
        if found:
            return [root, *found]
    return []


def _around(gates: Sequence[CallGate], way: Sequence[InterruptNode]) -> Iterator[Around]:
    """The gates that have let the call pass, with what they keep of it."""
    address = way[-1].address
    points = {point.slot: point for point in way[:-1] if point.address == address}
    for gate in gates:
        point = points.get(gate.slot)
        state = decode(point.state) if point is not None else None
        if point is None or not isinstance(state, GateState):
            raise ResumeDataError(f"a gate around {address} has lost what it let pass")
        info = point.info if isinstance(point.info, CallInfo) else state.info
        yield Around(address=address, gate=gate, state=replace(state, info=info))
