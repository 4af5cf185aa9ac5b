"""The rulings of all gates around a call: who has to agree to it, and who has agreed already.

Several gates may stand around one call. Each asks its own people, one after the other, and nobody
is counted for two of them. When people change the arguments, every gate is asked what it demands of
the changed call; what somebody has agreed to before does not count for it.
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
from agents.core.scope import current_address
from agents.policy.base import Allow, Deny

DEFAULT_RULE = "always"
"""The name of the rule of a gate that was given none."""


@register("countersign.gate/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """A gate's knowledge of its call, needed to go on. Stored: version 1, must stay readable.

    Attributes:
        info: What people were shown; None when nobody was asked, and in what is stored: there the
            interrupt has it already.
        approved: Whether the call may run; then the gate never asks again, but for a decision that
            is too old to begin with.
        arguments: With which arguments, in canonical form. Before it is approved, those that people
            are asked about; None when they are the model's.
        edited: Whether they are others than the model asked for.
        digest: Digest of what may run.
        asking: The slot of the gate whose people are asked; empty when they are its own.
        agreed: The rulings under which people have agreed to these arguments, by slot.
        decided_by: Who has agreed to these arguments, as far as answers say.
        decisions: The interrupts whose answers let it run.
        edited_by: Who made these arguments; empty when nobody is known to have.
        editors: Who edited them before that.
        lapsed: Whether what people had agreed to in gates around this one has lapsed.
        allow: The house's ruling by which these arguments may run without anybody's agreement; None
            where people agree to them, or no house judges.
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


class Demanding(Protocol):
    """A gate, as far as other gates of the same call have to know it."""

    @property
    def slot(self) -> str:
        """Tells it apart from the other gates of the call."""
        ...

    @property
    def fills_in(self) -> bool:
        """Whether its answers complete the arguments, and agree to nothing."""
        ...

    @property
    def asks_people(self) -> bool:
        """Whether people agree to calls in it because it is there."""
        ...

    async def demand(
        self, arguments: dict[str, Json], before: GateState, *, inside: bool
    ) -> CallInfo | Allow | Deny | None:
        """Return the question it demands for the call with other arguments.

        Args:
            arguments: Canonical.
            before: What it knew of the call as it was.
            inside: Whether another gate asks about the house's ruling on the call.

        Returns:
            `Allow` when the house lets it run; None when the gate has nothing against it.
        """
        ...


Demand: TypeAlias = tuple[str, CallInfo]
"""The slot of a gate, and what its people have to be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """The demands of all gates of a call.

    Attributes:
        left: What people have still to be asked.
        allow: The house's ruling, when it lets the call run.
    """

    left: list[Demand]
    allow: Allow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """A gate that has let a call pass, to what it wraps.

    Attributes:
        address: Of the call.
        gate: The gate.
        state: What it let pass.
    """

    address: Address
    gate: Demanding
    state: GateState

    def covers(self, arguments: Mapping[str, Json]) -> bool:
        """Whether it let pass just this call, or one of which an argument was still open."""
        passed = self.state.arguments or {}
        return all(
            name in arguments and canonical_json(arguments[name]) == canonical_json(value)
            for name, value in passed.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The rules' judgement of a waiting call with other arguments.

    Attributes:
        arguments: Which, in canonical form.
        info: What people have to be asked about them; None when nobody has to.
        rule: Name of the rule of the house that lets them run then; empty when none has to.
        denied: Why they must not run; empty when they may, or people may let them.
        failed: Whether they must not only because a policy failed: it may say otherwise later.
    """

    arguments: dict[str, Json]
    info: CallInfo | None = None
    rule: str = ""
    denied: str = ""
    failed: bool = False


class DeniedError(Exception):
    """A gate does not let the call run with these arguments, whoever agrees.

    Attributes:
        denied: Its ruling.
    """

    def __init__(self, denied: Deny) -> None:
        super().__init__(denied.reason)
        self.denied = denied


_around: ContextVar[tuple[Around, ...]] = ContextVar("agents_gates_around", default=())


@contextmanager
def inside(*gates: Around) -> Iterator[None]:
    """Let the gates inside of this one know what stands around them.

    Args:
        gates: Known to gates of the same call only, not to those of agents in it.
    """
    token = _around.set((*_around.get(), *gates))
    try:
        yield
    finally:
        _around.reset(token)


