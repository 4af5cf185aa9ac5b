"""The rulings of all gates of a call: the required and the existing approvals.

Several gates may wrap one tool. They request approval one after the other, and no voter counts for
two of them. After an edit, every gate returns what it requires of the edited call, and earlier
approvals do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from agents.core.address import Address
from agents.core.asking.infos import CallInfo
from agents.core.codec import Json, register
from agents.core.digest import canonical_json
from agents.core.scope import current_scope
from agents.policy.base import Allow, Deny

DEFAULT_RULE = "always"
"""Name of the rule of a gate without a rule name."""


@register("countersign.gate/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """State of a gate for its call. Stored: version 1, must stay readable.

    Attributes:
        info: The info that people saw; None if approval was not requested, and in the stored form,
            because the interrupt contains it.
        approved: Whether the call may run. The gate then does not ask again, unless the approval
            has become too old before the start.
        arguments: Arguments of the call in canonical form. Before the approval, those of the
            request; None if they are the model's.
        edited: Whether they differ from the model's.
        digest: Digest of the call that may run.
        asking: Slot of the gate that requested approval; empty for this gate.
        agreed: Terms under which these arguments were approved, by slot.
        decided_by: Voters for these arguments, as far as known.
        decisions: Ids of the interrupts whose answers approved the call.
        edited_by: Who edited these arguments last; empty if unknown.
        editors: Everyone who made earlier edits.
        lapsed: Whether approvals in outer gates are no longer valid.
        allow: The policy's ruling that allows these arguments without approval; None if people
            decide or there is no policy.
        parked: Whether the call may run, and waits for the application; see `ParkedInfo`.
    """

    info: CallInfo | None = None
    approved: bool = False
    arguments: dict[str, Json] | None = None
    edited: bool = False
    digest: str = ""
    asking: str = ""
    agreed: dict[str, str] = field(default_factory=dict)
    decided_by: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    edited_by: str = ""
    editors: tuple[str, ...] = ()
    lapsed: bool = False
    allow: Allow | None = None
    parked: bool = False


class Demanding(Protocol):
    """The part of a gate that other gates of the same call use; see `CallGate`."""

    @property
    def slot(self) -> str:
        """Return a slot that is unique among the gates of the call."""
        ...

    @property
    def fills_in(self) -> bool:
        """Whether its answers fill in arguments and approve nothing."""
        ...

    @property
    def asks_people(self) -> bool:
        """Whether the gate itself requires approval."""
        ...

    async def demand(
        self, arguments: dict[str, Json], before: GateState, *, inside: bool
    ) -> CallInfo | Allow | Deny | None:
        """Return the request that the gate requires for the call with other arguments.

        Args:
            arguments: Validated arguments with defaults filled in.
            before: The gate's state for the call before the edit.
            inside: Whether another gate requests approval under the policy.

        Returns:
            `Allow` if the policy allows the call; None if the gate requires nothing.
        """
        ...


Demand: TypeAlias = tuple[str, CallInfo]
"""Slot of a gate, and the request that it requires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Requirements of all gates of a call."""

    left: list[Demand]
    allow: Allow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """An outer gate that has let a call pass to its wrapped tool.

    Attributes:
        address: Address of the call.
        state: Its state for the call.
    """

    address: Address
    gate: Demanding
    state: GateState

    def covers(self, arguments: Mapping[str, Json]) -> bool:
        """Whether it let exactly this call pass, or this call with an open argument."""
        passed = self.state.arguments or {}
        return all(
            name in arguments and canonical_json(arguments[name]) == canonical_json(value)
            for name, value in passed.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Result of the policy for a pending call with other arguments.

    Attributes:
        arguments: The arguments in canonical form.
        info: The required request; None if no approval is required.
        rule: Name of the policy's rule that allows them; empty without such a rule.
        denied: Reason of a denial; empty if the call may run or be approved.
        failed: Whether a failure of the policy denies the call; a retry may succeed.
    """

    arguments: dict[str, Json]
    info: CallInfo | None = None
    rule: str = ""
    denied: str = ""
    failed: bool = False


