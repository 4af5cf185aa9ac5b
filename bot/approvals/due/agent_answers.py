"""Post questions about an approval to requesters; have agents answer theirs without a lease."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from bot.approvals.answers import write_answer
from bot.approvals.changes import with_message
from bot.approvals.comments import AGENT, with_answer
from bot.approvals.due.approval_pass import write_held
from bot.errors import DeliveryError
from bot.ports.notifier import Notifier
from bot.ports.process import Clock, Spawn
from bot.records.approval import Approval, Comment, Status
from bot.records.approval_queries import ApprovalCollection
from bot.stores import Stores
from bot.words import said_to_all, say
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

EXPLAIN_PATIENCE = timedelta(seconds=20)
"""Longest time of an agent's answer to a question about its call."""
EXPLAIN_AGAIN = timedelta(seconds=30)
"""Age at which an open question is asked again: its process may have crashed."""
_TRIES = 20

Explain = Callable[[Approval, str], Awaitable[str | None]]
"""Lets the agent of a call answer a question; returns None without an answer."""


async def never_halted(approval: Approval) -> bool:  # noqa: ARG001 - a port
    """Return False: no freeze stops the agent of the call."""
    return False


@dataclass(frozen=True, slots=True)
class AgentAnswers:
    """Stores agents' answers on cards. Answers decide nothing and stop no timers.

    Questions are stored and posted before. Two processes may ask the agent at once; the first
    answer counts. Answers to an edited or decided approval are dropped. While a freeze stops the
    turns of agents, a question waits.
    """

    storage: Stores
    clock: Clock
    explain: Explain
    spawn: Spawn
    attend: Callable[[str], Awaitable[None]]
    patience: timedelta = EXPLAIN_PATIENCE
    is_halted: Callable[[Approval], Awaitable[bool]] = never_halted
    _asked: set[str] = field(default_factory=set)

    @staticmethod
    def wait(approval: Approval) -> bool:
        """Whether a posted question to the agent is open."""
        return approval.status is Status.PENDING and any(map(_is_due, approval.dialog))

    def ask_agent(self, approval: Approval) -> None:
        """Ask the agent each open question, once at a time in this process."""
        if approval.status is not Status.PENDING:
            return
        for comment in approval.dialog:
            key = comment.key(approval)
            if _is_due(comment) and key not in self._asked:
                self._asked.add(key)
                self.spawn(self._answer(approval, comment))

    async def _answer(self, approval: Approval, comment: Comment) -> None:
        try:
            if await self.is_halted(approval):
                return  # the card is due again while the question is open
            text = await self._text(approval, comment)
            if await self.is_halted(approval):  # meanwhile
                return
            await self._keep(approval, comment, text)
        finally:
            self._asked.discard(comment.key(approval))
        await self.attend(approval.approval_id)

    @said_to_all
    async def _text(self, approval: Approval, comment: Comment) -> str:
        text: str | None = None
        try:
            async with asyncio.timeout(self.patience.total_seconds()):
                text = await self.explain(approval, comment.text)
        except TimeoutError:
            logger.warning(
                "the agent did not answer a question in time",
                extra={"action": "question_unanswered", "approval_id": approval.approval_id},
            )
        return text if text and text.strip() else say("message.agent_silent")

    async def _keep(self, asked: Approval, comment: Comment, text: str) -> None:
        """Store the answer if the question is still open and the call unchanged."""
        for _ in range(_TRIES):
            try:
                approval = await self.storage.approvals.get(asked.approval_id)
            except RecordNotFoundError:
                return
            known = {comment.key(approval): comment for comment in approval.dialog}
            question = known.get(comment.key(asked))
            if question is None or not _is_due(question) or approval.digest != asked.digest:
                return
            if approval.status is not Status.PENDING:
                return
            answer = with_answer(question, by=AGENT, text=text, ts=AGENT)
            approvals, now = self.storage.approvals, self.clock()
            if await write_answer(approvals, approval, question, answer, now_ms=now) is not None:
                return


def _is_due(comment: Comment) -> bool:
    return comment.to == AGENT and bool(comment.ts or comment.closed) and comment.is_open


@dataclass(frozen=True, slots=True)
class BackQuestions:
    """Posts questions to requesters or agents, under the lease of the card."""

    approvals: ApprovalCollection
    notifier: Notifier

    async def post(self, approval: Approval) -> Approval:
        """Post each new question once; update answered ones.

        A lost post is searched for first. A question that Slack refuses for good is on the card
        only. If the lease was lost, the rest is left to the new owner.

        Raises:
            DeliveryError: Slack refused a message for now.
        """
        for comment in approval.dialog:
            if not _is_post_due(approval, comment):
                continue
            after = await (
                self._closed(approval, comment) if comment.ts else self._posted(approval, comment)
            )
            write = partial(with_message, asked=after)
            if await write_held(self.approvals, approval, write) is None:
                return approval
            approval = with_message(approval, after)
        return approval

    async def _posted(self, approval: Approval, comment: Comment) -> Comment:
        try:
            ts = await self.notifier.ask_back(
                approval,
                key=comment.key(approval),
                by=comment.by,
                text=comment.text,
                mentions=_mentions(approval, comment),
            )
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "could not post a question to the thread: %s",
                error,
                extra={"action": "question_undeliverable"},
            )
            return comment.changed(closed=True)
        return comment.changed(ts=ts)

    async def _closed(self, approval: Approval, comment: Comment) -> Comment:
        try:
            await self.notifier.close_question(
                approval,
                ts=comment.ts,
                by=comment.by,
                text=comment.text,
                is_answered=not comment.is_open,
            )
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "could not close a question in the thread: %s",
                error,
                extra={"action": "question_undeliverable"},
            )
        return comment.changed(closed=True)


def _mentions(approval: Approval, comment: Comment) -> Sequence[str]:
    if comment.to == AGENT:
        return ()
    return [comment.to] if comment.to else approval.all_requesters


def _is_post_due(approval: Approval, comment: Comment) -> bool:
    is_pending = approval.status is Status.PENDING
    is_wanted = is_pending if not comment.ts else not (is_pending and comment.is_open)
    return is_wanted and not comment.closed
