"""Keeps model requests within the limits of a run: counts answers, and asks people at a limit."""

from __future__ import annotations

from agents.core.asking.answers import ANY_OUTCOME, ApprovalResult
from agents.core.asking.limits import LimitInfo, ModelBudget
from agents.core.component.context import current_checkpoint_id
from agents.core.component.state import get_resume_context, interrupt_info
from agents.core.errors import LimitReachedError
from agents.core.interrupt import check_answer, interrupt
from agents.core.scope import current_address, current_scope

LIMIT_SLOT = "around_model:countersign.limit"
"""Slot of the request at a limit. Stored: never change it."""


async def keep_within(budget: ModelBudget) -> None:
    """Ask people if a limit is reached, or apply their answer.

    Raises:
        InterruptSignal: People must decide first.
        LimitReachedError: They did not let the run go on.
    """
    journal, run = current_scope("a limit").run.journal, current_checkpoint_id()
    info = interrupt_info()
    is_target, has_answer, answer = get_resume_context(ANY_OUTCOME)
    if is_target and has_answer and isinstance(info, LimitInfo):
        check_answer(info, answer)
        if not isinstance(answer, ApprovalResult) or not answer.approved:
            raise LimitReachedError(info.limit, info.text)
        await journal.depend_on(budget.extend(run, info))
    reached = await journal.depend_on(budget.reached(run))
    if reached is not None:
        interrupt(reached.bound(thread=run, address=str(current_address())))
