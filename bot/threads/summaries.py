"""The summary of a thread: one message, after three decisions or more, edited as it grows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.errors import DeliveryError
from bot.ports.process import Clock
from bot.ports.threads import Notices
from storage.base import Storage
from storage.records import Approval, Kind, Post, Status, Thread

logger = logging.getLogger(__name__)

LEAST = 3
"""Cards whose requests have come to their end, from which on there is a summary."""
MOST = 50
"""The most requests that are looked at, the newest."""
_FIRST = 2
"""The lease under which the decision of a thread's first request is passed on, the message before
took one, too. Nothing is read for that, unless there was more than one decision."""
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
    """Shows summaries, each under the lease of its thread."""

    storage: Storage
    notices: Notices
    clock: Clock

    async def show(self, thread: Thread, *, decided: int | None) -> None:
        """Show the summary of a thread whose turn has ended, if there is enough to sum up.

        It is on record before it is posted. A thread with one decision is not looked at.

        Args:
            thread: As claimed.
            decided: How many decisions its run was told of under this lease; None where that is not
                known.

        Raises:
            DeliveryError: Slack did not take it now; to be repeated.
        """
        if decided == 0 or (thread.fence <= _FIRST and decided == 1):
            return
        newest = await self.storage.approvals.newest_of(thread.thread_id, limit=MOST)
        over = [one for one in reversed(newest) if _is_counted(one)]
        # A card of several lists all of its requests: it needs no summary below it.
        cards = {one.checkpoint_id if one.is_batched else one.approval_id for one in over}
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
    """Whether it is a request that something may run, and has come to its end."""
    is_call = approval.kind is Kind.APPROVAL or bool(approval.tool.strip())
    return is_call and approval.kind is not Kind.DOUBT and approval.status in _COUNTED
