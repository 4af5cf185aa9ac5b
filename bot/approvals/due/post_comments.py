"""Post questions about an approval into its thread."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import with_message
from bot.approvals.comments import AGENT
from bot.approvals.due.visit import write_held
from bot.approvals.model import UNKNOWN_TS, Approval, Comment, Status
from bot.approvals.queries import ApprovalCollection
from bot.errors import DeliveryError
from bot.people.requesters import requesters_of
from bot.ports.notifier import Notifier

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BackQuestions:
    """Posts questions to requesters or agents, under the lease of the card."""

    approvals: ApprovalCollection
    notifier: Notifier

    @staticmethod
    def wait(approval: Approval) -> bool:
        """Whether a question must be posted or its message updated."""
        return any(_is_due(approval, one) for one in approval.dialog)

    async def post(self, approval: Approval) -> Approval:
        """Post each new question once; update answered ones.

        A lost post is searched for first. A question that Slack refuses for good is on the card
        only. If the lease was lost, the rest is left to the new owner.

        Raises:
            DeliveryError: Slack refused a message for now.
        """
        for one in approval.dialog:
            if not _is_due(approval, one):
                continue
            after = await (self._closed(approval, one) if one.ts else self._posted(approval, one))
            write = partial(with_message, asked=after)
            if await write_held(self.approvals, approval, write) is None:
                return approval
            approval = with_message(approval, after)
        return approval

    async def _posted(self, approval: Approval, one: Comment) -> Comment:
        try:
            ts = await self.notifier.ask_back(
                approval,
                key=one.key(approval),
                by=one.by,
                text=one.text,
                mentions=_mentions(approval, one),
            )
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "could not post a question to the thread: %s",
                error,
                extra={"action": "question_undeliverable"},
            )
            ts = UNKNOWN_TS
        return one.changed(ts=ts)

    async def _closed(self, approval: Approval, one: Comment) -> Comment:
        try:
            await self.notifier.close_question(
                approval, ts=one.ts, by=one.by, text=one.text, is_answered=not one.is_open
            )
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "could not close a question in the thread: %s",
                error,
                extra={"action": "question_undeliverable"},
            )
        return one.changed(closed=True)


def _mentions(approval: Approval, one: Comment) -> Sequence[str]:
    if one.to == AGENT:
        return ()
    return [one.to] if one.to else requesters_of(approval)


def _is_due(approval: Approval, one: Comment) -> bool:
    is_pending = approval.status is Status.PENDING
    if not one.ts:
        return is_pending
    is_over = not (is_pending and one.is_open)
    return is_over and not one.closed and one.ts != UNKNOWN_TS
