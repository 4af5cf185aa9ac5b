"""Doubts: after a crash, people are asked whether work that had started took effect.

Calls, nodes, agents and hooks with an answer record their start in the journal. A process that
finds the start of a dead process asks people in a slot of its own, next to the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from agents.core.asking.answers import ANY_OUTCOME, Cancelled, Expired, InDoubtResult
from agents.core.asking.infos import InDoubtInfo
from agents.core.component.held import HeldAnswers
from agents.core.component.state import (
    get_interrupt_state,
    get_resume_context,
    interrupt_info,
    runtime_slot,
)
from agents.core.errors import CheckpointDecodeError, LeftInDoubtError, NotAnsweredError
from agents.core.interrupt import stateful_interrupt
from agents.core.journal import STARTED
from agents.core.scope import current_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Work whose outcome is unknown.

    Attributes:
        info: The question for people.
        held: Answers that the work started with, which a second run finds again; None if they are
            kept elsewhere.
        at: Key of the work in the journal; empty for the current address.
    """

    info: InDoubtInfo
    held: HeldAnswers | None = None
    at: str = ""

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
        """Ask people for the outcome.

        Args:
            why: Why they are asked again; empty the first time.
        """
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
        InterruptSignal: People are asked whether it ran.
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
        await journal.append(STARTED, at, {"arguments": {}, "answered": True})
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