class DeniedError(Exception):
    """A gate denies the call with these arguments, regardless of approvals."""

    def __init__(self, denied: Deny) -> None:
        super().__init__(denied.reason)
        self.denied = denied


_around: ContextVar[tuple[Around, ...]] = ContextVar("agents_gates_around", default=())


@contextmanager
def inside(*gates: Around) -> Iterator[None]:
    """Make gates that let a call pass known to its inner gates, while the block runs.

    Gates of nested agents do not see them.
    """
    token = _around.set((*_around.get(), *gates))
    try:
        yield
    finally:
        _around.reset(token)


def gates_around() -> tuple[Around, ...]:
    """Return the outer gates of the current gate, outermost first."""
    here = current_scope("a gate").address
    # Gates around an outer call do not belong to this call.
    return tuple(outer for outer in _around.get() if outer.address == here)


def counting(state: GateState) -> tuple[Around, ...]:
    """Return the outer gates whose approval covers this gate's call."""
    if state.lapsed:
        return ()
    return tuple(outer for outer in gates_around() if outer.covers(state.arguments or {}))


def deciders(gates: Sequence[Around]) -> tuple[str, ...]:
    """Return the voters that count in some gates."""
    return tuple(dict.fromkeys(name for outer in gates for name in outer.state.decided_by))


def agreed(gate: Demanding, state: GateState) -> bool:
    """Whether the call was approved in a gate, for that gate or for an outer one."""
    if state.info is None or (gate.fills_in and not state.asking):
        return False
    return bool(state.agreed) or not (state.edited or state.allow)


def changed(state: GateState, arguments: dict[str, Json]) -> GateState:
    """Return the state for edited arguments, without approvals."""
    return replace(
        state, approved=False, arguments=arguments, agreed={}, decided_by=(), decisions=()
    )


def all_lapsed(state: GateState) -> GateState:
    """Return the state without approvals, in this gate and in outer ones."""
    return replace(
        state,
        info=None,
        approved=False,
        agreed={},
        decided_by=(),
        decisions=(),
        lapsed=True,
        allow=None,
    )


def _bearer(own: Demanding, state: GateState) -> Demanding:
    """Return the gate that applies the policy: the outermost that asked."""
    around = gates_around()
    for outer in around:
        if not state.lapsed and agreed(outer.gate, outer.state):
            return outer.gate
    if not own.fills_in:
        return own
    return next((layer.gate for layer in around if not layer.gate.fills_in), own)


async def demands(own: Demanding, state: GateState) -> Demands:
    """Return the missing approvals of a call with the arguments of a state.

    The current gate's requirement comes first, then those of outer gates, outermost first.

    Raises:
        DeniedError: The call must not run.
    """
    wanted = state.arguments or {}
    left: list[Demand] = []
    allow: Allow | None = None
    bearer = _bearer(own, state)
    settled = {outer.gate.slot for outer in counting(state)}
    for gate, before in [(own, state), *((outer.gate, outer.state) for outer in gates_around())]:
        # Only the bearer applies the policy; all other gates add their own requirement.
        demand = await gate.demand(wanted, before, inside=gate is not bearer)
        if isinstance(demand, Deny):
            raise DeniedError(demand)
        if isinstance(demand, Allow):
            allow = demand if gate is bearer else allow
            continue
        # The exact terms were approved before.
        if demand is None or state.agreed.get(gate.slot) == demand.ruling:
            continue
        # An outer gate keeps its approval if it covers the same call under the same terms.
        was = before.agreed.get(gate.slot) or (before.info.ruling if before.info else None)
        if gate is own or gate.slot not in settled or was != demand.ruling:
            left.append((gate.slot, demand))
    return Demands(left=left, allow=allow)
