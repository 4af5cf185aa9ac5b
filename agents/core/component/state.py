"""A component's place in the run, the state that it kept there, and the answer for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar, overload

from agents.core.address import Address, Segment
from agents.core.asking.answers import is_unanswered, names_outcome
from agents.core.codec import decode
from agents.core.errors import NotAnsweredError, ResumeDataError
from agents.core.kinds import as_kind, fits
from agents.core.pending import InterruptNode
from agents.core.scope import current_scope, entered

__all__ = ["address_segment", "get_interrupt_state", "get_resume_context", "state_slot"]

T = TypeVar("T")


@contextmanager
def address_segment(type: str, id: str, sub_id: str = "") -> Iterator[Address]:  # noqa: A002 - the documented names
    """Stand one step lower, as a component of its own, with its own state and answer.

    Args:
        type: What kind of component: "tool", "node", …
        id: Its name.
        sub_id: Tells several of that name apart. A component that runs several times in a run
            needs a new one each time.
    """
    scope = current_scope("address_segment()")
    address = scope.address.child(Segment(type, id, sub_id))
    point = scope.run.enter(address, "")
    # What people granted is for the call above, never for what runs inside of it.
    with entered(replace(scope, address=address, slot="", point=point, granted=None)):
        yield address


@contextmanager
def state_slot(name: str) -> Iterator[None]:
    """Use a state and an answer of one's own, at the address of what one wraps.

    For wrappers, such as gates: they ask inside the slot, and call what they wrap outside of it.
    A wrapper that catches the signal of what it wraps raises `composite_interrupt` inside the slot.

    Args:
        name: Unique among the wrappers at one address; never empty.
    """
    scope = current_scope("state_slot()")
    point = scope.run.enter(scope.address, name)
    with entered(replace(scope, slot=name, point=point)):
        yield


@overload
def get_interrupt_state(kind: type[T]) -> tuple[bool, bool, T | None]: ...


@overload
def get_interrupt_state(kind: object) -> tuple[bool, bool, object]: ...


def get_interrupt_state(kind: object) -> tuple[bool, bool, object]:
    """Return the state that this component kept when it was interrupted.

    Args:
        kind: A class, or what annotations have in its place: `str | None`, `list[str]`, ….

    Returns:
        Whether it was interrupted; whether it kept a state of that kind; the state.

    Raises:
        AgentConfigError: There is no such kind.
    """
    point = _looked_at("get_interrupt_state()")
    state = decode(point.state) if point is not None else None
    is_fit = fits(kind, state) and state is not None
    return point is not None, is_fit, as_kind(kind, state) if is_fit else None


def interrupt_info() -> object:
    """Return the info that people see of this component; None when it was not interrupted."""
    point = _looked_at("interrupt_info()")
    return point.info if point is not None else None


@overload
def get_resume_context(kind: type[T]) -> tuple[bool, bool, T | None]: ...


@overload
def get_resume_context(kind: object) -> tuple[bool, bool, object]: ...


def get_resume_context(kind: object) -> tuple[bool, bool, object]:
    """The answer for this component.

    An answer of another kind is not lost: when the component asks again because of it, its question
    waits on as it was, and whoever answered is told (`ResumeDataError`). A question without an
    answer is an error, so that nothing can be taken for one; a kind that names `Expired` or
    `Cancelled` gets that outcome as data.

    Args:
        kind: A class, or what annotations have in its place: `str | None`, `list[str]`, …; `object`
            takes any answer. An integer is a `float`, too.

    Returns:
        Whether an answer is for it or for something below it; whether the answer is its own and
        of that kind; the answer.

    Raises:
        AgentConfigError: There is no such kind.
        NotAnsweredError: The question expired or was called off, and the kind does not name that.
    """
    fits(kind, None)  # a mistake is found before anybody is asked
    point = _looked_at("get_resume_context()")
    run = current_scope("get_resume_context()").run
    if point is None or not run.is_live(point):
        return False, False, None
    answer = run.answers.get(point.id)
    if answer is None:
        return True, False, None
    if is_unanswered(answer) and not names_outcome(kind, answer):
        run.read.add(point.id)
        raise NotAnsweredError(str(point.address), answer)
    if not fits(kind, answer):
        # Kept and not raised: the component may ask for another kind next, or ask people again.
        if point.id not in run.read:
            run.misfits[point.id] = ResumeDataError(
                f"the answer for {point.address} is a {type(answer).__name__}, expected "
                f"{getattr(kind, '__name__', kind)}; answer again",
                target=point.id,
            )
        return True, False, None
    run.read.add(point.id)
    run.misfits.pop(point.id, None)
    return True, True, as_kind(kind, answer)


def is_checked(info: object) -> bool:
    """Whether the answer for this component was found to fit this info when the run was resumed.

    One that comes from elsewhere was not: what a dead process was resumed with, or what a component
    kept.
    """
    scope = current_scope("is_checked()")
    point = scope.point
    return point is not None and point.info is info and point.id in scope.run.checked


def _looked_at(what: str) -> InterruptNode | None:
    scope = current_scope(what)
    if scope.point is not None:
        scope.run.unread.discard(scope.point.id)
    return scope.point
