"""The run context, shared by all parts of a run; the scope of the current code.

A scope is a context variable, so each task has its own. Entering an address looks up its stored
interrupt once. A second entry at the same address in the same run finds nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias, cast

from pydantic_ai.messages import ModelMessage

from agents.core.address import Address
from agents.core.cancel import CancelInfo, CancelToken
from agents.core.codec import Json, decode, encode
from agents.core.errors import OutsideRunError, ResumeDataError, ResumeError, UnusedAnswerError
from agents.core.journal import Journal
from agents.core.observers import Observers
from agents.core.pending import InterruptNode, PointIndex, Untargeted

__all__ = ["AskAgain", "BeforeStart", "SessionValues", "StartingCall", "current_address"]


class SessionValues(MutableMapping[str, object]):
    """Values shared by all agents and tools of a run; stored with its checkpoint.

    The values to begin with are stored already, so they are no changes.
    """

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values = dict(values or {})
        self._changed: dict[str, Json] = {}

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __setitem__(self, key: str, value: object) -> None:
        # Encode first: an unstorable value must leave the session unchanged.
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
        """Return the values set or deleted since the last call, for the journal."""
        changed, self._changed = self._changed, {}
        return changed

    def apply_changes(self, changes: Mapping[str, Json]) -> None:
        """Apply changes that `take_changes` returned."""
        for key, value in changes.items():
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = cast("list[object]", decode(value))[0]


_on_claim: ContextVar[Callable[[InterruptNode], None] | None] = ContextVar(
    "agents_on_claim", default=None
)


@contextmanager
def watching_claims(tell: Callable[[InterruptNode], None]) -> Iterator[None]:
    """Call `tell` for each interrupt that a component in the block resumes. Internal."""
    token = _on_claim.set(tell)
    try:
        yield
    finally:
        _on_claim.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingCall:
    """An approved or allowed call, or a node behind a breakpoint, right before it starts.

    Attributes:
        checkpoint_id: Id of the run; empty if the run is not stored.
        address: Address of the call or node, as text.
        tool: Name of the tool or node.
        tags: Tags of the tool.
        arguments: The exact arguments; empty for a node.
        decisions: Ids of the interrupts whose answers approved it; empty without approval.
        grant: Name of the standing grant that lets it start, and that the start uses; empty if
            people or a rule do.
        may_park: Whether the call can wait; see `Park`. Nodes and stages cannot.
        parked: What the application kept when the call was parked; None if it was not.
        only_checks: Whether the call does not start yet: only its decisions are checked. When it
            starts, the application is called again.
        goes_on: Whether the call had started before and resumes, after an answer.
        repeats: Whether an idempotent call runs again, after a crash.
        is_answered: Whether the call has no gate and starts with an answer to its own question.
        is_cancellable: Whether a person's stop cancels the call.
        is_idempotent: Whether a second run of the call has no further effect.
        segment: Identifies one start at this address. A start that is repeated after a crash has
            the same number; a start that people allowed again has another one.
        secret: Names of arguments that the tool's author marked as secret.
        shown: Names of arguments that look secret, but are not, according to the author.
    """

    checkpoint_id: str
    address: str
    tool: str
    arguments: Mapping[str, Json]
    tags: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    grant: str = ""
    may_park: bool = False
    parked: Mapping[str, Json] | None = None
    only_checks: bool = False
    goes_on: bool = False
    repeats: bool = False
    is_answered: bool = False
    is_cancellable: bool = False
    is_idempotent: bool = False
    segment: int = 0
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The call must not start or resume; approval is requested again.

    Attributes:
        reason: Reason for the approvers; never empty.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """The call must not start now. It waits, as approved, until the application resumes it.

    Attributes:
        reason: Why it waits, for people; never empty.
        kept: Data for the application, which it gets back with the next try; see `StartingCall`.
    """

    reason: str
    kept: Mapping[str, Json] = field(default_factory=dict)


BeforeStart: TypeAlias = Callable[[StartingCall], Awaitable[Mapping[str, Json] | AskAgain | Park]]
"""Decides whether a call may start, and records that it does, before the journal and the tool.

