"""The run context: what all parts of a run share, and where in it the code that runs now stands.

A scope is a context variable, so that each task has its own. Entering an address looks up what
was stored for it, once: whoever enters the same address again in the same run is new there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias, cast

from pydantic_ai.messages import ModelMessage

from agents.core.address import Address
from agents.core.cancel import CancelInfo, CancelToken
from agents.core.codec import Json, decode, encode
from agents.core.errors import OutsideRunError, ResumeDataError, ResumeError, UnusedAnswerError
from agents.core.journal import Journal
from agents.core.observers import Observers
from agents.core.pending import InterruptNode, PointIndex

__all__ = ["AskAgain", "BeforeStart", "SessionValues", "StartingCall", "current_address"]

Untargeted = Literal["preserve", "reenter"]


class SessionValues(MutableMapping[str, object]):
    """Values that all agents and tools of a run share; stored with its checkpoint."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, object] = {}
        self._changed: dict[str, Json] = {}
        for key, value in (values or {}).items():
            self[key] = value

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __setitem__(self, key: str, value: object) -> None:
        # Encoded first: a value that cannot be stored is refused, and nothing has changed.
        self._changed[key] = encode([value])
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._changed[key] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def take_changes(self) -> dict[str, Json]:
        """Return the values set or deleted since the last time, for the journal."""
        changed, self._changed = self._changed, {}
        return changed

    def apply_changes(self, changes: Mapping[str, Json]) -> None:
        """Repeat what `take_changes` told."""
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = cast("list[object]", decode(value))[0]


def _tell_nobody(_: InterruptNode) -> None:
    return


_on_claim: ContextVar[Callable[[InterruptNode], None]] = ContextVar(
    "agents_on_claim", default=_tell_nobody
)


