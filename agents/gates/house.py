"""The gate of the application's policy, for tools without a gate in code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from agents.core.asking.infos import CallInfo
from agents.core.codec import Json
from agents.core.scope import current_scope
from agents.gates.approval import DecisionGate
from agents.gates.base import CallGate, gates_in
from agents.gates.rulings import GateState
from agents.policy.base import Allow, Deny
from agents.policy.house import HOUSE_SLOT, ApplicationPolicy, House
from agents.tools.base import Tool, ToolSpec

_ALLOWED = "house: allowed"
"""Rule name in the digest of a call that the policy allowed."""


@dataclass(frozen=True, slots=True)
class HouseGate(DecisionGate):
    """A tool whose calls the application's policy evaluates, if no gate in code asks.

    The run adds this gate when a call begins. It is not part of the tool's definition.

    Attributes:
        in_code: Whether the tool has gates in code, none of which had to ask.
    """

    in_code: bool = False

    @property
    def gate_name(self) -> str:
        """See `CallGate`."""
        return "house"

    @property
    def definition(self) -> ToolSpec:
        """Return the tool's own definition."""
        return self.tool.definition

    @property
    def slot(self) -> str:
        """See `CallGate`: inner gates number their slots without this gate."""
        return HOUSE_SLOT

    @property
    def completes_arguments(self) -> bool:
        """See `CallGate`."""
        return False

    async def _question(self, arguments: dict[str, Json]) -> None:  # noqa: ARG002 - see CallGate
        return None

    def _code(self, asked: CallInfo | Deny | None) -> Allow | None:  # noqa: ARG002 - see CallGate
        return Allow() if self.in_code else None

    def _guarded(self, state: GateState) -> Tool:  # noqa: ARG002 - see CallGate
        return self.tool

    @property
    def asks_people(self) -> bool:
        """See `CallGate`."""
        return False

    def _rule_of(self, info: CallInfo | None) -> str:
        return info.rule if info else _ALLOWED


def house(policy: ApplicationPolicy) -> House:
    """Prepare an application's policy for a run."""

    def guard(tool: object, in_code: bool) -> object:  # noqa: FBT001 - see `House`
        has_gates = any(True for _ in gates_in(tool))
        is_free = policy.allows_ungated and not in_code and not _waits_here()
        return tool if has_gates or is_free else HouseGate(cast("Tool", tool), in_code=in_code)

    return House(policy, guard)


def pile_of(tool: object, slot: str) -> Iterator[CallGate]:
    """Yield the gates of a tool in the order of a call, outermost first.

    Args:
        tool: The tool as its agent declares it.
        slot: Slot of the requested gate. The policy's own gate is included only for its slot.
    """
    inner, in_code = tool, False
    for gate in gates_in(tool):
        yield gate
        inner, in_code = gate.tool, in_code or not gate.fills_in
    if slot == HOUSE_SLOT:
        yield HouseGate(cast("Tool", inner), in_code=in_code)


def _waits_here() -> bool:
    """Whether the policy itself has already requested approval of this call."""
    scope = current_scope("a house")
    return scope.run.waits_at(scope.address, HOUSE_SLOT)
