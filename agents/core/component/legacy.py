"""Eino's old interrupts: an error without an address, raised to ask people.

For code that is ported from Eino. The caller of such code adds the address and thereby the answer.
Tools, gates, graph nodes and agents do so automatically.

Source: Eino's interrupt architecture, "Backward Compatibility".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from agents.core.address import Segment
from agents.core.component.state import (
    address_segment,
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
)
from agents.core.interrupt import interrupt

__all__ = [
    "InterruptAndRerunError",
    "ResumeInfo",
    "resume_info",
    "wrap_interrupt_and_rerun_if_needed",
]


class InterruptAndRerunError(Exception):
    """An old interrupt: the code that raises it runs again after people have answered.

    As in Eino, an ordinary error: an `except Exception` swallows it. New code calls `interrupt`,
    whose signal passes.

    Attributes:
        extra: What people see. Must be storable.
    """

    def __init__(self, extra: object = None) -> None:
        super().__init__(f"people are needed: {extra}")
        self.extra = extra


def wrap_interrupt_and_rerun_if_needed(segment: Segment, error: BaseException) -> NoReturn:
    """Turn an old interrupt into an interrupt one segment below the current address.

    Args:
        segment: Segment of the component that raised the error.
        error: Any exception of the component. All others are raised again unchanged.

    Raises:
        InterruptSignal: The error was an old interrupt. Its id or address takes the answer.
        BaseException: The error was another one.
    """
    if isinstance(error, InterruptAndRerunError):
        with address_segment(segment.type, segment.id, segment.sub_id):
            interrupt(error.extra)
    raise error


@contextmanager
def old_interrupts() -> Iterator[None]:
    """Turn old interrupts that leave the block into interrupts at the current address."""
    try:
        yield
    except InterruptAndRerunError as error:
        interrupt(error.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeInfo:
    """A component's interrupt and answer in one value.

    Attributes:
        was_interrupted: Whether the component resumes from an interrupt.
        state: Its stored state, or None.
        is_resume_target: Whether it, or a component below it, was answered.
        has_resume_data: Whether it has an answer of its own.
        resume_data: Its answer.
        data: The info that people saw, such as a `ChatInterruptInfo`: Eino's old data field. None
            without an interrupt.
    """

    was_interrupted: bool
    state: object
    is_resume_target: bool
    has_resume_data: bool
    resume_data: object
    data: object


def resume_info(kind: object = object) -> ResumeInfo:
    """Return the interrupt and the answer of the current component.

    For agents whose `resume` reads Eino's old data field. New code uses `get_interrupt_state` and
    `get_resume_context`.

    Args:
        kind: See `get_resume_context`.

    Raises:
        OutsideRunError: No run is in progress here.
        NotAnsweredError: See `get_resume_context`.
    """
    was_interrupted, _, state = get_interrupt_state(object)
    is_target, has_data, data = get_resume_context(kind)
    return ResumeInfo(
        was_interrupted=was_interrupted,
        state=state,
        is_resume_target=is_target,
        has_resume_data=has_data,
        resume_data=data,
        data=interrupt_info(),
    )
