"""Make Slack show each card of an approval once, wherever a process crashes.

A message is stored before it is posted, and its place is stored with the release of the lease. A
process that finds a stored message without a place searches for it in Slack before it posts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from bot.approvals.due.approval_pass import ApprovalPass, write_held
from bot.errors import DeliveryError
from bot.records.approval import BATCH, OWN, Approval, ApprovalMessage
from bot.records.approval_queries import ApprovalCollection

logger = logging.getLogger(__name__)

UpdateMessage = Callable[[ApprovalMessage], Awaitable[bool]]
"""Updates a message. Returns False if the message was deleted."""


class PostMessage(Protocol):
    """Posts a message."""

    async def __call__(self, message: ApprovalMessage, /, *, look_first: bool) -> ApprovalMessage:
        """Return the message with its channel and its `ts`.

        With `look_first`, a message of an earlier attempt is updated instead.
        """
        ...


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Makes Slack show the cards of an approval, under the lease of the approval."""

    approvals: ApprovalCollection

    async def show(
        self,
        approval: Approval,
        message: ApprovalMessage,
        worker_pass: ApprovalPass,
        *,
        update: UpdateMessage,
        post: PostMessage,
    ) -> bool:
        """Update a card, or post it if it is not in Slack; False if the lease was lost.

        Raises:
            DeliveryError: Slack refused the card.
        """
        look_first = not worker_pass.is_first(approval, message.key)
        if message.is_posted and await update(message):
            return True
        if message.is_posted or approval.message(message.key) is None:
            # Deleted, or new. Store that before the post: after a crash, the post is searched for.
            message = message.changed(ts="")
            write = partial(Approval.with_message, message=message)
            if await write_held(self.approvals, approval, write) is None:
                return False
            look_first = bool(approval.restored.to_ms)
        worker_pass.places[message.key] = await post(message, look_first=look_first)
        return True

    async def show_copies(
        self,
        approval: Approval,
        copies: Sequence[ApprovalMessage],
        worker_pass: ApprovalPass,
        *,
        update: UpdateMessage,
        post: PostMessage,
    ) -> DeliveryError | None:
        """Show further cards. Copies that Slack never accepts are dropped.

        Returns:
            The error of a copy that is sent by preference only, and blocks no other card.

        Raises:
            DeliveryError: Slack refused another card for now.
        """
        fault: DeliveryError | None = None
        for copy in copies:
            try:
                await self.show(approval, copy, worker_pass, update=update, post=post)
            except DeliveryError as error:
                if is_hopeless(error, copy, approval.elsewhere):
                    _drop(approval, copy, worker_pass, error)
                elif copy.key.startswith((OWN, BATCH)):
                    fault = fault or error
                else:
                    raise
        return fault


def _drop(
    approval: Approval, copy: ApprovalMessage, worker_pass: ApprovalPass, error: DeliveryError
) -> None:
    worker_pass.places[copy.key] = None
    logger.warning(
        "could not deliver a card to %s: %s",
        copy.user or copy.channel,
        error,
        extra={"action": "copy_failed", "approval_id": approval.approval_id},
    )


def is_hopeless(error: DeliveryError, copy: ApprovalMessage, place: str) -> bool:
    """Whether a copy can never be sent and the other cards suffice.

    An app installed before direct messages were supported lacks the scope.
    """
    if copy.user and (not place or copy.key.startswith((OWN, BATCH))):
        return error.is_permanent or error.reason == "missing_scope"
    return error.is_permanent and copy.channel != place
