"""Answers to a component's own questions: whether it starts with one, and which it keeps.

The start of a component that asked by itself and is entered with the answer is noted in the
journal, like that of a gated call. After a crash people are asked whether it ran; if it runs again,
it finds the same answers.
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
"""Types of segments below which another component asks."""


@register("countersign.held_answers/1")
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAnswers:
    """The interrupts of a component and their answers. Stored: version 1, must stay readable.

    Attributes:
        point: The interrupts at and below it, as JSON data; None when there are none.
        answers: By interrupt id.
    """

    point: Json = None
    answers: dict[str, object]

    @classmethod
    def at(cls, run: RunContext, address: Address, *, only_own: bool = False) -> HeldAnswers:
        """Collect what waits at or below an address, and what was answered of it.

        Args:
            run: The run.
            address: The component.
            only_own: Whether to leave out what nobody answered, and the questions of gates, agents,
                nodes and calls in it: these are asked anew, by new ids.
        """
        point = run.topmost(address)
        if only_own and point is not None:
            point = _own(point, address, run)
        ids = [one.id for one in point.walk()] if point else []
        answers = {key: run.answers[key] for key in ids if key in run.answers}
        return cls(point=point.to_json() if point else None, answers=answers)

    def restore(self, run: RunContext, address: Address) -> None:
        """Let the component go on from the same place, with the same answers."""
        before = InterruptNode.from_json(self.point) if self.point else None
        run.restore(address, before, self.answers)


def acts_on_answer(run: RunContext, address: Address) -> bool:
    """Whether a component is entered with an answer to a question of its own.

    Questions of gates, agents, nodes and calls in it are theirs. No answer is none.
    """
    top = run.topmost(address)
    return any(_is_own(point, address) and _has_answer(point, run) for point in _walk(top))


def has_new_answer(run: RunContext, point: InterruptNode | None) -> bool:
    """Whether what a hook goes on from was answered in this resume, and not kept from before."""
    if point is None or run.waiting is None:
        return False
    waiting = {one.id for one in run.waiting.walk()}
    own = (one for one in point.walk() if _is_own(one, point.address))
    return any(one.id in waiting and _has_answer(one, run) for one in own)


def _own(point: InterruptNode, address: Address, run: RunContext) -> InterruptNode | None:
    """The part of a tree that is the component's own and was answered, with what is around it."""
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
    return not is_unanswered(answer) and not isinstance(answer, InDoubtResult)
