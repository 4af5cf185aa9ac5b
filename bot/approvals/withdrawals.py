"""Requesters withdraw their requests, and add messages to the card."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bot.approvals.changes import decided, with_messages
from bot.approvals.execution import can_take_back, taken_back
from bot.audit.entries import note_refusal
from bot.errors import (
    ApprovalClosedError,
    InvalidInputError,
    OutdatedCardError,
    RefusalError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.records.approval import Approval, Decision, Kind, RequesterMessage, Status
from bot.redaction.mask import mask_text
from bot.stores import Stores
from bot.words import say
from storage.documents import update_or_none
from storage.errors import RecordNotFoundError

MOST_MESSAGES = 3
"""Maximum number of requesters' messages on a card. The thread has all."""
LONGEST_MESSAGE = 600
_TRIES = 5

_STOP = re.compile(
    r"(please |no,? )?(cancel|stop|abort|withdraw|undo|never ?mind|forget|scratch)"
    r"( (it|this|that|the request))?[.! ]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Withdraws requests for their requesters."""

    storage: Stores
    clock: Clock

    async def is_own(self, approval_id: str, actor: Actor) -> bool:
        """Whether this person is a requester, so a rejection is a withdrawal.

        Raises:
            UnknownApprovalError: The approval does not exist.
        """
        approval = await self._read(approval_id)
        is_call = approval.kind is Kind.APPROVAL or (
            approval.kind is Kind.QUESTION and bool(approval.tool)
        )
        return is_call and actor.user_id in approval.all_requesters

    async def get_withdrawable(self, approval_id: str, actor: Actor) -> Approval:
        """Read an approval that the person may withdraw.

        No look-up in Slack, and an older card is accepted: a withdrawal runs nothing.

        Raises:
            UnknownApprovalError: It does not exist.
            RefusalError: The person is not a requester.
            ApprovalClosedError: It has already ended.
            InvalidInputError: The call has started.
        """
        approval = await self._read(approval_id)
        try:
            self._check(approval, actor)
        except UserFacingError as error:
            at_ms, by = self.clock(), actor.user_id
            await note_refusal(self.storage.audit, approval, at_ms, by=by, error=error)
            raise
        return approval

    async def _read(self, approval_id: str) -> Approval:
        try:
            return await self.storage.approvals.get(approval_id)
        except RecordNotFoundError as error:
            raise UnknownApprovalError from error

    def _check(self, approval: Approval, actor: Actor) -> None:
        if approval.kind is Kind.DOUBT:
            raise InvalidInputError("this button")
        if actor.user_id not in approval.all_requesters:
            raise RefusalError("not_requester", say("refuse.not_requester_here"))
        is_open = approval.status is Status.PENDING and self.clock() < approval.expires_ms
        if not is_open and not can_take_back(approval):
            raise ApprovalClosedError(approval)

    async def withdraw(self, approval_id: str, actor: Actor, *, reason: str) -> Approval:
        """Withdraw a request, even if it has changed since the person saw it.

        A call that a freeze keeps from starting can be withdrawn although it is approved.

        Args:
            approval_id: From the form.
            actor: The requester.
            reason: Text for the agent; may be empty.

        Returns:
            The withdrawn approval. The caller then calls `Approvals.follow_up`.

        Raises:
            OutdatedCardError: Too many conflicting writes.
            UserFacingError: See `look`.
        """
        for _ in range(_TRIES):
            approval = await self.get_withdrawable(approval_id, actor)
            decision = Decision(
                status=Status.WITHDRAWN,
                by=actor.user_id,
                at_ms=self.clock(),
                reason=reason,
                digest=approval.digest,
            )
            write: Callable[[Approval], Approval | None]
            write = partial(decided, decision=decision, digest=approval.digest)
            if can_take_back(approval):
                write = partial(taken_back, decision=decision, revision=approval.revision)
            stored = await update_or_none(
                self.storage.approvals, approval_id, write, writes_due=True
            )
            if stored is not None:
                return stored
        raise OutdatedCardError

    async def add_words(self, approval: Approval, *, by: str, text: str, at_ms: int) -> bool:
        """Add a requester's message to the card of a pending approval. Idempotent.

        Returns:
            Whether the card must be updated.
        """
        for _ in range(_TRIES):
            messages = approval.said
            is_known = any((message.by, message.at_ms) == (by, at_ms) for message in messages)
            is_old = len(messages) >= MOST_MESSAGES and at_ms < messages[0].at_ms
            if approval.status is not Status.PENDING or is_known or is_old:
                return False
            new = RequesterMessage(by=by, text=_short(text), at_ms=at_ms)
            newest = sorted([*messages, new], key=lambda message: message.at_ms)[-MOST_MESSAGES:]
            if await self._store_messages(approval, newest):
                return True
            approval = await self.storage.approvals.get(approval.approval_id)
        return False

    async def change_words(self, approval: Approval, *, by: str, text: str, at_ms: int) -> bool:
        """Update or remove an edited or deleted message on a card.

        Args:
            approval: As read a moment ago.
            by: Slack user id of the author.
            text: The new text; empty removes the message.
            at_ms: Time of the message; with `by`, it identifies the message.

        Returns:
            Whether the card showed the message and must be updated.
        """
        for _ in range(_TRIES):
            messages = approval.said
            if not any((message.by, message.at_ms) == (by, at_ms) for message in messages):
                return False
            changed = [
                message.changed(text=_short(text))
                if (message.by, message.at_ms) == (by, at_ms)
                else message
                for message in messages
            ]
            if await self._store_messages(
                approval, [message for message in changed if message.text]
            ):
                return True
            approval = await self.storage.approvals.get(approval.approval_id)
        return False

    async def _store_messages(
        self, approval: Approval, messages: Sequence[RequesterMessage]
    ) -> bool:
        write = partial(
            with_messages,
            messages=tuple(messages),
            revision=approval.shown_revision,
            now_ms=self.clock(),
        )
        stored = await update_or_none(
            self.storage.approvals, approval.approval_id, write, writes_due=True
        )
        return stored is not None


def looks_like_withdrawal(text: str) -> bool:
    """Whether a reply reads like a withdrawal. It is never treated as one."""
    return _STOP.fullmatch(text.strip()) is not None


def _short(text: str) -> str:
    """Mask and shorten. Masking comes first: half a secret is not recognized."""
    clean = mask_text(text).strip()
    return clean if len(clean) <= LONGEST_MESSAGE else f"{clean[: LONGEST_MESSAGE - 1]}…"