Returns `AskAgain` to request approval again, `Park` to let a call wait that `may_park`, or data to
store with the start, which the application gets back if the outcome is in doubt
(`InDoubtInfo.frozen`). If it raises, nothing starts, nothing is in doubt, and the run ends with the
error."""


@dataclass(slots=True, kw_only=True)
class RunContext:
    """The context that all parts of one run share.

    Exists from the start or resume of a run to its next interrupt or its end.

    Attributes:
        checkpoint_id: Id of the run; empty if the run is not stored.
        new_id: Creates ids of interrupts.
        waiting: The interrupts that the run resumes from.
        answers: Answers by interrupt id.
        checked: Ids of interrupts whose answers were validated at the resume.
        untargeted: What happens to interrupts without an answer.
        counts: By address: how often each agent began, and how many events it numbered.
        transcript: What the agents of this turn have said.
        streaming: Whether text is passed on while the model speaks.
        claimed: Ids of interrupts whose state was returned to a component.
        entered: Addresses of agents that were resumed.
        unread: Ids of answered interrupts that were resumed without reading the answer.
        read: Ids of interrupts whose answers were read.
        misfits: Errors of answers that were read as another type, by interrupt id.
        before_start: Lets each gated call start, or not; None lets all start.
        model_timeout: How long a model may send nothing; None means no limit.
        tool_timeout: Longest time of a call, for tools without their own; None means no limit.
        budget: Limits of what models may use, or None. See `agents.core.asking.limits`.
        house: The application's policy or None. See `agents.policy.house`.
        epoch: Part of idempotency keys; empty in the first epoch.
        epochs: Different epochs, by address.
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
    tool_timeout: timedelta | None = None
    budget: object = None
    house: object = None
    epoch: str = ""
    epochs: Mapping[str, str] = field(default_factory=dict)
    _index: PointIndex = field(init=False, repr=False, compare=False)
    _has_past: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._index = PointIndex(self.waiting, self.answers)
        # Now, because `forget_starts` may remove entries later.
        self._has_past = self.journal.is_from_before

    def topmost(self, address: Address) -> InterruptNode | None:
        """Return the interrupts at or below an address, as one tree."""
        return self._index.topmost(address)

    def is_live(self, point: InterruptNode) -> bool:
        """Whether this interrupt or one below it was answered."""
        return point.id in self._index.live

    def is_answered(self, address: Address) -> bool:
        """Whether an interrupt at or below an address was answered."""
        point = self.topmost(address)
        return point is not None and self.is_live(point)

    def untouched(self, address: Address) -> InterruptNode | None:
        """Return the interrupt at an address if nothing in it was answered, else None."""
        point = self.topmost(address)
        if point is None or self.untargeted == "reenter" or point.id in self.claimed:
            return None
        return None if self.is_live(point) else point

    def claim(self, address: Address, slot: str) -> InterruptNode | None:
        """Return the interrupt of a scope, at most once."""
        for point in self._index.at(address, slot):
            # Once: a component that runs again in this run must not use an answer twice.
            if point.id not in self.claimed:
                own = point.own
                self.claimed |= {point.id, own.id}
                if (tell := _on_claim.get()) is not None:
                    tell(own)
                return own
        return None

    def enter(self, address: Address, slot: str) -> InterruptNode | None:
        """Return the interrupt of a scope and mark its answer as not read yet."""
        point = self.claim(address, slot)
        if point is not None and point.id in self.answers:
            self.unread.add(point.id)
        return point

    def waits_at(self, address: Address, slot: str) -> bool:
        """Whether a component in a slot, or a component that it wraps, has a pending interrupt."""
        return bool(self._index.at(address, slot))

    def unclaimed(self, address: Address) -> list[InterruptNode]:
        """Return the live interrupts at an address that no component has resumed.

        An interrupt is live if it, or one below it, was answered.
        """
        points = [point for point in self._index.all_at(address) if self.is_live(point)]
        return [point for point in points if point.id not in self.claimed]

    def journaled(self, kind: str, at: str) -> dict[str, Json] | None:
        """Return the result that an earlier process journaled, with its session changes applied."""
        entry = self.journal.find(kind, at)
        if entry is not None:
            self.session.apply_changes(cast("dict[str, Json]", entry["session"]))
        return entry

    async def journal_result(self, kind: str, at: str, result: dict[str, Json]) -> None:
        """Journal a result with its session changes: a recovered run has both or neither."""
        await self.journal.append(kind, at, {**result, "session": self.session.take_changes()})

    def unused(self, waiting: InterruptNode | None) -> list[ResumeError]:
        """Return errors for answers that no component used, at the end of a run segment.

        Answers of interrupts in `waiting` were refused with an error, so they do not count.
        """
        # A crashed process may have read them: the journal records actions, not reads.
        if self.waiting is None or self._has_past:
            return []
        # The pending ones were refused, with errors of their own.
        still = {point.id for point in waiting.walk()} if waiting else set()
        return [
            self.misfits.get(point.id) or UnusedAnswerError(str(point.address), target=point.id)
            for point in self.waiting.walk()
            if point.id in self.answers and point.id not in still and not self._is_used(point)
        ]

    def _is_used(self, point: InterruptNode) -> bool:
        # A cancellation needs no answer, so an answer to it is never unused.
        if point.id in self.read or isinstance(point.info, CancelInfo):
            return True
        if point.children or point.id in self.misfits:
            return False  # parents are entered whenever a child is answered
        return point.id in self.claimed and point.id not in self.unread

    def recall(self, point: InterruptNode, answers: Mapping[str, object]) -> None:
        """Make an interrupt available again, with its earlier answer.

        The interrupt may have been claimed, or belong to an earlier segment. `answers` is empty if
        only an interrupt below it was answered.
        """
        self.answers = {**self.answers, **answers}
        self.claimed.discard(point.id)
        self._index.recall(point)

    def restore(
        self, address: Address, point: InterruptNode | None, answers: Mapping[str, object]
    ) -> None:
        """Resume a component from an earlier interrupt, with the answers of that time.

        A newer answer to the same interrupt takes precedence.
        """
        self.answers = {**answers, **self.answers}
        self._index.put(address, point, self.answers)

    def count(self, key: str) -> int:
        """Increment a counter and return it; the first value is 1."""
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]


