"""The interrupts of before there were addresses: an error that says only what people shall see.

For code that is moved here from Eino's old ways. Whoever calls such code adds what the error lacks:
the place, and so the answer. Tools, gates, graph nodes and agents do that by themselves.

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
    """People are needed, and the code that raises this begins again after their answer.

    An ordinary error, as it was: an `except Exception` on its way swallows it. New code calls
    `interrupt`, whose signal passes.

    Attributes:
        extra: What people see; storable.
    """

    def __init__(self, extra: object = None) -> None:
        super().__init__(f"people are needed: {extra}")
        self.extra = extra


def wrap_interrupt_and_rerun_if_needed(segment: Segment, error: BaseException) -> NoReturn:
    """Give an old interrupt its address, one segment below the current one, and ask people.

    Args:
        segment: The component that raised it; names it in its address.
        error: What came out of it. All but an old interrupt is raised again as it is.

    Raises:
        InterruptSignal: It was an interrupt; people can answer it by its id or its address.
        BaseException: It was not.
    """
    if isinstance(error, InterruptAndRerunError):
        with address_segment(segment.type, segment.id, segment.sub_id):
            interrupt(error.extra)
    raise error


@contextmanager
def old_interrupts() -> Iterator[None]:
    """Let old interrupts that come out of here ask people at the current address.

    Raises:
        InterruptSignal: There was one.
    """
    try:
        yield
    except InterruptAndRerunError as error:
        interrupt(error.extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeInfo:
    """All that a component may know of its interrupt and its answer, in one value.

    Attributes:
        was_interrupted: Whether it goes on from an interrupt.
        state: What it kept; None when it kept nothing.
        is_resume_target: Whether an answer is for it, or for something below it.
        has_resume_data: Whether it has an answer of its own.
        resume_data: That answer.
        data: What people were shown of it: the old data field, by which agents of then find out
            where they stood, such as a `ChatInterruptInfo`; None when there was no interrupt.
    """

    was_interrupted: bool
    state: object
    is_resume_target: bool
    has_resume_data: bool
    resume_data: object
    data: object


def resume_info(kind: object = object) -> ResumeInfo:
    """Return all that is known of the interrupt and the answer of the component that runs now.

    For agents whose `resume` reads the old data field. New code asks for what it needs:
    `get_interrupt_state` and `get_resume_context`.

    Args:
        kind: See `get_resume_context`.

    Raises:
        OutsideRunError: No run is going on here.
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
