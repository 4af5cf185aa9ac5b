"""Questions asked back, posted into the thread: they are on record before anybody is asked."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from bot.core.decisions.dialog import dialog_of, with_exchange
from bot.errors import DeliveryError
from bot.people.requesters import requesters_of
from bot.ports import Clock, Notifier
from storage.base import ApprovalStore
from storage.records import UNKNOWN_TS, Approval, Status

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BackQuestions:
    """Posts what people ask the requesters about a card, under the lease of the card.

    Args:
        approvals: Where the questions are kept.
        notifier: Posts them.
        clock: The time now.
    """

    approvals: ApprovalStore
    notifier: Notifier
    clock: Clock

    @staticmethod
    def wait(approval: Approval) -> bool:
        """Whether there is one to be posted."""
        is_pending = approval.status is Status.PENDING
        return is_pending and any(not one.ts for one in dialog_of(approval))

    async def post(self, approval: Approval) -> Approval:
        """Post those that are not posted yet, each once; return the record with them.

        One whose post was lost on its way is looked for first. One that Slack will never take
        stands on the card alone. Where the record has changed meanwhile, it is attended to again.

        Raises:
            DeliveryError: Slack did not take one now.
        """
        if not self.wait(approval):
            return approval
        for one in dialog_of(approval):
            if one.ts:
                continue
            try:
                ts = await self.notifier.ask_back(
                    approval,
                    key=one.key(approval),
                    by=one.by,
                    text=one.text,
                    mentions=[one.to] if one.to else requesters_of(approval),
                )
            except DeliveryError as error:
                if not error.is_permanent:
                    raise
                logger.warning("not asked: %s", error, extra={"action": "question_undeliverable"})
                ts = UNKNOWN_TS
            changed = with_exchange(approval, one, replace(one, ts=ts))
            kept = await self.approvals.annotate(
                changed, revision=approval.revision, now_ms=self.clock(), redraws=False
            )
            if kept is None:
                return approval
            approval = replace(approval, dialog_json=kept.dialog_json)
        return approval