@contextmanager
def watching_claims(tell: Callable[[InterruptNode], None]) -> Iterator[None]:
    """Be told of each interrupt that somebody in here goes on from. For parts of the runtime."""
    token = _on_claim.set(tell)
    try:
        yield
    finally:
        _on_claim.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingCall:
    """A call that people have agreed to, or that a rule allows, right before it starts.

    Attributes:
        checkpoint_id: Which run it belongs to; empty when nothing is kept.
        address: Where in the run it stands, as text.
        tool: Name of the tool.
        arguments: What runs, exactly.
        decisions: Ids of the interrupts whose answers let it run; none when nobody was asked.
        goes_on: Whether it has started before, and goes on: after a question in it was answered, or
            after a crash.
    """

    checkpoint_id: str
    address: str
    tool: str
    arguments: Mapping[str, Json]
    decisions: tuple[str, ...]
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The call does not start, or go on: people are asked anew.

    Attributes:
        reason: Why, for the people who are asked; never empty.
    """

    reason: str


BeforeStart: TypeAlias = Callable[[StartingCall], Awaitable[Mapping[str, Json] | AskAgain]]
"""Looks at each gated call before it starts: gives what is noted with its start, and is given back
if nobody knows whether it ran (`InDoubtInfo.frozen`); or has people asked anew."""


@dataclass(slots=True, kw_only=True)
class RunContext:
    """The things that all parts of one run share.

    It lives from the start or resume of a run to its next interrupt or its end.

    Attributes:
        checkpoint_id: Which run it is; empty when nothing is kept.
        new_id: Makes ids of interrupts.
        journal: What has happened since the document was written.
        session: Values that all agents and tools share.
        waiting: The interrupts that the run is resumed from.
        answers: By id of the interrupt.
        checked: Ids of interrupts whose answers were found to fit when the run was resumed.
        untargeted: What happens to interrupts that nobody answered.
        counts: How often each agent began, and how many events it numbered; by address.
        transcript: What the agents of this turn said so far.
        streaming: Whether text is passed on while the model speaks.
        claimed: Ids of interrupts whose state was given out.
        entered: Addresses of agents that were resumed.
        unread: Ids of answered interrupts that somebody goes on from who has not looked at them.
        read: Ids of interrupts whose answers somebody took.
        misfits: What is wrong with answers that somebody asked for as something else, by id.
        cancel: Asked at safe points whether the run shall stop there.
        observers: Are told what happens.
        before_start: Looks at each gated call before it starts; None lets all of them.
        model_timeout: How long a model may send nothing; None waits for ever.
        house: The application's policy; None when there is none. See `agents.policy.house`.
        era: Enters idempotency keys; empty in the first.
        eras: By address, of what has another.
    """

    checkpoint_id: str
    new_id: Callable[[], str]
    journal: Journal
    session: SessionValues = field(default_factory=SessionValues)
    waiting: InterruptNode | None = None
    answers: Mapping[str, object] = field(default_factory=dict)
    checked: Container[str] = frozenset()
    untargeted: Untargeted = "preserve"
    counts: dict[str, int] = field(default_factory=dict)
    transcript: list[ModelMessage] = field(default_factory=list)
    streaming: bool = False
    claimed: set[str] = field(default_factory=set)
    entered: set[Address] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    misfits: dict[str, ResumeDataError] = field(default_factory=dict)
    cancel: CancelToken = field(default_factory=CancelToken)
    observers: Observers = field(default_factory=Observers)
    before_start: BeforeStart | None = None
    model_timeout: timedelta | None = None
    house: object = None
    era: str = ""
    eras: Mapping[str, str] = field(default_factory=dict)
    _index: PointIndex = field(init=False, repr=False, compare=False)
    _has_past: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._index = PointIndex(self.waiting, self.answers)
        self._has_past = self.journal.is_from_before

    def topmost(self, address: Address) -> InterruptNode | None:
        """Return the points that wait at or below an address, as one tree."""
        return self._index.topmost(address)

    def is_live(self, point: InterruptNode) -> bool:
        """Whether an answer is for this interrupt or for one below it."""
        return point.id in self._index.live

    def is_answered(self, address: Address) -> bool:
        """Whether something that waited at or below an address was answered."""
        point = self.topmost(address)
        return point is not None and self.is_live(point)

    def untouched(self, address: Address) -> InterruptNode | None:
        """Return the point at an address that must stay as it is: nothing in it was answered."""
        point = self.topmost(address)
        if point is None or self.untargeted == "reenter" or point.id in self.claimed:
            return None
        return None if self.is_live(point) else point

    def claim(self, address: Address, slot: str) -> InterruptNode | None:
        """Give out the interrupt that belongs to a scope; only once."""
        for point in self._index.at(address, slot):
            # Only once: a component that runs again in this run must not use one answer twice.
            if point.id not in self.claimed:
                self.claimed.add(point.id)
                _on_claim.get()(point)
                return point
        return None

    def enter(self, address: Address, slot: str) -> InterruptNode | None:
        """Give out the interrupt that belongs to a scope, to who must look at it."""
        point = self.claim(address, slot)
        if point is not None and point.id in self.answers:
            self.unread.add(point.id)
        return point

    def waits_at(self, address: Address, slot: str) -> bool:
        """Whether something waits in a slot of a component, or in what it wraps."""
        return bool(self._index.at(address, slot))

    def unclaimed(self, address: Address) -> list[InterruptNode]:
        """Return the live points at an address that nobody goes on from.

        A point is live when it, or one below it, was answered.
        """
        found = [point for point in self._index.all_at(address) if self.is_live(point)]
        return [point for point in found if point.id not in self.claimed]

    def unused(self, waiting: InterruptNode | None) -> list[ResumeError]:
        """Find answers that nobody used, when the run has come to its end or asks people again.

        Args:
            waiting: What waits now; others tell of the points that wait on.
        """
        # A process that died may have used them: its journal says what it did, not what it read.
        if self.waiting is None or self._has_past:
            return []
        still = {point.id for point in waiting.walk()} if waiting else set()
        return [
            self.misfits.get(point.id) or UnusedAnswerError(str(point.address), target=point.id)
            for point in self.waiting.walk()
            if point.id in self.answers and point.id not in still and not self._is_used(point)
        ]

    def _is_used(self, point: InterruptNode) -> bool:
        if point.id in self.read or isinstance(point.info, CancelInfo):
            return True
        if point.children or point.id in self.misfits:
            return False  # those around a question are entered whenever it is answered
        return point.id in self.claimed and point.id not in self.unread

    def recall(self, point: InterruptNode, answers: Mapping[str, object]) -> None:
        """Let an interrupt be found once more, with the answer that it had.

        Args:
            point: It may have been found already, or belong to an earlier segment.
            answers: Its own answer, by its id; empty when only something below it was answered.
        """
        self.answers = {**self.answers, **answers}
        self.claimed.discard(point.id)
        self._index.recall(point)

    def restore(
        self, address: Address, point: InterruptNode | None, answers: Mapping[str, object]
    ) -> None:
        """Let a component go on from an earlier interrupt of it, with the answers of that time.

        Args:
            address: The component.
            point: What waited there then; None when nothing did.
            answers: What was answered then; a newer answer for the same interrupt wins.
        """
        self.answers = {**answers, **self.answers}
        self._index.put(address, point, self.answers)

    def count(self, key: str) -> int:
        """Count one more; the first is 1."""
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]


@dataclass(slots=True)
class Watch:
    """Notices that a signal was raised inside a call, in whatever task or thread.

    Attributes:
        raised: Whether it was.
    """

    raised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The place of the code that runs now, and the context it runs in.

    Attributes:
        run: The run it belongs to.
        address: Its address.
        slot: Which of several components at this address.
        point: The interrupt that it goes on from; None when it is new here.
        watch: Notices a raised signal.
        granted: Arguments that people have agreed to run, once more.
        frozen: What was noted when they started for the first time.
        why: What the model said beside the tool call that runs now. Untrusted.
        sink: Takes pieces of the result of the tool call that runs now; None drops them.
    """

    run: RunContext
    address: Address = field(default_factory=Address)
    slot: str = ""
    point: InterruptNode | None = None
    watch: Watch = field(default_factory=Watch)
    granted: dict[str, Json] | None = None
    frozen: Mapping[str, Json] = field(default_factory=dict)
    why: str = ""
    sink: Callable[[str], None] | None = None


_scope: ContextVar[Scope] = ContextVar("agents_scope")


def current_scope(what: str) -> Scope:
    """The scope of the code that runs now. For parts of the runtime.

    Args:
        what: Who asks, for the error.

    Raises:
        OutsideRunError: No run is going on here.
    """
    try:
        return _scope.get()
    except LookupError:
        raise OutsideRunError(what) from None


def outer_house() -> object:
    """The house of the run in which another one begins; None when there is none."""
    scope = _scope.get(None)
    return scope.run.house if scope is not None else None


class entered:  # noqa: N801 - called like the function that `contextmanager` would make of it
    """Make a scope the current one. For parts of the runtime.

    Args:
        scope: The scope.
    """

    __slots__ = ("_scope", "_token")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> Scope:
        self._token = _scope.set(self._scope)
        return self._scope

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._token)


def current_address() -> Address:
    """The address of the code that runs now."""
    return current_scope("current_address()").address
