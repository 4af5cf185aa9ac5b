"""Work that starts with an answer, and the question to people whether it took effect.

Calls, nodes, agents and hooks with an answer record their start in the journal. A process that
finds the start of a dead process asks people in a slot of its own, next to the work. If the work
runs again, it finds the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from agents.core.address import Address
from agents.core.asking.answers import (
    ANY_OUTCOME,
    Cancelled,
    Expired,
    InDoubtResult,
    is_unanswered,
)
from agents.core.asking.infos import InDoubtInfo
from agents.core.cancel import CancelInfo
from agents.core.codec import Json, register
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    runtime_slot,
)
from agents.core.errors import (
    CheckpointDecodeError,
    LeftInDoubtError,
    NotAnsweredError,
    ToolError,
)
from agents.core.interrupt import stateful_interrupt
from agents.core.journal import STARTED
from agents.core.pending import InterruptNode
from agents.core.scope import RunContext, current_scope
from agents.core.starts import start_work

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

        `only_own` omits unanswered interrupts and those of nested gates, agents, nodes and calls,
        which are requested again with new ids.
        """
        point = run.topmost(address)
        if only_own and point is not None:
            point = _own(point, address, run)
        ids = [node.id for node in point.walk()] if point else []
        answers = {key: run.answers[key] for key in ids if key in run.answers}
        return cls(point=point.to_json() if point else None, answers=answers)

    def restore(self, run: RunContext, address: Address) -> None:
        """Resume the component from the same interrupts with the same answers."""
        before = InterruptNode.from_json(self.point) if self.point else None
        run.restore(address, before, self.answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Work whose outcome is unknown.

    Attributes:
        info: The question for people.
        held: Answers that the work started with, which a second run finds again; None if they are
            kept elsewhere.
        at: Key of the work in the journal; empty for the current address.
        granted_by: Ids of the interrupts whose answers let the work run again.
    """

    info: InDoubtInfo
    held: HeldAnswers | None = None
    at: str = ""
    granted_by: tuple[str, ...] = ()

    @classmethod
    def before(cls, at: str = "") -> Doubt | None:
        """Return the doubt that people were asked about in the current slot, or None."""
        was_asked, _, held = get_interrupt_state(object)
        if not was_asked:
            return None
        info = interrupt_info()
        if not isinstance(info, InDoubtInfo) or not isinstance(held, HeldAnswers | None):
            where = current_scope("a doubt").address
            raise CheckpointDecodeError(f"the question about {where} is damaged")
        return cls(info=info, held=held, at=at)

    async def ask(self, *, why: str = "") -> NoReturn:
        """Ask people for the outcome; `why` says why they are asked again."""
        scope = current_scope("a doubt")
        # The application records the doubt before people see the request.
        await scope.run.journal.tell_doubt(self.at or str(scope.address))
        stateful_interrupt(replace(self.info, asked_again=why), self.held)

    async def answer(self) -> InDoubtResult | Expired | Cancelled:
        """Return people's answer; ask again if there is none."""
        _, _, answer = get_resume_context(ANY_OUTCOME)
        if not isinstance(answer, InDoubtResult | Expired | Cancelled):
            await self.ask()
        return answer


async def begin_answered(
    name: str, title: str, *, at: str, slot: str, has_answer: bool, keeps_answers: bool = False
) -> bool:
    """Record that an agent or a hook starts with an answer, or resolve an earlier start.

    Args:
        name: Name of the component.
        title: Name of the component for people.
        at: Key of the component in the journal.
        slot: Slot of the request that asks whether the component ran.
        has_answer: Whether it has an answer that it did not have at an earlier start.
        keeps_answers: Whether its answers are stored elsewhere while people are asked.

    Returns:
        Whether the component runs now. False means that people say it already ran.

    Raises:
        LeftInDoubtError: People decided not to run it again.
        NotAnsweredError: The request expired or was cancelled.
    """
    scope, before = current_scope("begin_answered()"), None
    journal = scope.run.journal
    begun = journal.find(STARTED, at)
    if begun is not None or scope.run.waits_at(scope.address, slot):
        with runtime_slot(slot):
            before = Doubt.before(at)
            if begun is not None:  # found again after each earlier doubt
                held = before.held if before is not None else None
                # Otherwise the answers are in the state of an earlier request, or kept elsewhere.
                if before is None and not keeps_answers:
                    held = HeldAnswers.at(scope.run, scope.address, only_own=True)
                info = InDoubtInfo(tool_name=name, arguments={}, title=title, call_id="")
                await Doubt(info=info, held=held, at=at).ask()
            if before is not None and not await _runs_again(before, name):
                return False
    if has_answer or before is not None:
        refused = await start_work(name, {}, at=at, is_answered=True)
        if refused is not None:
            raise ToolError(f"{name!r} did not start: {refused.reason}")
    if before is not None and before.held is not None:
        before.held.restore(scope.run, scope.address)
    return True


async def _runs_again(doubt: Doubt, name: str) -> bool:
    answer = await doubt.answer()
    if not isinstance(answer, InDoubtResult):
        raise NotAnsweredError(f"{doubt.at}, whether it ran", answer)
    if answer.choice == "give_up":
        raise LeftInDoubtError(name)
    return answer.choice == "again"


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
    waiting = {node.id for node in run.waiting.walk()}
    own = (node for node in point.walk() if _is_own(node, point.address))
    return any(node.id in waiting and _has_answer(node, run) for node in own)


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
