"""Start approved calls, or let them wait while a freeze covers them.

The order of a start: the approval says that the call starts, the switch gives it a start number,
the audit has its entry, the run journals it, and only then the tool begins. What the approval lets
start is decided in the write that says so (`bot.approvals.execution`). A process that dies before
the journal entry has started nothing, and the call starts anew when its run is recovered. A process
that dies after it leaves a doubt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from agents import InterruptContext
from agents.core.address import Address
from agents.core.asking.answers import NotStarted
from agents.core.asking.infos import CallInfo, ParkedInfo
from agents.core.asking.limits import LimitInfo
from agents.core.codec import Json
from agents.core.scope import AskAgain, Park, StartingCall
from bot.approvals.execution import (
    StartFacts,
    has_yes,
    held,
    lets_run,
    not_begun,
    parked,
    started,
    was_taken_back,
    why_not,
    with_outcome,
)
from bot.approvals.votes import Votes
from bot.audit.entries import note_start, resume_entry
from bot.audit.invalidated import lapse_entry
from bot.clock import milliseconds
from bot.errors import DirectoryError
from bot.freezes.rules import CallScope
from bot.freezes.starts import Frozen, StartSwitch, parked_entry, scope_of_approval
from bot.ports.process import Clock
from bot.questions.base import answer_when_parked
from bot.questions.record import approval_id_of, kept_at_start
from bot.records.approval import (
    Approval,
    Execution,
    ExecutionMode,
    ExecutionState,
    Kind,
    ParkedCall,
)
from bot.records.approval_queries import of_turn
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.runs.call_records import CallRecords, OpenTurn
from bot.threads.runs.grant_uses import GrantUses
from bot.words import say
from bot.words.times import utc
from storage.documents import Part, update, update_or_none
from storage.errors import RecordNotFoundError, StorageError
from storage.thread_ids import channel_of, thread_of

logger = logging.getLogger(__name__)

FRESH = timedelta(seconds=60)
"""Age of a decision up to which its approvers are not looked up again."""
RETRY = timedelta(seconds=5)
"""Delay before the second attempt; doubled for each further attempt."""
_LONGEST = timedelta(minutes=1)
_DOUBLINGS = 8
"""Number of doublings of the delay."""
PATIENCE = timedelta(minutes=15)
"""How long a call that nobody decided waits for the end of a freeze."""
UNREADABLE = "?"
"""Instead of the id of a freeze that cannot be read. No freeze has it, so the call is tried."""


class ParkedAt(Part):
    """Data that a parked call keeps in the run. Stored: version 1, must stay readable."""

    freeze: str
    since_ms: int
    """Time of the first try to start the call."""
    why: str = ""
    is_decided: bool = False
    """Whether people approved the call; a rule or a grant may let others run."""

    @classmethod
    def of(cls, kept: Mapping[str, Json] | None) -> ParkedAt | None:
        """Read the data; None for a call that was not parked, or whose data cannot be read."""
        with suppress(ValueError):
            return cls.model_validate(kept)
        return None


@dataclass(frozen=True, slots=True)
class _BegunCall:
    """A start that is on an approval, and its execution before."""

    approval: Approval
    before: Execution


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """Starts calls (`agents.core.scope.BeforeStart`).

    Args:
        storage: The database.
        records: Knows the approvals of each open turn, and shows that calls run.
        votes: Checks the counted voters again.
        clock: The time now.
        owner: Name of this process.
        switch: Gives each start its number, unless a freeze covers the call.
        grants: Uses standing grants; None without a policy, and so without grants.
        redraw: Starts the update of an approval's card, without waiting for it.
        sleep: Waits for some seconds.
    """

    storage: Stores
    records: CallRecords
    votes: Callable[[], Votes]
    clock: Clock
    owner: str
    switch: StartSwitch
    redraw: Callable[[str], None]
    grants: GrantUses | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def start(self, call: StartingCall) -> Mapping[str, Json] | AskAgain | Park:
        """Let a call start, or not; see `agents.core.scope.BeforeStart`.

        Returns:
            What the start keeps for a doubt, why people must be asked again, or why it waits.

        Raises:
            StorageError: The start could not be recorded; nothing has started.
            CheckpointConflictError: The thread's lease was lost; nothing has started.
        """
        turn = self.records.open_turn(call.checkpoint_id)
        decided = [await self._decided(turn, name) for name in call.decisions]
        approvals = [approval for approval in decided if approval is not None]
        if call.goes_on:  # a resumed call must not run its beginning twice
            await note_start(self.storage.audit, call, approvals, self.clock())
            return kept_at_start(_strictest(approvals))
        facts = StartFacts(
            now_ms=self.clock(),
            runner=self.owner,
            fence=turn.fence,
            decided_ms=max((a.decision.at_ms for a in approvals if a.decision), default=0),
            only_checks=call.only_checks,
            repeats=call.repeats,
            is_again=any(approval.kind is Kind.DOUBT for approval in approvals),
            mode=ExecutionMode.IDEMPOTENT if call.is_idempotent else ExecutionMode.ONCE,
            is_cancellable=call.is_cancellable,
        )
        is_whole = len(approvals) == len(decided)
        why = await self._why_not(call, approvals, facts) if is_whole else say("reason.no_record")
        if not why and call.only_checks:
            return {}
        begun = why or await self._begin(turn, call, approvals, facts)
        if isinstance(begun, Park):
            return begun
        if isinstance(begun, str) and call.may_park:
            newest = [
                await self.storage.approvals.get(approval.approval_id) for approval in approvals
            ]
            if any(map(was_taken_back, newest)):  # `answers_to_unfrozen` ends the call
                return Park(reason=begun, kept=call.parked or {})
        if isinstance(begun, str):
            return await self._ask_again(turn, call, approvals, begun)
        return kept_at_start(_strictest(approvals), start_number=begun)

    async def _begin(
        self, turn: OpenTurn, call: StartingCall, approvals: Sequence[Approval], facts: StartFacts
    ) -> int | str | Park:
        """Record the start: on the approvals, by its number, in the audit.

        Returns:
            The start number; or why the decisions do not let the call start; or that it waits.
        """
        needed = {approval.approval_id for approval in approvals}
        names = [*(approval.approval_id for approval in turn.at(call.address)), *needed]
        begun: list[_BegunCall] = []
        facts = replace(facts, now_ms=self.clock())
        try:
            for name in dict.fromkeys(names):
                start = await self._started(name, facts)
                if start is not None:
                    begun.append(start)
                    turn.approvals[name] = start.approval
                elif name in needed:
                    return await self._put_back(
                        turn, begun, why_not(await self.storage.approvals.get(name), facts)
                    )
            number = 0 if call.is_answered else await self.switch.take_number(scope_of(call))
            if isinstance(number, Frozen):
                return await self._held_back(turn, call, begun, number)
            # Only now: a call that waits for the end of a freeze has not used its grant.
            if call.grant and not (self.grants is not None and await self.grants.use(call)):
                return await self._put_back(turn, begun, say("reason.grant_over"))
            received = [start.approval for start in begun]
            await note_start(self.storage.audit, call, received, facts.now_ms, number=number)
        except BaseException:
            # Nothing has begun. A process that dies here leaves the start on record: see `why_not`.
            await asyncio.shield(self._put_back(turn, begun))
            raise
        turn.numbers[call.address] = number
        if begun:
            await self.records.show_start(turn, call.address)
        return number

    async def _started(self, name: str, facts: StartFacts) -> _BegunCall | None:
        """Store on an approval that its call starts; None if it does not let it start."""
        before = Execution()

        def write(approval: Approval) -> Approval | None:
            nonlocal before
            before = approval.execution
            return started(approval, facts)

        newest = await update(self.storage.approvals, name, write)
        return None if newest is None else _BegunCall(newest, before)

    async def _held_back(
        self, turn: OpenTurn, call: StartingCall, begun: Sequence[_BegunCall], frozen: Frozen
    ) -> str | Park:
        """Let a call wait for the end of a freeze; if it cannot, return why people are asked again.

        Its decision stays, and is judged again once the freeze is lifted.
        """
        freeze, now = frozen.freeze, self.clock()
        why = say("line.frozen_agent", why=freeze.why)
        if not call.may_park:
            return await self._put_back(turn, begun, why)
        before = ParkedAt.of(call.parked)
        since_ms = before.since_ms if before is not None else now
        waits = ParkedCall(
            freeze=freeze.id,
            by=freeze.by,
            why=freeze.why,
            since_ms=since_ms,
            may_have_run=any(start.approval.kind is Kind.DOUBT for start in begun),
        )
        for start in begun:
            name = start.approval.approval_id
            write = partial(parked, call=waits, begun=start.approval.execution, now_ms=now)
            newest = await update(self.storage.approvals, name, write, writes_due=True)
            if newest is not None:
                turn.approvals[name] = newest
                self.redraw(name)
        key = f"{call.checkpoint_id}:{call.address}"
        about = begun[0].approval if begun else thread_of(call.checkpoint_id)
        await self.storage.audit.append(
            *(resume_entry(start.approval, now) for start in begun),
            parked_entry(frozen, key=key, at_ms=now, about=about),
        )
        details = ParkedAt(
            freeze=freeze.id, since_ms=since_ms, why=freeze.why, is_decided=bool(call.decisions)
        )
        return Park(reason=why, kept=details.model_dump(mode="json"))

    async def answers_to_unfrozen(
        self, thread: Thread, contexts: Iterable[InterruptContext]
    ) -> dict[str, object]:
        """Return the answers to parked calls that their freeze covers no more, by interrupt id.

        A call that people took back ends, also while it is frozen. A call that nobody decided, and
        that has waited for `PATIENCE`, does not start any more.
        """
        answers: dict[str, object] = {}
        parked_calls = [context for context in contexts if isinstance(context.info, ParkedInfo)]
        taken = await self._taken_back(thread) if parked_calls else {}
        for context in parked_calls:
            info = context.info
            if not isinstance(info, ParkedInfo):
                continue
            if (ended := taken.get(str(context.address))) is not None:
                answers[context.id] = answer_when_parked(ended)
                continue
            address, parked = str(context.address), ParkedAt.of(info.kept)
            call = StartingCall(
                checkpoint_id=thread.checkpoint_id,
                address=address,
                tool=info.tool_name,
                arguments={},
                tags=info.tags,
            )
            frozen = await self.switch.covering(scope_of(call))
            if frozen is not None and parked is not None and frozen.freeze.id == parked.freeze:
                continue
            now = self.clock()
            is_old = parked is not None and now - parked.since_ms > milliseconds(PATIENCE)
            if frozen is not None:
                answers[context.id] = (
                    True  # its start says, and records, that another one covers it
                )
            elif parked is not None and is_old and not parked.is_decided:
                since, until = utc(parked.since_ms), utc(now)
                reason = say("reason.frozen", since=since, until=until, why=parked.why)
                answers[context.id] = NotStarted(reason=reason)
            else:
                answers[context.id] = True
        return answers

    async def held(
        self,
        thread: Thread,
        decided: Iterable[Approval],
        infos: Mapping[str, object],
        *,
        is_told: bool = False,
    ) -> dict[str, str]:
        """Return the decisions that their run must not go on with while a freeze covers their work.

        The work of a node or a stage cannot wait once its run goes on: people would be asked again
        and again. So the decision waits, and is judged at the start after the lifting; so does one
        that lets work in doubt run again.

        Args:
            thread: As claimed.
            decided: Decisions whose work has not begun.
            infos: What was asked, by interrupt id.
            is_told: Whether the run has heard of them, in a process that died. Nobody can take
                them back any more, as people can a parked call.

        Returns:
            Ids of freezes, by interrupt id.

        Raises:
            CheckpointConflictError: The thread's lease was lost.
        """
        waiting: dict[str, str] = {}
        for approval in decided:
            is_call = isinstance(infos.get(approval.interrupt_id), CallInfo | LimitInfo)
            if is_call or approval.kind is Kind.QUESTION or not lets_run(approval):
                continue
            frozen = await self.switch.covering(scope_of_approval(approval, ()))
            if frozen is None:
                continue
            freeze, now, name = frozen.freeze, self.clock(), approval.approval_id
            waiting[approval.interrupt_id] = freeze.id
            call = ParkedCall(
                freeze=freeze.id,
                by=freeze.by,
                why=freeze.why,
                since_ms=now,
                may_have_run=approval.kind is Kind.DOUBT,
            )
            write = partial(held, call=call, fence=thread.fence, now_ms=now)
            is_shown = call.may_have_run or not is_told
            approvals = self.storage.approvals
            if is_shown and await update_or_none(approvals, name, write, writes_due=True):
                self.redraw(name)
            # Also if a process has written it before: it may have died before this.
            await self.storage.audit.append(
                parked_entry(frozen, key=name, at_ms=now, about=approval)
            )
        return waiting

    async def _taken_back(self, thread: Thread) -> dict[str, Approval]:
        """Return the approvals that people took back while their calls were parked, by address."""
        approvals = await of_turn(self.storage.approvals, thread.checkpoint_id)
        return {a.address: a for a in approvals if was_taken_back(a)}

    async def _put_back(self, turn: OpenTurn, begun: Iterable[_BegunCall], why: str = "") -> str:
        for start in begun:
            approval, name = start.approval, start.approval.approval_id
            write = partial(not_begun, begun=approval.execution, before=start.before)
            with suppress(StorageError):
                turn.approvals[name] = (
                    await update_or_none(self.storage.approvals, name, write) or approval
                )
        return why

    async def _decided(self, turn: OpenTurn, interrupt_id: str) -> Approval | None:
        known = turn.approvals.get(approval_id_of(interrupt_id))
        if known is not None:
            return known
        with suppress(RecordNotFoundError):
            return await self.storage.approvals.get(approval_id_of(interrupt_id))
        return None

    async def _why_not(
        self, call: StartingCall, approvals: Sequence[Approval], facts: StartFacts
    ) -> str:
        """Return why the decisions do not let their call start; wait while that is unknown."""
        tries = 0
        while True:
            facts = replace(facts, now_ms=self.clock())
            why = next(filter(None, (why_not(approval, facts) for approval in approvals)), "")
            if why or facts.repeats:
                return why
            try:
                is_gone = await self._is_gone(call, approvals, facts.now_ms)
                return say("reason.gone") if is_gone else ""
            except DirectoryError:
                # Their rights are unknown: wait, until the decision lapses.
                logger.warning("who approved cannot be looked up", extra={"action": "start_waits"})
                await self._pause(tries)
                tries += 1

    async def _is_gone(self, call: StartingCall, approvals: Sequence[Approval], now: int) -> bool:
        """Whether a person who approved has lost the right.

        Of a parked call, all people are looked up, however new their votes are.

        Raises:
            DirectoryError: A look-up failed.
        """
        for approval in approvals:
            decision = approval.decision
            is_fresh = decision is None or abs(now - decision.at_ms) <= milliseconds(FRESH)
            if (is_fresh and call.parked is None) or approval.kind is Kind.QUESTION:
                continue  # filling in missing arguments approves nothing
            if await self.votes().gone_since(approval):
                return True
        return False

    async def _ask_again(
        self, turn: OpenTurn, call: StartingCall, approvals: Sequence[Approval], why: str
    ) -> AskAgain:
        """Record that decisions lapsed, so that their cards show it."""
        logger.warning(
            "approval no longer valid, asking again: %s",
            why,
            extra={"action": "lapsed", "thread_id": thread_of(call.checkpoint_id)},
        )
        text = say("reason.again", why=why)
        for approval in approvals:
            now, name = self.clock(), approval.approval_id
            write = partial(
                with_outcome, state=ExecutionState.LAPSED, fence=turn.fence, now_ms=now, text=text
            )
            if await update_or_none(self.storage.approvals, name, write, writes_due=True):
                self.redraw(name)
            await self.storage.audit.append(
                resume_entry(approval, now), lapse_entry(approval, now, why=why)
            )
        return AskAgain(why)

    async def wait(self, decisions: Sequence[str], tries: int) -> bool:
        """Wait before a call is judged again, if it may still start then.

        Raises:
            StorageError: The decisions cannot be read; the run is repeated.
        """
        decided = [await self._decided(OpenTurn(), name) for name in decisions]
        approvals = [approval for approval in decided if approval is not None and has_yes(approval)]
        times = [approval.decision.at_ms for approval in approvals if approval.decision]
        if not times:
            return False
        facts = StartFacts(now_ms=self.clock(), decided_ms=max(times))
        if any(why_not(approval, facts) for approval in approvals):
            return False
        logger.warning(
            "could not evaluate the policy for a call, will retry", extra={"action": "start_waits"}
        )
        await self._pause(tries)
        return True

    async def _pause(self, tries: int) -> None:
        await self.sleep(min(RETRY * 2 ** min(tries, _DOUBLINGS), _LONGEST).total_seconds())


def scope_of(call: StartingCall) -> CallScope:
    """Return what a freeze can name about a call."""
    return CallScope(
        agents=frozenset(Address.parse(call.address).agents),
        tool=call.tool,
        tags=frozenset(call.tags),
        channel=channel_of(thread_of(call.checkpoint_id)),
    )


def parked_by(contexts: Iterable[InterruptContext]) -> str:
    """Return the ids of the freezes that parked calls wait for, with spaces between."""
    infos = [context.info for context in contexts if isinstance(context.info, ParkedInfo)]
    parked = (ParkedAt.of(info.kept) for info in infos)
    return " ".join(sorted({item.freeze if item is not None else UNREADABLE for item in parked}))


def _strictest(approvals: Sequence[Approval]) -> Approval | None:
    """Return the approval whose terms apply to a doubt: one whose rule names people."""
    if not approvals:
        return None
    asked = [approval for approval in approvals if approval.kind is not Kind.QUESTION] or approvals
    named = [
        approval
        for approval in asked
        if approval.kind is Kind.DOUBT or (approval.ruling or {}).get("approvers")
    ]
    return (named or asked)[-1]
