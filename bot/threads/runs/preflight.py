"""Check before a call starts that its decision is recent and its approvers valid.

The runtime calls it right before a gated call starts. If the decision is too old, or an approver
has lost the right, the call does not run and approval is requested again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from agents.core.codec import Json
from agents.core.scope import AskAgain, StartingCall
from bot.approvals.changes import with_run
from bot.approvals.execution import run_of
from bot.approvals.votes import Votes
from bot.audit.entries import TakesEntries
from bot.audit.invalidated import note_lapse
from bot.clock import milliseconds
from bot.config.durations import format_duration
from bot.errors import DirectoryError
from bot.ports.process import Clock
from bot.questions.record import approval_id_of, deciders_of
from bot.records.approval import Approval, Kind, Run, RunState, Status
from bot.stores import Stores
from bot.words import say
from storage.documents import update_or_none
from storage.errors import RecordNotFoundError

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=60)
"""Age of a decision up to which its approvers are not looked up again."""
RETRY = timedelta(seconds=5)
"""Delay before the second attempt; doubled for each further attempt."""
_LONGEST = timedelta(minutes=1)
_DOUBLINGS = 8
"""Number of doublings of the delay."""
_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheck:
    """Checks each gated call before it starts; see `agents.core.scope.BeforeStart`.

    Args:
        storage: The database.
        audit: Records lapsed decisions, after the decision.
        votes: Checks the counted voters again.
        clock: The time now.
        known: Returns approvals of a turn that this process has read under its lease; others are
            read.
        attend: Starts the update of a card, without waiting for it.
        sleep: Waits for some seconds.
    """

    storage: Stores
    audit: TakesEntries
    votes: Callable[[], Votes]
    clock: Clock
    known: Callable[[str], Sequence[Approval]]
    attend: Callable[[str], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, call: StartingCall) -> Mapping[str, Json] | AskAgain:
        """Return the frozen facts of the approvers if the call may start, else why not."""
        known = {approval.interrupt_id: approval for approval in self.known(call.checkpoint_id)}
        decided = [known.get(name) or await self._found(name) for name in call.decisions]
        approvals = [approval for approval in decided if approval is not None]
        if not decided:
            return {}  # allowed by a rule without approval
        if call.goes_on:  # a resumed call must not run its beginning twice
            return deciders_of(_strictest(approvals)) if approvals else {}
        why = await self._why_not(approvals, is_whole=len(approvals) == len(decided))
        if not why:
            return deciders_of(_strictest(approvals))
        logger.warning(
            "approval no longer valid, asking again: %s",
            why,
            extra={"action": "lapsed", "thread_id": call.checkpoint_id.rpartition("#")[0]},
        )
        for approval in approvals:
            await note_lapse(self.audit, approval, self.clock(), why=why)
            if not _has_run(approval):
                await self._tell(approval, why)
        return AskAgain(why)

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        """Wait before a call is judged again, if it may still start then.

        Raises:
            StorageError: The decisions cannot be read; the run is repeated.
        """
        candidates = [await self._found(name) for name in decisions]
        approvals = [
            approval for approval in candidates if approval is not None and _lets_run(approval)
        ]
        times = [approval.decision.at_ms for approval in approvals if approval.decision]
        if not times:
            return False
        max_age = min(map(_max_age, approvals))
        if _age(self.clock(), max(times)) > milliseconds(max_age):
            return False
        logger.warning(
            "could not evaluate the policy for a call, will retry", extra={"action": "start_waits"}
        )
        await self._pause(tries)
        return True

    async def _found(self, interrupt_id: str) -> Approval | None:
        with suppress(RecordNotFoundError):
            return await self.storage.approvals.get(approval_id_of(interrupt_id))
        return None

    async def _why_not(self, approvals: list[Approval], *, is_whole: bool) -> str:
        times = [
            approval.decision.at_ms
            for approval in approvals
            if approval.decision and _lets_run(approval)
        ]
        if not is_whole or len(times) < len(approvals):
            return say("reason.no_record")
        if any(
            _has_run(approval) for approval in approvals
        ):  # part of the database is older than the rest
            return say("reason.has_run")
        decided_ms, max_age = max(times), min(map(_max_age, approvals))
        tries = 0
        while True:
            now = self.clock()
            if _age(now, decided_ms) > milliseconds(max_age):
                return say("reason.too_late", time=format_duration(max_age))
            try:
                return await self._gone(approvals, now)
            except DirectoryError:
                # Their rights are unknown: wait, until the decision lapses.
                logger.warning("who approved cannot be looked up", extra={"action": "start_waits"})
                await self._pause(tries)
                tries += 1

    async def _pause(self, tries: int) -> None:
        await self.sleep(min(RETRY * 2 ** min(tries, _DOUBLINGS), _LONGEST).total_seconds())

    async def _gone(self, approvals: list[Approval], now: int) -> str:
        """Return the names of approvers who lost the right; empty if none did.

        Raises:
            DirectoryError: A look-up failed.
        """
        for approval in approvals:
            decision = approval.decision
            is_fresh = decision is None or _age(now, decision.at_ms) <= milliseconds(FRESH)
            if is_fresh or approval.kind is Kind.QUESTION:
                continue  # filling in missing arguments approves nothing
            if await self.votes().gone_since(approval):
                return say("reason.gone")
        return ""

    async def _tell(self, approval: Approval, why: str) -> None:
        """Store that a decision lapsed, so the card shows it."""
        stopped = Run(state=RunState.STOPPED, at_ms=self.clock(), text=say("reason.again", why=why))
        write = partial(with_run, run=stopped, was=approval.run, now_ms=self.clock())
        name = approval.approval_id
        if await update_or_none(self.storage.approvals, name, write, writes_due=True):
            self.attend(name)


def _max_age(approval: Approval) -> timedelta:
    """Return the maximum age of a decision under its terms."""
    return timedelta(seconds=approval.terms.max_age_s)


def _age(now: int, at_ms: int) -> int:
    """Return the age; maximal for a time in the future, because its clock was wrong."""
    return abs(now - at_ms)


def _has_run(approval: Approval) -> bool:
    run = run_of(approval)
    return run is not None and run.state is RunState.RAN


def _lets_run(approval: Approval) -> bool:
    return approval.decision is not None and approval.status in _LETTING_RUN


def _strictest(approvals: list[Approval]) -> Approval:
    """Return the approval whose terms apply to a doubt: one whose rule names people."""
    asked = [approval for approval in approvals if approval.kind is not Kind.QUESTION] or approvals
    named = [
        approval
        for approval in asked
        if approval.kind is Kind.DOUBT or (approval.ruling or {}).get("approvers")
    ]
    return (named or asked)[-1]
