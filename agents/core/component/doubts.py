"""The start of an agent or a hook with an answer: noted once, and in doubt after a crash."""

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
    """Note that a component starts with an answer; or find out what became of it before.

    Args:
        name: Of the component.
        title: The same for people.
        at: Its key in the journal.
        slot: Where the question stands whether it ran.
        has_answer: Whether it has an answer that it had not when it started before.
        keeps_answers: Whether something else keeps its answers while people are asked.

    Returns:
        Whether it runs now. Otherwise people say that it ran.

    Raises:
        InterruptSignal: People are asked whether it ran.
        LeftInDoubtError: They do not want it to run again.
        NotAnsweredError: They did not say.
    """
    scope, held = current_scope("begin_answered()"), None
    journal = scope.run.journal
    if journal.find(STARTED, at) is not None or scope.run.waits_at(scope.address, slot):
        with state_slot(slot):
            was_asked, _, held = get_interrupt_state(HeldAnswers)
            if journal.find(STARTED, at) is not None:  # also once more, after a doubt before
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
