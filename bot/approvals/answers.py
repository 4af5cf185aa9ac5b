"""Answers to questions about a card: the asked person's next message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import annotated, with_act
from bot.approvals.comments import AGENT, with_answer, with_exchange
from bot.audit.acts import Act
from bot.ports.process import Clock
from bot.records.approval import Approval, Comment, Status
from bot.records.approval_queries import ApprovalCollection, get_all
from bot.stores import Stores
from storage.documents import update_or_none

_TRIES = 20


@dataclass(frozen=True, slots=True)
class BackAnswers:
    """Stores people's answers on cards. They decide nothing and the agent ignores them."""

    storage: Stores
    clock: Clock

    async def store_answer(
        self, waiting: Sequence[Approval], *, by: str, text: str, ts: str, at_ms: int
    ) -> Approval | None:
        """Store a message as the answer to the oldest open question to its author.

        Returns:
            The approval with the answer, stored now or before; None if the message answers no
            question.
        """
        for _ in range(_TRIES):
            asked = [
                (asked, approval)
                for approval in waiting
                for asked in approval.dialog
                if _is_for(approval, asked, by)
            ]
            known = next((approval for asked, approval in asked if asked.answer_ts == ts), None)
            if known is not None:
                return known
            is_new = (pair for pair in asked if pair[0].is_open and pair[0].at_ms <= at_ms)
            first = min(is_new, key=lambda pair: pair[0].at_ms, default=None)
            if first is None:
                return None
            question, approval = first
            answer = with_answer(question, by=by, text=text, ts=ts)
            approvals, now = self.storage.approvals, self.clock()
            stored = await write_answer(approvals, approval, question, answer, now_ms=now)
            if stored is not None:
                return stored
            newest = await get_all(
                self.storage.approvals, [approval.approval_id for approval in waiting]
            )
            waiting = [approval for approval in newest if approval.status is Status.PENDING]
        return None


async def write_answer(
    approvals: ApprovalCollection,
    approval: Approval,
    question: Comment,
    answer: Comment,
    *,
    now_ms: int,
) -> Approval | None:
    """Replace a question by its answered form, and record the answer for the audit.

    Returns:
        The stored approval; None if it changed since the question was read.
    """
    changed = with_act(
        with_exchange(approval, question, answer),
        Act.ASKED_BACK,
        by=answer.answered_by,
        at_ms=now_ms,
        question=question.text,
        reply=answer.answer,
    )
    write = partial(annotated, judged=changed, now_ms=now_ms)
    return await update_or_none(approvals, changed.approval_id, write, writes_due=True)


def _is_for(approval: Approval, asked: Comment, by: str) -> bool:
    """Whether the person may answer a question; people never answer for the agent."""
    if asked.to:
        return asked.to == by != AGENT
    return by in approval.all_requesters
