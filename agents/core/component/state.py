"""A component's address in the run, its stored state, and its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar, overload

from agents.core.address import Address, Segment
from agents.core.asking.answers import is_unanswered, names_outcome
from agents.core.codec import decode
from agents.core.errors import AgentConfigError, NotAnsweredError, ResumeDataError
from agents.core.kinds import as_kind, fits, kind_name
from agents.core.pending import InterruptNode
from agents.core.scope import current_scope, entered

__all__ = ["address_segment", "get_interrupt_state", "get_resume_context", "state_slot"]

T = TypeVar("T")

_RESERVED = re.compile(r"gate(\d*|\.house)|doubt|question|.*[:/].*", re.DOTALL)
"""Slots in which gates, nodes, hooks and questions about started work store their state."""


@contextmanager
def address_segment(type: str, id: str, sub_id: str = "") -> Iterator[Address]:  # noqa: A002 - the documented names
    """Enter a child component with its own address, state and answer.

    Args:
        type: Kind of component: "tool", "node", …
        id: Name of the component.
        sub_id: Separates components of the same name. A component that runs several times in a
            run needs a new one each time.
    """
    scope = current_scope("address_segment()")
    address = scope.address.child(Segment(type, id, sub_id))
    point = scope.run.enter(address, "")
    # An approval covers the call above, never a component that runs inside it.
    with entered(replace(scope, address=address, slot="", point=point, granted=None)):
        yield address


@contextmanager
def state_slot(name: str) -> Iterator[None]:
    """Enter a wrapper's own state and answer, at the address of the wrapped component.

    For wrappers such as gates: they ask inside the slot and call the wrapped component outside of
    it. A wrapper that catches that component's signal raises `composite_interrupt` in the slot.

    Args:
        name: Unique among the wrappers at one address; never empty.

    Raises:
        AgentConfigError: The runtime uses this name. What is stored in its slot would be taken for
            the state of a gate, or for the answer to a question about started work.
    """
    if not name or _RESERVED.fullmatch(name):
        raise AgentConfigError(
            f"state_slot() cannot use the name {name!r}; use another, without ':' or '/'"
        )
    with runtime_slot(name):
        yield


@contextmanager
def runtime_slot(name: str) -> Iterator[None]:
    """Enter a slot of the runtime; see `state_slot`."""
    scope = current_scope("state_slot()")
    point = scope.run.enter(scope.address, name)
    with entered(replace(scope, slot=name, point=point)):
        yield


@overload
def get_interrupt_state(kind: type[T]) -> tuple[bool, bool, T | None]: ...


@overload
def get_interrupt_state(kind: object) -> tuple[bool, bool, object]: ...


def get_interrupt_state(kind: object) -> tuple[bool, bool, object]:
    """Return the state that this component stored when it was interrupted.

    Args:
        kind: A class or another type annotation: `str | None`, `list[str]`, ….

    Returns:
        Whether it was interrupted; whether it stored a state of that type; the state.

    Raises:
        AgentConfigError: The annotation is not a type that can be checked.
    """
    point = _looked_at("get_interrupt_state()")
    state = decode(point.state) if point is not None else None
    is_fit = fits(kind, state) and state is not None
    return point is not None, is_fit, as_kind(kind, state) if is_fit else None


def interrupt_info() -> object:
    """Return the info that people saw; None if the component was not interrupted."""
    point = _looked_at("interrupt_info()")
    return point.info if point is not None else None


@overload
def get_resume_context(kind: type[T]) -> tuple[bool, bool, T | None]: ...


@overload
def get_resume_context(kind: object) -> tuple[bool, bool, object]: ...


def get_resume_context(kind: object) -> tuple[bool, bool, object]:
    """Return the answer for this component.

    An answer of another type is not lost: if the component interrupts again because of it, the same
    interrupt stays pending and the sender gets a `ResumeDataError`. Expiry and cancellation are
    errors, so that they cannot be mistaken for answers. A type that includes `Expired` or
    `Cancelled` receives that outcome as data.

    Args:
        kind: A class or another type annotation: `str | None`, `list[str]`, …; `object` accepts any
            answer. An integer is a `float`, too.

    Returns:
        Whether it, or a component below it, was answered; whether the answer is its own and of
        that type; the answer.

    Raises:
        AgentConfigError: The annotation is not a type that can be checked.
        NotAnsweredError: The request expired or was cancelled, and `kind` does not include that.
    """
    fits(kind, None)  # a wrong annotation must fail before people are asked
    point = _looked_at("get_resume_context()")
    run = current_scope("get_resume_context()").run
    if point is None or not run.is_live(point):
        return False, False, None
    answer = run.answers.get(point.id)
    if answer is None:
        return True, False, None
    if is_unanswered(answer) and not names_outcome(kind, answer):
        # The component receives the outcome, although as an error.
        run.read.add(point.id)
        raise NotAnsweredError(str(point.address), answer)
    if not fits(kind, answer):
        # Not raised: the component may ask for another type next, or interrupt again.
        if point.id not in run.read:
            run.misfits[point.id] = ResumeDataError(
                f"the answer for {point.address} is a {type(answer).__name__}, expected "
                f"{kind_name(kind)}; answer again",
                target=point.id,
            )
        return True, False, None
    run.read.add(point.id)
    run.misfits.pop(point.id, None)
    return True, True, as_kind(kind, answer)


def is_checked(info: object) -> bool:
    """Whether the answer was checked against this info when the run was resumed.

    Answers that an earlier process received, or that the component stored, were not.
    """
    scope = current_scope("is_checked()")
    point = scope.point
    return point is not None and point.info is info and point.id in scope.run.checked


def _looked_at(what: str) -> InterruptNode | None:
    scope = current_scope(what)
    if scope.point is not None:
        # A component that reads any of this has seen its interrupt.
        scope.run.unread.discard(scope.point.id)
    return scope.point
