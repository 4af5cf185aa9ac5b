"""Answers that a component has received to its own questions.

The start of a component with such an answer is stored in the journal, like that of a gated call.
After a crash, people are asked whether it ran. If it runs again, it finds the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agents.core.address import Address
from agents.core.asking.answers import InDoubtResult, is_unanswered
from agents.core.cancel import CancelInfo
from agents.core.codec import Json, register
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext

_COMPONENTS = {"agent", "node", "runnable", "tool"}
"""Segment types of nested components that ask their own questions."""


@register("countersign.held_answers/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAnswers:
    """The interrupts of a component and their answers.

    Stored: version 1, must stay readable.

    Attributes:
        point: The interrupts at and below the component as JSON data; None if there are none.
        answers: Answers by interrupt id.
    """

    point: Json = None
    answers: dict[str, object]

    @classmethod
    def at(cls, run: RunContext, address: Address, *, only_own: bool = False) -> HeldAnswers:
        """Collect the interrupts at or below an address, with their answers.

        Args:
            run: The run.
            address: Address of the component.
            only_own: Whether to omit unanswered interrupts and those of nested gates, agents, nodes
                and calls, which are requested again with new ids.
        """
        point = run.topmost(address)
        if only_own and point is not None:
            point = _own(point, address, run)
        ids = [one.id for one in point.walk()] if point else []
        answers = {key: run.answers[key] for key in ids if key in run.answers}
        return cls(point=point.to_json() if point else None, answers=answers)

    def restore(self, run: RunContext, address: Address) -> None:
        """Resume the component from the same interrupts with the same answers."""
        before = InterruptNode.from_json(self.point) if self.point else None
        run.restore(address, before, self.answers)


def acts_on_answer(run: RunContext, address: Address) -> bool:
    """Whether a component is entered with an answer to a question of its own.

    Questions of nested gates, agents, nodes and calls do not count.
    """
    top = run.topmost(address)
    return any(_is_own(point, address) and _has_answer(point, run) for point in _walk(top))


def has_new_answer(run: RunContext, point: InterruptNode | None) -> bool:
    """Whether a hook's interrupt was answered in this resume, not in an earlier one."""
    if point is None or run.waiting is None:
        return False
    waiting = {one.id for one in run.waiting.walk()}
    own = (one for one in point.walk() if _is_own(one, point.address))
    return any(one.id in waiting and _has_answer(one, run) for one in own)


def _own(point: InterruptNode, address: Address, run: RunContext) -> InterruptNode | None:
    """Return the answered interrupts of the component itself, with their parents."""
    if not run.is_live(point) or not _is_own(point, address):
        return None
    below = (_own(child, address, run) for child in point.children)
    return replace(point, children=tuple(child for child in below if child is not None))


def _walk(top: InterruptNode | None) -> list[InterruptNode]:
    return list(top.walk()) if top is not None else []


def _is_own(point: InterruptNode, address: Address) -> bool:
    below = point.address.segments[len(address) :]
    is_here = address.is_prefix_of(point.address)
    return is_here and all(segment.type not in _COMPONENTS for segment in below)


def _has_answer(point: InterruptNode, run: RunContext) -> bool:
    if point.id not in run.answers or isinstance(point.info, CancelInfo):
        return False
    answer = run.answers[point.id]
    # A component does not act on these: the runtime does.
    return not is_unanswered(answer) and not isinstance(answer, InDoubtResult)
