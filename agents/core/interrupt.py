"""The interrupt signal: how a component asks people, and stops until they have answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NoReturn

from agents.core.codec import decode, encode
from agents.core.errors import AgentChangedError, OutsideRunError, ResumeDataError, ResumeError
from agents.core.pending import Answerable, InterruptContext, InterruptNode, InterruptSignal
from agents.core.scope import Scope, current_scope

__all__ = [
    "InterruptContext",
    "InterruptSignal",
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


def interrupt(info: object) -> NoReturn:
    """Interrupt the run to ask people. The component starts again with the answer.

    Args:
        info: What people see; storable.

    Raises:
        InterruptSignal: Always. Let it pass.
        UnstorableValueError: The info cannot be stored; nobody is asked.
    """
    composite_interrupt(info, None)


def stateful_interrupt(info: object, state: object) -> NoReturn:
    """Interrupt the run to ask people, and store a state for the resume.

    Args:
        info: What people see; storable.
        state: What the component needs to go on; storable.

    Raises:
        InterruptSignal: Always. Let it pass.
        UnstorableValueError: Info or state cannot be stored; nobody is asked.
    """
    composite_interrupt(info, state)


def composite_interrupt(info: object, state: object, *signals: InterruptSignal) -> NoReturn:
    """Combine interrupts of child components into one, and store a state.

    Args:
        info: What people see of this component; storable.
        state: What the component needs to go on; storable.
        signals: What was caught from components below; none makes this the one who asks.

    Raises:
        InterruptSignal: Always. Let it pass.
        UnstorableValueError: Info or state cannot be stored; nobody is asked.
    """
    _raise(info, state, signals, is_hidden=False)


def pass_on(state: object, *signals: InterruptSignal) -> NoReturn:
    """Pass on interrupts of components below, and keep a state, without being seen.

    For parts of the runtime that people need not know of. Nobody can answer it.

    Args:
        state: What the component needs to go on; storable.
        signals: What was caught from components below; at least one.

    Raises:
        InterruptSignal: Always. Let it pass.
        UnstorableValueError: The state cannot be stored; nobody is asked.
    """
    if not signals:
        raise ValueError("pass_on() needs a signal that was caught; to ask, use interrupt()")
    _raise(None, state, signals, is_hidden=True)


def _raise(
    info: object, state: object, signals: tuple[InterruptSignal, ...], *, is_hidden: bool
) -> NoReturn:
    scope = current_scope("interrupt()")
    written = encode(info)
    misfit = scope.run.misfits.get(scope.point.id) if scope.point is not None else None
    if scope.point is not None and misfit is not None and not scope.point.children and not signals:
        raise_point(scope.point, misfit)  # the answer did not fit: nothing has changed
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
    """Raise the signal of a point. For parts of the runtime."""
    current_scope("interrupt()").watch.raised = True
    raise InterruptSignal(point, refusals)


def keep_waiting(*refusals: ResumeError) -> NoReturn:
    """Go on waiting exactly as before: same id, same info, same state.

    For a component that was resumed with an answer that it cannot take.

    Args:
        refusals: What is wrong with the answer; the runner raises the first after it has stored
            that the interrupt still waits.

    Raises:
        InterruptSignal: The same as the last time.
        ResumeError: There is nothing to go on waiting for.
    """
    scope = current_scope("keep_waiting()")
    point = scope.point or scope.run.topmost(scope.address)
    if point is None:
        raise refusals[0] if refusals else ResumeError(f"nothing waits at {scope.address}")
    raise_point(point, *refusals)


def check_answer(info: Answerable, answer: object) -> None:
    """Go on only with an answer that fits; with another one, go on waiting: see `keep_waiting`.

    Raises:
        InterruptSignal: It does not fit; whoever gave it is told.
    """
    try:
        info.check_answer(answer)
    except ResumeDataError as error:
        keep_waiting(error)


def refuse_orphans(gates: int = 0, *, known: Collection[str] = ()) -> None:
    """Make sure that no answer here is for a gate that is gone. For tools, right before they run.

    Args:
        gates: How many gates are around what runs next, and have not been entered yet.
        known: Slots of other gates around it.

    Raises:
        InterruptSignal: One is: what ran is not what people were asked about. All waits on.
    """
    try:
        scope = current_scope("a tool")
    except OutsideRunError:
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
    """Pass on signals that came out of a component's own task group, as one; an error wins.

    Returns:
        The errors in it.

    Raises:
        InterruptSignal: There are only signals in it. What the component kept before, it keeps.
        BaseExceptionGroup: There is more in it than signals and errors.
    """
    signals, rest = group.split(InterruptSignal)
    if signals is not None and rest is None:
        point = current_scope("a task group").point
        kept = decode(point.state) if point is not None else None
        composite_interrupt("several questions", kept, *_leaves(signals))
    if not isinstance(rest, ExceptionGroup):
        raise group
    return rest


@contextmanager
def ungrouped() -> Iterator[None]:
    """Do `unpack_group` with whatever group comes out of here.

    Raises:
        InterruptSignal: There were only signals in it.
        ExceptionGroup: The errors in it.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        raise unpack_group(group) from None


def _leaves(group: BaseExceptionGroup[InterruptSignal]) -> list[InterruptSignal]:
    found: list[InterruptSignal] = []
    for item in group.exceptions:
        found += _leaves(item) if isinstance(item, BaseExceptionGroup) else [item]
    return found


def _id(scope: Scope, *, is_composite: bool) -> str:
    """A new id for who asks; those around keep theirs, unless it was answered."""
    before = scope.point
    keep = is_composite and scope.run.untargeted == "preserve"
    if keep and before is not None and before.children and before.id not in scope.run.answers:
        return before.id
    return scope.run.new_id()