def gates_around() -> tuple[Around, ...]:
    """The gates around the one that works now, the outermost first."""
    here = current_address()
    return tuple(one for one in _around.get() if one.address == here)


def counting(state: GateState) -> tuple[Around, ...]:
    """The gates around this one whose people have agreed to what it is about."""
    if state.lapsed:
        return ()
    return tuple(one for one in gates_around() if one.covers(state.arguments or {}))


def deciders(gates: Sequence[Around]) -> tuple[str, ...]:
    """Return the people who were counted in some gates."""
    return tuple(dict.fromkeys(name for one in gates for name in one.state.decided_by))


def agreed(gate: Demanding, state: GateState) -> bool:
    """Whether people have agreed to the call in a gate, for itself or for one around it."""
    if state.info is None or (gate.fills_in and not state.asking):
        return False
    return bool(state.agreed) or not (state.edited or state.allow)


def changed(state: GateState, arguments: dict[str, Json]) -> GateState:
    """The state of a gate whose call has other arguments now: nobody has agreed to these."""
    return replace(
        state, approved=False, arguments=arguments, agreed={}, decided_by=(), decisions=()
    )


def all_lapsed(state: GateState) -> GateState:
    """The state of a gate whose call nobody has agreed to any more, nor in gates around it."""
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
    """The gate whose people agree to the house's ruling: the outermost that asked anybody."""
    around = gates_around()
    for one in around:
        if not state.lapsed and agreed(one.gate, one.state):
            return one.gate
    if not own.fills_in:
        return own
    return next((one.gate for one in around if not one.gate.fills_in), own)


async def demands(own: Demanding, state: GateState) -> Demands:
    """Return the questions still to be asked before a call may run with the arguments in a state.

    Args:
        own: The gate that works now.
        state: What it knows; the arguments are those that shall run.

    Returns:
        Its own demand first, then those of the gates around it, the outermost first.

    Raises:
        DeniedError: The call must not run.
    """
    wanted = state.arguments or {}
    left: list[Demand] = []
    allow: Allow | None = None
    bearer = _bearer(own, state)
    settled = {one.gate.slot for one in counting(state)}
    for gate, before in [(own, state), *((one.gate, one.state) for one in gates_around())]:
        demand = await gate.demand(wanted, before, inside=gate is not bearer)
        if isinstance(demand, Deny):
            raise DeniedError(demand)
        if isinstance(demand, Allow):
            allow = demand if gate is bearer else allow
            continue
        if demand is None or state.agreed.get(gate.slot) == demand.ruling:
            continue
        was = before.agreed.get(gate.slot) or (before.info.ruling if before.info else None)
        if gate is own or gate.slot not in settled or was != demand.ruling:
            left.append((gate.slot, demand))
    return Demands(left=left, allow=allow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """An answer that lets a call run.

    Attributes:
        ruling: The ruling that it is bound to.
        voters: All who were counted for it; none when nobody is named.
        editor: Who made the arguments; empty when nobody is named.
        editors: Who edited them before that.
        slot: The gate whose people were asked.
        edits: Whether it changed the arguments itself.
    """

    ruling: str
    voters: tuple[str, ...]
    editor: str
    editors: tuple[str, ...]
    slot: str
    edits: bool

    def counts_for(self, asked: CallInfo) -> bool:
        """Whether the person agreed to just what is demanded, and may."""
        if not self.ruling or self.ruling != asked.ruling:
            return False
        if self.editor:
            own = {self.editor, *self.editors}
            is_own = not self.voters or not own.isdisjoint(self.voters)
        else:
            is_own = self.edits
        return not (asked.exclude_editors and is_own)

    def cast(self, state: GateState, left: Sequence[Demand]) -> tuple[GateState, list[Demand]]:
        """Count it for one demand: for that of the people who were asked, if it fits.

        Returns:
            The state with it, and what is left to ask.
        """
        in_order = sorted(left, key=lambda demand: demand[0] != self.slot)
        choice = next((one for one in in_order if self.counts_for(one[1])), None)
        if choice is None:
            return state, list(left)
        slot, info = choice
        names = (*state.decided_by, *self.voters)
        counted = replace(state, agreed={**state.agreed, slot: info.ruling}, decided_by=names)
        return counted, [one for one in left if one is not choice]
