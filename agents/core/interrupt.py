"""Interrupts: a component stops the run to ask people and resumes with the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from agents.core.address import Address
from agents.core.asking.answers import Expired
from agents.core.asking.infos import RuntimeInfo
from agents.core.codec import decode, encode, register
from agents.core.errors import (
    AgentChangedError,
    AgentConfigError,
    NotAnsweredError,
    OutsideRunError,
    ResumeDataError,
    ResumeError,
)
from agents.core.pending import (
    Answerable,
    InterruptContext,
    InterruptNode,
    InterruptSignal,
    Unanswerable,
)
from agents.core.scope import Scope, current_scope

__all__ = [
    "InterruptContext",
    "InterruptSignal",
    "TaskGroupInfo",
    "composite_interrupt",
    "interrupt",
    "keep_waiting",
    "pass_on",
    "raise_point",
    "refuse_orphans",
    "stateful_interrupt",
    "ungrouped",
    "unpack_group",
]

_Leaf = TypeVar("_Leaf", bound=BaseException)


@register("countersign.task-group-info/1")
@dataclass(frozen=True, slots=True)
class TaskGroupInfo(Unanswerable):
    """Tasks of one `asyncio.TaskGroup` ask. They all run again when one is answered.

    So all of them are answered in one resume. Stored: version 1, must stay readable.
    """

    def __str__(self) -> str:
        return "several questions"


def interrupt(info: object) -> NoReturn:
    """Interrupt the run to ask people. The component starts again with the answer.

    The code before the question runs again then, and nothing of what it computed is left. Ask
    before an effect, or keep what happened with `stateful_interrupt`.

    Each resume brings only the answers of that resume. A component that asks several questions one
    after the other keeps its earlier answers with `stateful_interrupt`. Questions of one
    `asyncio.TaskGroup` must be answered in one resume: what was answered alone is asked again. The
    bot waits for the last answer. To go on after each answer, ask in the agents of a
    `ParallelAgent` or in the nodes of a graph, which are resumed each on its own.

    Example:
        Ask in a tool::

            @tool
            async def book(city: str) -> str:
                _, has_answer, day = get_resume_context(str)
                if not has_answer:
                    interrupt(f"Which day to {city}?")
                return f"booked {city} on {day}"

    Args:
        info: What people see. Must be storable.

    Raises:
        InterruptSignal: Always. Do not catch it.
        AgentConfigError: Only a gate or a node can ask with this info; no interrupt is created.
        UnstorableValueError: The info cannot be stored; no interrupt is created.
    """
    composite_interrupt(info, None)


def stateful_interrupt(info: object, state: object) -> NoReturn:
    """Interrupt the run to ask people, and store a state for the resume.

    Args:
        info: What people see. Must be storable.
        state: What the component needs to resume. Must be storable.

    Raises:
        InterruptSignal: Always. Do not catch it.
        AgentConfigError: Only a gate or a node can ask with this info; no interrupt is created.
        UnstorableValueError: Info or state cannot be stored; no interrupt is created.
    """
    composite_interrupt(info, state)


def composite_interrupt(info: object, state: object, *signals: InterruptSignal) -> NoReturn:
    """Combine interrupts of child components into one, and store a state.

    Args:
        info: What people see of this component. Must be storable.
        state: What the component needs to resume. Must be storable.
        signals: Signals caught from child components. Without any, this component itself asks.

    Raises:
        InterruptSignal: Always. Do not catch it.
        AgentConfigError: Only a gate or a node can ask with this info, or one of the signals is no
            signal; no interrupt is created.
        UnstorableValueError: Info or state cannot be stored; no interrupt is created.
    """
    _raise(info, state, signals, is_hidden=False)


def pass_on(state: object, *signals: InterruptSignal) -> NoReturn:
    """Pass on interrupts of child components and store a state, invisibly to people.

    For internal parts of the runtime. The resulting interrupt cannot be answered.

    Args:
        state: What the component needs to resume. Must be storable.
        signals: Signals caught from child components; at least one.

    Raises:
        InterruptSignal: Always. Do not catch it.
        UnstorableValueError: The state cannot be stored; no interrupt is created.
    """
    if not signals:
        raise ValueError("pass_on() needs a signal that was caught; to ask, use interrupt()")
    _raise(None, state, signals, is_hidden=True)


def _raise(
    info: object, state: object, signals: tuple[InterruptSignal, ...], *, is_hidden: bool
) -> NoReturn:
    scope = current_scope("interrupt()")
    for signal in signals:
        if not isinstance(signal, InterruptSignal):
            raise AgentConfigError(
                f"{scope.address} combines interrupts, and {signal!r} is none; raise an error as "
                "it is, and give only the signals that were caught"
            ) from (signal if isinstance(signal, BaseException) else None)
    if isinstance(info, RuntimeInfo) and not re.fullmatch(info.asked_in, scope.slot):
        name = type(info).__name__
        raise AgentConfigError(f"{scope.address} cannot ask with {name}; use {info.use_instead}")
    # First: an info that cannot be stored must not create an interrupt.
    written = encode(info)
    misfit = scope.run.misfits.get(scope.point.id) if scope.point is not None else None
    if scope.point is not None and misfit is not None and not scope.point.children and not signals:
        raise_point(scope.point, misfit)  # the answer did not fit, so the interrupt stays the same
    point = InterruptNode(
        id=_id(scope, is_composite=bool(signals)),
        address=scope.address,
        slot=scope.slot,
        info=info,
        state=encode(state),
        children=tuple(signal.point for signal in signals),
        is_hidden=is_hidden,
    )
    refusals = tuple(refusal for signal in signals for refusal in signal.refusals)
    raise_point(point.with_info(written), *refusals)


def raise_point(point: InterruptNode, *refusals: ResumeError) -> NoReturn:
    """Raise the signal of an interrupt. For internal parts of the runtime."""
    current_scope("interrupt()").watch.raised = True
    raise InterruptSignal(point, refusals)


def keep_waiting(*refusals: ResumeError) -> NoReturn:
    """Keep the current interrupt pending, with the same id, info and state.

    For a component that was resumed with an unusable answer.

    Args:
        refusals: Why the answer was refused. The runner stores the pending interrupt, then raises
            the first of them.

    Raises:
        InterruptSignal: The same as before the resume.
        ResumeError: No interrupt is being resumed.
    """
    scope = current_scope("keep_waiting()")
    point = scope.point or scope.run.topmost(scope.address)
    if point is None:
        raise refusals[0] if refusals else ResumeError(f"nothing waits at {scope.address}")
    raise_point(point, *refusals)


def check_answer(info: Answerable, answer: object) -> None:
    """Check an answer; keep the interrupt pending if it does not fit."""
    try:
        info.check_answer(answer)
    except ResumeDataError as error:
        keep_waiting(error)


def refuse_orphans(gates: int = 0, *, known: Collection[str] = ()) -> None:
    """Refuse answers to gates that no longer exist. For tools, right before they run.

    Args:
        gates: Number of gates around the next component that have not been entered yet.
        known: Slots of other gates around it.

    Raises:
        InterruptSignal: An answer belongs to a removed gate, so the call is not the one that
            people saw. All interrupts stay pending.
    """
    try:
        scope = current_scope("a tool")
    except OutsideRunError:
        # Called directly, without a run: no answer can be lost.
        return
    known, last = {*known, *(f"gate{at}" for at in range(gates))}, scope.address.segments[-1:]
    is_call = any(segment.type == "tool" for segment in last)
    for point in scope.run.unclaimed(scope.address):
        if point.slot.startswith("gate") or (is_call and not gates and point.slot):
            top = scope.run.topmost(scope.address)
            if point.slot not in known and top is not None:
                at, was = str(scope.address), f"a question of {point.slot!r}"
                raise_point(top, AgentChangedError(at, was, "nothing that takes the answer"))


def unpack_group(group: BaseExceptionGroup[BaseException]) -> Exception:
    """Merge the interrupt signals of a component's task group. Errors take precedence.

    A question of the component itself stays as it is, so that the component finds the answer.

    Returns:
        The errors in the group; see `merge_unanswered`.

    Raises:
        InterruptSignal: The group contains only signals. The component's stored state is kept,
            unless one of its tasks has stored another.
        AgentConfigError: Two tasks asked at the same address.
        BaseExceptionGroup: The group contains other exceptions, too.
    """
    signals, rest = group.split(InterruptSignal)
    if signals is not None and rest is None:
        _merge(_leaves(signals))
    if not isinstance(rest, ExceptionGroup):
        raise group
    return merge_unanswered(rest)


def merge_unanswered(error: Exception) -> Exception:
    """Return the one error of a task group whose questions all ended without an answer.

    A cancelled question outranks an expired one. Other errors are returned as they are.
    """
    if not isinstance(error, ExceptionGroup):
        return error
    unanswered, rest = error.split(NotAnsweredError)
    if unanswered is None or rest is not None:
        return error
    errors = _leaves(unanswered)
    return next((leaf for leaf in errors if not isinstance(leaf.outcome, Expired)), errors[0])


@contextmanager
def ungrouped() -> Iterator[None]:
    """Apply `unpack_group` to an exception group that leaves the block.

    Raises:
        InterruptSignal: The group contained only signals.
        Exception: See `unpack_group`.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        raise unpack_group(group) from None


