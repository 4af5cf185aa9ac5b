"""Whether what people decided still lets a call start: how old it is, and who they are by now.

Asked by the runtime right before a gated call starts. A decision belongs to a moment: long after
it, or when whoever made it may no longer decide, nothing runs, and people are asked anew.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from agents.core.codec import Json
from agents.core.scope import AskAgain, StartingCall
from bot.approvals.execution import Run, RunState, run_of
from bot.approvals.votes import Votes
from bot.audit.entries import TakesEntries
from bot.audit.invalidated import note_lapse
from bot.clock import milliseconds
from bot.config.durations import format_duration
from bot.errors import DirectoryError
from bot.people.terms_of import terms_of
from bot.policy.terms import TermsError
from bot.ports.process import Clock
from bot.questions.record import approval_id_of, deciders_of
from bot.words import say
from storage.base import Storage
from storage.errors import RecordNotFoundError
from storage.records import Approval, Kind, Status

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=60)
"""The time after a decision in which its maker need not be looked up again."""
RETRY = timedelta(seconds=5)
"""The time before the second attempt to find something out; from one to the next it doubles."""
_LONGEST = timedelta(minutes=1)
_DOUBLINGS = 8
"""More are longer than the longest."""
_LETTING_RUN = frozenset({Status.APPROVED, Status.ANSWERED})


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheck:
    """Looks at each gated call before it starts; see `agents.core.scope.BeforeStart`.

    Args:
        storage: Where records are kept.
        audit: Where it is noted that a decision has lapsed, after what was decided.
        votes: Gives who looks at those again who were counted.
        clock: The time now.
        max_age: How long after a decision its call may start, unless its rule says so.
        known: Gives the approvals of a turn that this process has read under the lease of its
            thread; of others the record is read.
        attend: Has a card drawn again, without waiting for it.
        sleep: Waits, in seconds.
    """

    storage: Storage
    audit: TakesEntries
    votes: Callable[[], Votes]
    clock: Clock
    max_age: timedelta
    known: Callable[[str], Sequence[Approval]]
    attend: Callable[[str], None]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, call: StartingCall) -> Mapping[str, Json] | AskAgain:
        """Give what is frozen of the deciders when the call may start; else why it may not."""
        known = {one.interrupt_id: one for one in self.known(call.checkpoint_id)}
        decided = [known.get(name) or await self._found(name) for name in call.decisions]
        approvals = [approval for approval in decided if approval is not None]
        if not decided:
            return {}  # a rule allows it; nobody was asked
        if call.goes_on:  # to stop it in its middle would be to run its beginning twice
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
        """Wait before a call is judged once more, if it may begin for so long; see `PatientPolicy`.

        Raises:
            StorageError: The record of what people decided cannot be read; the run is repeated.
        """
        found = [await self._found(name) for name in decisions]
        approvals = [one for one in found if one is not None and _lets_run(one)]
        times = [one.decision.at_ms for one in approvals if one.decision]
        if not times:
            return False
        max_age = min(map(self._max_age, approvals))
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
        times = [one.decision.at_ms for one in approvals if one.decision and _lets_run(one)]
        if not is_whole or len(times) < len(approvals):
            return say("reason.no_record")
        if any(_has_run(one) for one in approvals):  # part of the database is older than the rest
            return say("reason.has_run")
        decided_ms, max_age = max(times), min(map(self._max_age, approvals))
        tries = 0
        while True:
            now = self.clock()
            if _age(now, decided_ms) > milliseconds(max_age):
                return say("reason.too_late", time=format_duration(max_age))
            try:
                return await self._gone(approvals, now)
            except DirectoryError:
                # Nobody knows whether they still may decide: it waits, and lapses if need be.
                logger.warning("who approved cannot be looked up", extra={"action": "start_waits"})
                await self._pause(tries)
                tries += 1

    async def _pause(self, tries: int) -> None:
        await self.sleep(min(RETRY * 2 ** min(tries, _DOUBLINGS), _LONGEST).total_seconds())

    def _max_age(self, approval: Approval) -> timedelta:
        """How long after its decision a call may start: by its rule, or by the settings."""
        if not approval.terms_json:
            return self.max_age
        try:
            return timedelta(seconds=terms_of(approval).max_age_s)
        except TermsError:
            return timedelta(0)

    async def _gone(self, approvals: list[Approval], now: int) -> str:
        """Name the people who may not decide any more, in words; empty when all still may.

        Raises:
            DirectoryError: It could not be looked up.
        """
        for approval in approvals:
            decision = approval.decision
            is_fresh = decision is None or _age(now, decision.at_ms) <= milliseconds(FRESH)
            if is_fresh or approval.kind is Kind.QUESTION:
                continue  # whoever fills in what is missing approves nothing
            if await self.votes().gone_since(approval):
                return say("reason.gone")
        return ""

    async def _tell(self, approval: Approval, why: str) -> None:
        """Let the card of the decision say that nothing came of it."""
        told = Run(state=RunState.STOPPED, at_ms=self.clock(), text=say("reason.again", why=why))
        if await self.storage.approvals.mark_run(
            approval.approval_id,
            was=approval.run_json,
            run_json=told.to_text(),
            now_ms=self.clock(),
        ):
            self.attend(approval.approval_id)


def _age(now: int, at_ms: int) -> int:
    """One that seems to come was made when the clock was wrong: nobody knows how old it is."""
    return abs(now - at_ms)


def _has_run(approval: Approval) -> bool:
    run = run_of(approval)
    return run is not None and run.state is RunState.RAN


def _lets_run(approval: Approval) -> bool:
    return approval.decision is not None and approval.status in _LETTING_RUN


def _strictest(approvals: list[Approval]) -> Approval:
    """Return the approval whose people decide about a doubt, too: one whose rule names people."""
    named = [one for one in approvals if _names_people(one)]
    return (named or approvals)[-1]


def _names_people(approval: Approval) -> bool:
    if approval.kind is Kind.DOUBT:
        return True
    try:
        found = json.loads(approval.ruling_json) if approval.ruling_json else {}
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and bool(found.get("approvers"))
