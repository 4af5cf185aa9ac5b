"""Summary of a thread: one message after three ended requests, kept up to date."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import DeliveryError
from bot.ports.process import Clock
from bot.ports.threads import Notices
from bot.records.approval import Approval, Kind, Status
from bot.records.approval_queries import newest_of
from bot.records.messages import Post
from bot.records.thread import Thread
from bot.stores import Stores

logger = logging.getLogger(__name__)

LEAST = 3
"""Minimum number of cards with ended requests for a summary."""
MOST = 50
"""Maximum number of requests in a summary, the newest."""
_FIRST = 2
"""Fencing token of a thread's second lease, which passes on its first decision.

A thread with a single decision is skipped without reading.
"""
_COUNTED = frozenset(
    {
        Status.APPROVED,
        Status.ANSWERED,
        Status.REJECTED,
        Status.EXPIRED,
        Status.WITHDRAWN,
        Status.CANCELLED,
    }
)


@dataclass(frozen=True, slots=True)
class Summaries:
    """Posts summaries, each under the lease of its thread."""

    storage: Stores
    notices: Notices
    clock: Clock

    async def show(self, thread: Thread, *, decided: int | None) -> None:
        """Post or update the summary of a thread whose turn has ended.

        The summary is stored before it is posted. A thread with a single decision is skipped.

        Args:
            thread: As claimed.
            decided: Number of decisions that its run received under this lease; None if unknown.

        Raises:
            DeliveryError: Slack refused the message for now; retry.
        """
        if decided == 0 or (thread.fence <= _FIRST and decided == 1):
            return
        newest = await newest_of(self.storage.approvals, thread.thread_id, limit=MOST)
        over = [approval for approval in reversed(newest) if _is_counted(approval)]
        # A batch card lists all its requests: it needs no summary.
        cards = {
            approval.checkpoint_id if approval.is_batched else approval.approval_id
            for approval in over
        }
        if len(cards) >= LEAST:
            await self._show(thread, over)

    async def _show(self, thread: Thread, over: Sequence[Approval]) -> None:
        posts, now = self.storage.posts, self.clock()
        post = Post(
            post_id=f"{thread.thread_id}:summary",
            thread_id=thread.thread_id,
            text="",
            created_ms=now,
        )
        known = await posts.add_or_get(post) or post
        if known.failure:
            return
        try:
            ts = await self.notices.summarise(thread, over, ts=known.ts)
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            logger.warning(
                "summary of a turn not posted: %s", error, extra={"action": "summary_failed"}
            )
            await posts.fail(post.post_id, reason=error.reason)
            return
        if ts != known.ts or not known.posted:
            await posts.finish(post.post_id, ts=ts)


def _is_counted(approval: Approval) -> bool:
    """Whether the approval runs something and has ended."""
    is_call = approval.kind is Kind.APPROVAL or bool(approval.tool.strip())
    return is_call and approval.kind is not Kind.DOUBT and approval.status in _COUNTED