def _merge(signals: Iterable[InterruptSignal]) -> NoReturn:
    """Raise one signal for those of a task group."""
    scope, by_place = current_scope("a task group"), dict[tuple[Address, str], InterruptSignal]()
    for signal in signals:
        point = signal.point
        # Two tasks that refuse one answer raise the same interrupt.
        if by_place.setdefault((point.address, point.slot), signal).point.id != point.id:
            raise AgentConfigError(
                f"two tasks of a task group asked at {point.address}; ask each question in an "
                "address_segment() of its own, so that each task finds its own answer"
            )
    own = by_place.get((scope.address, scope.slot))
    if own is not None and len(by_place) == 1:
        raise own.with_traceback(None)
    before = own.point if own is not None else scope.point
    kept = decode(before.state) if before is not None else None
    composite_interrupt(TaskGroupInfo(), kept, *by_place.values())


def _leaves(group: BaseExceptionGroup[_Leaf]) -> list[_Leaf]:
    leaves: list[_Leaf] = []
    for item in group.exceptions:
        leaves += _leaves(item) if isinstance(item, BaseExceptionGroup) else [item]
    return leaves


def _id(scope: Scope, *, is_composite: bool) -> str:
    """Return a new id for a root cause. A parent keeps its id until it was answered."""
    before = scope.point
    keep = is_composite and scope.run.untargeted == "preserve"
    if keep and before is not None and before.children and before.id not in scope.run.answers:
        return before.id
    return scope.run.new_id()