@dataclass(slots=True)
class Watch:
    """Records that an interrupt signal was raised in a call, in any task or thread."""

    raised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The position of the current code in a run.

    Attributes:
        slot: Separates components at the same address.
        point: The interrupt that the component resumes from, or None.
        watch: Records a raised signal.
        granted: Approved arguments of a call that runs again.
        granted_by: Ids of the interrupts whose answers let the call run again.
        frozen: Data that was stored with the first start of the call.
        why: The model's text beside the current tool call. Untrusted.
        sink: Receives parts of the current tool's result; None drops them.
        progress: Receives reports of the current tool; None drops them.
    """

    run: RunContext
    address: Address = field(default_factory=Address)
    slot: str = ""
    point: InterruptNode | None = None
    watch: Watch = field(default_factory=Watch)
    granted: dict[str, Json] | None = None
    granted_by: tuple[str, ...] = ()
    frozen: Mapping[str, Json] = field(default_factory=dict)
    why: str = ""
    sink: Callable[[str], None] | None = None
    progress: Callable[[str, float | None], None] | None = None


_scope: ContextVar[Scope] = ContextVar("agents_scope")


def current_scope(what: str) -> Scope:
    """Return the scope of the current code. For internal parts of the runtime."""
    try:
        return _scope.get()
    except LookupError:
        raise OutsideRunError(what) from None


def outer_house() -> object:
    """Return the policy of the outer run when a nested run begins, or None."""
    scope = _scope.get(None)
    return scope.run.house if scope is not None else None


class entered:  # noqa: N801 - called like the function that `contextmanager` would make of it
    """Make a scope the current one. For internal parts of the runtime."""

    __slots__ = ("_scope", "_token")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> Scope:
        self._token = _scope.set(self._scope)
        return self._scope

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._token)


def current_address() -> Address:
    """Return the address of the current code."""
    return current_scope("current_address()").address


def answered_here() -> tuple[str, ...]:
    """Return the id of the interrupt that the current component resumes from, if any."""
    point = current_scope("a component").point
    return (point.id,) if point is not None else ()


@dataclass(frozen=True, slots=True)
class Beginning:
    """The answers that were claimed when a component began.

    For internal parts of the runtime that run a component a second time.
    """

    address: Address
    claimed: frozenset[str]
    entered: frozenset[Address]

    @classmethod
    def of(cls, scope: Scope) -> Beginning:
        """Record the current state."""
        run = scope.run
        return cls(scope.address, frozenset(run.claimed), frozenset(run.entered))

    def restore(self, run: RunContext) -> None:
        """Undo the claims that were made since, at this address and below."""
        top = run.topmost(self.address)
        for point in top.walk() if top else ():
            if point.id not in self.claimed:
                run.claimed.discard(point.id)
        # Other calls run concurrently: their claims must not change.
        again = {
            address for address in run.entered - self.entered if self.address.is_prefix_of(address)
        }
        run.entered -= again
