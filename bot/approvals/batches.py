"""Batches: one person votes on several cards of a turn with one form.

A batch stores nothing of its own: each card is judged and recorded separately, for what its reader
saw. Cards that changed meanwhile are dropped and reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.errors import InvalidInputError, LeftOutError, RefusalError, UserFacingError
from bot.policy.demands import batch_digest
from bot.policy.refusals import RefusalCode
from bot.ports.process import Clock
from bot.records.approval import Approval, Status
from bot.records.approval_queries import ApprovalCollection, of_turn
from bot.words import say

MOST_CARDS = 100
"""Maximum number of cards of a batch; further cards need another batch."""
_AT_ONCE = 5
VOTING = timedelta(seconds=1.8)
"""Time for starting votes: Slack expects the form's response within 3 seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A selected card."""

    approval_id: str
    shown: str


Cast = Callable[[Chosen], Awaitable[Approval]]
"""Votes for one card; raises `UserFacingError` if the vote does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Result of a batch vote."""

    recorded: tuple[Approval, ...]
    dropped: tuple[tuple[str, UserFacingError], ...]


@dataclass(frozen=True, slots=True)
class Batches:
    """Finds cards that can be decided together, and votes on them.

    Args:
        approvals: Stored approvals.
        clock: The time now.
    """

    approvals: ApprovalCollection
    clock: Clock

    async def batch_of(self, first: Approval) -> list[Approval]:
        """Return the cards that people can approve together with the first, and the first.

        Raises:
            RefusalError: The card can only be decided separately.
        """
        ruling = batch_digest(first)
        turn = await of_turn(self.approvals, first.checkpoint_id)
        batch = [
            approval
            for approval in turn
            if ruling
            and batch_digest(approval) == ruling
            and (not first.is_batched or (approval.is_batched and approval.shares_batch(first)))
            and approval.expires_ms > self.clock()
        ]
        if first.approval_id not in {approval.approval_id for approval in batch}:
            raise not_in_batch()
        return batch

    def check(self, approval: Approval, first: Approval) -> None:
        """Refuse a card that does not belong to the batch.

        Raises:
            RefusalError: The card is of another turn or rule, or must be decided separately.
        """
        waiting = first.changed(status=Status.PENDING, stuck="")
        ruling = batch_digest(approval)
        is_one_turn = approval.checkpoint_id == first.checkpoint_id
        if not ruling or not is_one_turn or ruling != batch_digest(waiting):
            raise not_in_batch()

    async def vote(self, chosen: Sequence[Chosen], cast: Cast) -> BatchResult:
        """Vote for each card separately, several concurrently.

        Raises:
            InvalidInputError: There are more cards than a form can have.
        """
        if len(chosen) > MOST_CARDS:
            raise InvalidInputError("this form")
        places, loop = asyncio.Semaphore(_AT_ONCE), asyncio.get_running_loop()
        until = loop.time() + VOTING.total_seconds()

        async def vote_for(card: Chosen) -> Approval | UserFacingError:
            async with places:
                if loop.time() > until:
                    return LeftOutError(say("refuse.no_time"))
                try:
                    return await cast(card)
                except UserFacingError as error:
                    return error

        results = await asyncio.gather(*map(vote_for, chosen))
        dropped = [
            (card.approval_id, result)
            for card, result in zip(chosen, results, strict=True)
            if isinstance(result, UserFacingError)
        ]
        recorded = tuple(result for result in results if isinstance(result, Approval))
        return BatchResult(recorded=recorded, dropped=tuple(dropped))


def not_in_batch() -> RefusalError:
    """Return the refusal of a card that must be decided separately."""
    code = RefusalCode.NOT_IN_BATCH
    return RefusalError(code.value, code.words)
