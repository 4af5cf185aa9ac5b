"""Record the start of an agent or hook with an answer; ask about it after a crash."""

from __future__ import annotations

from typing import NoReturn

from agents.core.asking.answers import ANY_OUTCOME, InDoubtResult, is_unanswered
from agents.core.asking.infos import InDoubtInfo
from agents.core.component.held import HeldAnswers
from agents.core.component.state import get_interrupt_state, get_resume_context, state_slot
from agents.core.errors import LeftInDoubtError, NotAnsweredError
from agents.core.interrupt import stateful_interrupt
from agents.core.journal import STARTED
from agents.core.scope import current_scope


async def begin_answered(
    name: str, title: str, *, at: str, slot: str, has_answer: bool, keeps_answers: bool = False
) -> bool:
    """Record that a component starts with an answer, or resolve an earlier start.

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
        InterruptSignal: People are asked whether it ran.
        LeftInDoubtError: People decided not to run it again.
        NotAnsweredError: The request expired or was cancelled.
    """
    scope, held = current_scope("begin_answered()"), None
    journal = scope.run.journal
    if journal.find(STARTED, at) is not None or scope.run.waits_at(scope.address, slot):
        with state_slot(slot):
            was_asked, _, held = get_interrupt_state(HeldAnswers)
            if journal.find(STARTED, at) is not None:  # found again after each earlier doubt
                # Otherwise the answers are in the state of an earlier request, or kept elsewhere.
                if not (was_asked or keeps_answers):
                    held = HeldAnswers.at(scope.run, scope.address, only_own=True)
                await _ask(name, title, at, held)
            if was_asked and not await _runs_again(name, title, at, held):
                return False
            has_answer = has_answer or was_asked
    if has_answer:
        await journal.append(STARTED, at, {"arguments": {}, "answered": True})
    if held is not None:
        held.restore(scope.run, scope.address)
    return True


async def _runs_again(name: str, title: str, at: str, held: HeldAnswers | None) -> bool:
    _, _, answer = get_resume_context(ANY_OUTCOME)
    if is_unanswered(answer):
        raise NotAnsweredError(f"{at}, whether it ran", answer)
    if not isinstance(answer, InDoubtResult):
        await _ask(name, title, at, held)
    if answer.choice == "give_up":
        raise LeftInDoubtError(name)
    return answer.choice == "again"


async def _ask(name: str, title: str, at: str, held: HeldAnswers | None) -> NoReturn:
    await current_scope("a doubt").run.journal.tell_doubt(at)
    stateful_interrupt(InDoubtInfo(tool_name=name, arguments={}, title=title, call_id=""), held)
