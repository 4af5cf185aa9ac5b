"""Create approvals from the interrupts of a run: store first, then display."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from agents import InDoubtInfo, InterruptContext
from agents.core.asking.infos import CallInfo
from agents.core.asking.limits import LimitInfo
from bot.approvals.due.worker import ApprovalWorker
from bot.audit.entries import request_entry
from bot.errors import NobodyError
from bot.people.lookup import LookupOnce
from bot.people.quorum import QuorumCheck, undecidable
from bot.policy.named_terms import under_terms
from bot.ports.policy import CurrentPolicy
from bot.ports.process import Clock, Spawn
from bot.questions.base import asks_people, brief_of
from bot.questions.record import Asked, Rules, approval_from, approval_id_of, unknown_names
from bot.records.approval import Approval, Kind, Restored, Status
from bot.records.approval_queries import get_all, open_of
from bot.records.thread import Thread
from bot.stores import Stores
from bot.threads.requesters import Requesters
from bot.threads.thread_pass import ThreadPass
from storage.errors import RecordFormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApprovals:
    """The approvals of a waiting turn.

    Attributes:
        infos: The requests by interrupt id, without interrupts that need no person.
        known: Ids of interrupts with stored approvals, without `gone`.
        decided: Decided approvals of pending interrupts.
        gone: Open approvals without a pending interrupt.
    """

    infos: Mapping[str, object]
    known: frozenset[str]
    decided: Sequence[Approval]
    gone: Sequence[Approval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Creates missing approvals for pending interrupts."""

    storage: Stores
    attendance: ApprovalWorker
    quorum_check: QuorumCheck
    rules: Rules
    requesters: Requesters
    clock: Clock
    spawn: Spawn

    async def request(
        self, work: ThreadPass, contexts: Sequence[InterruptContext], *, known: Collection[str]
    ) -> list[Approval]:
        """Store the missing approvals of a turn together, and display them.

        Returns:
            The new approvals. Some may be decided, because no approver exists.

        Raises:
            DirectoryError: The channel's members decide, and could not be looked up.
        """
        contexts = [context for context in contexts if asks_people(context)]
        if all(context.id in known for context in contexts):
            return []
        now = self.clock()
        requesters = await self.requesters.of(work)
        new_ones = [context for context in contexts if context.id not in known]
        subject = await self._subject(work.thread, new_ones)
        made = [
            await self._made(work, context, requesters, subject, position=position, now_ms=now)
            for position, context in enumerate(contexts)
            if context.id not in known
        ]
        directory = LookupOnce(self.quorum_check.directory)
        quorum_check = replace(self.quorum_check, directory=directory)
        planner = self.attendance.planner(directory)
        new = [
            await planner.invite(
                await quorum_check.prepare(approval, unknown=unknown_names(context.info))
            )
            for approval, context in zip(made, new_ones, strict=True)
        ]
        new = self.attendance.together(new)
        created = [
            self.attendance.leased_here(approval, is_shared=work.left is None) for approval in new
        ]
        entries = [request_entry(approval) for approval in created]
        # In any order: the next pass of the thread repeats both.
        added, _ = await asyncio.gather(
            self.storage.approvals.insert(*created), self.storage.audit.append(*entries)
        )
        ours = [approval for approval in created if approval.approval_id in added]
        self.spawn(self.attendance.request(ours))
        return ours

    async def _subject(self, thread: Thread, contexts: Sequence[InterruptContext]) -> str:
        """Return the turn's first message, if the titles do not name the subject."""
        if not any(brief_of(context.info).is_vague for context in contexts):
            return ""
        with suppress(RecordFormatError):
            messages = await self.storage.inbox.of_turn(thread.thread_id, thread.turn)
            return messages[0].text if messages else ""
        return ""

    async def find_or_request(
        self, work: ThreadPass, pending: Sequence[InterruptContext]
    ) -> PendingApprovals:
        """Find the approvals of a waiting turn; create missing ones.

        Raises:
            DirectoryError: See `request`.
        """
        infos = {context.id: context.info for context in pending if asks_people(context)}
        opened, work.opened = work.opened, None  # they change from now on
        if opened is None:
            opened = await open_of(self.storage.approvals, work.thread.thread_id)
        self.attendance.saw(work.thread.thread_id, opened)
        known = frozenset(approval.interrupt_id for approval in opened)
        asked = [approval for approval in opened if approval.interrupt_id in infos]
        gone = [approval for approval in opened if approval.interrupt_id not in infos]
        decided = [approval for approval in asked if approval.status is not Status.PENDING]
        missing = infos.keys() - known
        if missing:
            new = await self.request(work, pending, known=known)
            # An approval can be closed before its answer arrives.
            closed = sorted(missing - {approval.interrupt_id for approval in new})
            names = [approval_id_of(interrupt_id) for interrupt_id in closed]
            approvals = [*new, *(await get_all(self.storage.approvals, names))]
            decided += [approval for approval in approvals if approval.status is not Status.PENDING]
        places = {name: place for place, name in enumerate(infos)}
        return PendingApprovals(
            infos=infos,
            known=(known - {approval.interrupt_id for approval in gone}) | infos.keys(),
            decided=sorted(decided, key=lambda approval: places[approval.interrupt_id]),
            gone=gone,
        )

    async def _made(
        self,
        work: ThreadPass,
        context: InterruptContext,
        requesters: tuple[str, ...],
        subject: str,
        *,
        position: int,
        now_ms: int,
    ) -> Approval:
        thread = work.thread
        if isinstance(context.info, InDoubtInfo):
            requesters = await self.requesters.of_call(work, str(context.address))
        origin = Asked(thread=thread, requesters=requesters, subject=subject)
        approval = approval_from(context, origin, self.rules, position=position, now_ms=now_ms)
        approval = approval.changed(why_said=_holds(work.said, approval.why))
        approval = under_policy(
            approval, context.info, self.quorum_check.policy, places=self.rules.channels
        )
        if thread.restored.turn and thread.restored.turn == thread.turn:
            return approval.changed(restored=Restored(to_ms=thread.restored.to_ms))
        return approval


def under_policy(
    approval: Approval, info: object, policy: CurrentPolicy, *, places: Collection[str] = ()
) -> Approval:
    """Apply the current policy to a new approval; its defaults apply without a rule.

    Calls have their own terms or approvers named in code, except for calls that people only choose
    or fill in. A question may be answered by every member.

    Args:
        approval: Under its own terms, or those of the settings.
        info: What is asked.
        policy: The policy in force.
        places: Ids of the only channels where the settings' approvers decide; empty for all.
    """
    approval = approval.changed(policy_file=policy.file_hash)
    if isinstance(info, InDoubtInfo) or approval.kind is Kind.QUESTION:
        return approval
    call = info if isinstance(info, CallInfo) else None
    if isinstance(info, CallInfo | LimitInfo) and info.terms:
        return approval
    is_named = call is not None and bool(call.approvers)
    terms = None if is_named else policy.defaults(approval.channel_id)
    if terms is not None:
        return under_terms(approval, terms, now_ms=approval.created_ms)
    if places and approval.channel_id not in places:
        return undecidable(approval, NobodyError.elsewhere([*places]))
    return approval


def _holds(text: str, words: str) -> bool:
    """Whether a text contains certain words, whatever the line breaks."""
    wanted = " ".join(words.split())
    return bool(wanted) and wanted in " ".join(text.split())
