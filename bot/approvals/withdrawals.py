"""Requesters' part in what waits: they take it back, and add words that stand on its card."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.audit.entries import note_refusal
from bot.errors import (
    ApprovalClosedError,
    InvalidInputError,
    OutdatedCardError,
    RefusalError,
    UnknownApprovalError,
    UserFacingError,
)
from bot.people.requesters import is_requester
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.redaction.mask import mask_text
from bot.words import say
from storage.base import Storage
from storage.errors import RecordConflictError, RecordNotFoundError
from storage.records import Approval, Decision, Kind, Status

MOST_SAID = 3
"""Messages on a card; the newest. All of them are in the thread."""
LONGEST_SAID = 600
_TRIES = 5

_STOP = re.compile(
    r"(please |no,? )?(cancel|stop|abort|withdraw|undo|never ?mind|forget|scratch)"
    r"( (it|this|that|the request))?[.! ]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Withdrawals:
    """Takes requests back; stopping needs nobody's leave but that of one who asked."""

    storage: Storage
    clock: Clock

    async def is_own(self, approval_id: str, actor: Actor) -> bool:
        """Whether a no of this person takes a call back: they asked for it.

        Raises:
            UnknownApprovalError: There is none.
        """
        approval = await self._read(approval_id)
        is_call = approval.kind is Kind.APPROVAL or (
            approval.kind is Kind.QUESTION and bool(approval.tool)
        )
        return is_call and is_requester(approval, actor.user_id)

    async def look(self, approval_id: str, actor: Actor) -> Approval:
        """Read an approval for a person who may take it back.

        Nothing is looked up in Slack, and an older card will do: nothing runs by it.

        Raises:
            UnknownApprovalError: There is none.
            RefusalError: This person did not ask for it.
            ApprovalClosedError: Somebody, or the clock, decided first.
            InvalidInputError: It has begun to run.
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
        if not is_requester(approval, actor.user_id):
            raise RefusalError("not_requester", say("refuse.not_requester_here"))
        if approval.status is not Status.PENDING or self.clock() >= approval.expires_ms:
            raise ApprovalClosedError(approval)

    async def withdraw(self, approval_id: str, actor: Actor, *, reason: str) -> Approval:
        """Take a request back, once, whatever it has become since the person saw it.

        Args:
            approval_id: As carried by the form.
            actor: Who does.
            reason: What the agent is told; may be empty.

        Returns:
            The approval as withdrawn. `Approvals.follow_up` does the rest.

        Raises:
            OutdatedCardError: It changes all the time.
            UserFacingError: As `look`.
        """
        for _ in range(_TRIES):
            approval = await self.look(approval_id, actor)
            decision = Decision(
                status=Status.WITHDRAWN,
                by=actor.user_id,
                at_ms=self.clock(),
                reason=reason,
                digest=approval.digest,
            )
            try:
                return await self.storage.approvals.decide(
                    approval_id, decision, digest=approval.digest
                )
            except RecordConflictError:
                continue
        raise OutdatedCardError

    async def add_words(self, approval: Approval, *, by: str, text: str, at_ms: int) -> bool:
        """Put what a requester wrote on the card of what waits; once, however often it comes.

        Returns:
            Whether the card has to be drawn again.
        """
        for _ in range(_TRIES):
            words = said_of(approval)
            is_known = any((one.by, one.at_ms) == (by, at_ms) for one in words)
            is_old = len(words) >= MOST_SAID and at_ms < words[0].at_ms
            if approval.status is not Status.PENDING or is_known or is_old:
                return False
            new = Said(by=by, text=_short(text), at_ms=at_ms)
            newest = sorted([*words, new], key=lambda one: one.at_ms)[-MOST_SAID:]
            if await self.storage.approvals.set_said(
                approval.approval_id,
                _written(newest),
                revision=approval.revision,
                now_ms=self.clock(),
            ):
                return True
            approval = await self.storage.approvals.get(approval.approval_id)
        return False

    async def change_words(self, approval: Approval, *, by: str, text: str, at_ms: int) -> bool:
        """Change what a card shows of a message that its writer edited, or, when empty, deleted.

        Args:
            approval: As read a moment ago.
            by: Slack user id.
            text: The new words; empty removes them.
            at_ms: When the message was written; with `by`, it tells one from another.

        Returns:
            Whether the card showed it, and has to be drawn again.
        """
        for _ in range(_TRIES):
            words = said_of(approval)
            if not any((one.by, one.at_ms) == (by, at_ms) for one in words):
                return False
            changed = [
                replace(one, text=_short(text)) if (one.by, one.at_ms) == (by, at_ms) else one
                for one in words
            ]
            if await self.storage.approvals.set_said(
                approval.approval_id,
                _written([one for one in changed if one.text]),
                revision=approval.revision,
                now_ms=self.clock(),
            ):
                return True
            approval = await self.storage.approvals.get(approval.approval_id)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A requester's words while something waited."""

    by: str
    text: str
    at_ms: int


def said_of(approval: Approval) -> list[Said]:
    """Read what requesters wrote since, oldest first; what cannot be read is left out."""
    found = json.loads(approval.said_json)
    return [
        Said(by=str(one["by"]), text=str(one["text"]), at_ms=int(one["at_ms"]))
        for one in (found if isinstance(found, list) else [])
    ]


def looks_like_withdrawal(text: str) -> bool:
    """Whether a reply reads as if its writer took back what waits. It never counts as that."""
    return _STOP.fullmatch(text.strip()) is not None


def _written(said: Sequence[Said]) -> str:
    return json.dumps([{"by": one.by, "text": one.text, "at_ms": one.at_ms} for one in said])


def _short(text: str) -> str:
    """Masked before it is cut: half of a secret would not be recognised."""
    clean = mask_text(text).strip()
    return clean if len(clean) <= LONGEST_SAID else f"{clean[: LONGEST_SAID - 1]}…"
