"""Edit the call of an approval (I2, I13).

An edit is judged by the policy again. An edit that the policy denies, or that could never be
approved, is refused in the form. Otherwise one conditional write stores the new call and terms: all
votes are void, and the edit counts as the editor's vote if the rule permits that. The runtime
judges the call once more before it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.gates.rulings import Judgement
from bot.approvals.service import Approvals
from bot.audit.invalidated import last_edit, note_edit, note_edit_refusal
from bot.errors import OutdatedCardError, plain_words
from bot.policy.demands import is_critical
from bot.policy.refusals import RefusalCode
from bot.ports.people import Actor
from bot.ports.process import Clock
from bot.ports.threads import CheckedCall
from bot.questions.base import check_decision
from bot.questions.form import edited_digest
from bot.questions.record import Rules, rebound, unknown_names
from bot.records.approval import Approval, Decision, Status, StoredEdits
from bot.stores import Stores
from bot.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class EditApproval:
    """The editor's approval of the edited call.

    Attributes:
        reason: Reason for the edit; may be empty.
        is_confirmed: Whether the editor confirmed a critical call in the form. A call that becomes
            critical by the edit is not confirmed; its editor approves on the card.
    """

    reason: str = ""
    is_confirmed: bool = False


NO_CONSENT = EditApproval()
_TRIES = 20
"""Number of conflicting writes before the editor must look again."""


@dataclass(frozen=True, slots=True)
class Edits:
    """Records edits of pending calls."""

    storage: Stores
    approvals: Approvals
    rules: Rules
    clock: Clock

    async def edit(
        self,
        approval: Approval,
        call: CheckedCall,
        judgement: Judgement | None,
        *,
        actor: Actor,
        consent: EditApproval = NO_CONSENT,
    ) -> Approval | str:
        """Record an edit.

        Args:
            approval: The pending approval, as shown.
            call: The call with its new, different arguments.
            judgement: The policy's decision; None if unknown before the run resumes.
            actor: The editor.
            consent: The editor's own approval.

        Returns:
            The approval, decided or pending; or why the policy denies the call.

        Raises:
            ApprovalClosedError: The approval has already ended.
            OutdatedCardError: Another person edited first.
            InvalidInputError: The approval does not accept this answer.
            NotApproverError: The person may not edit it.
            DirectoryError: The person could not be looked up.
        """
        for _ in range(_TRIES):
            changed = await self._judged(approval, call, judgement, actor, consent)
            if isinstance(changed, str):
                return changed
            stored = await self.approvals.rebind(approval, changed, actor=actor)
            if stored is not None:
                await note_edit(self.storage.audit, approval, stored)
                return stored
            approval = await self.storage.approvals.get(approval.approval_id)
        raise OutdatedCardError(approval.approval_id)

    async def _judged(
        self,
        approval: Approval,
        call: CheckedCall,
        judgement: Judgement | None,
        actor: Actor,
        consent: EditApproval,
    ) -> Approval | str:
        """Return the edited approval, not stored yet; or why the policy denies the call."""
        await self.approvals.check_editor(approval, actor)
        check_decision(approval, _edit_of(approval, call, by=actor.user_id))
        if judgement is not None and judgement.denied:
            code = RefusalCode.LOOKUP_FAILED if judgement.failed else RefusalCode.RULE_DENIES
            return await self._refused(approval, actor, code, judgement.denied)
        changed = with_call(
            approval, call, judgement, self.rules, by=actor.user_id, now_ms=self.clock()
        )
        if judgement is None and (why := await self.approvals.votes.why_denied(changed)):
            return await self._refused(approval, actor, RefusalCode.RULE_DENIES, why)
        changed = changed.changed(policy_file=self.approvals.policy.file_hash)
        decision = _approval_of(changed, call, by=actor.user_id).changed(reason=consent.reason)
        if judgement is not None and judgement.info is None:  # allowed without approval
            decision = decision.changed(rule=judgement.rule)
            changed = changed.changed(status=decision.status, decision=decision)
        else:
            unknown = unknown_names(judgement.info if judgement is not None else None)
            changed = await self.approvals.quorum_check().prepare(changed, unknown=unknown)
            if changed.decision is not None:
                why = say("reason.nobody_could", why=plain_words(changed.decision.reason))
                return await self._refused(approval, actor, RefusalCode.UNDECIDABLE, why)
            if consent.is_confirmed or not is_critical(changed):
                changed = await self._counted(approval, changed, decision, actor)
            if consent.reason and not _has_vote(changed, actor.user_id):
                edit = last_edit(approval, changed.escalation.since_ms, consent.reason)
                changed = changed.changed(edits=changed.edits.changed(last=edit))
        return changed

    async def _counted(
        self, approval: Approval, changed: Approval, decision: Decision, actor: Actor
    ) -> Approval:
        """Return the edited approval with the editor's vote, if the rule permits it."""
        is_same = _under_same_ruling(approval, changed)
        # People entitled by the current escalation made this edit, before it is reset.
        fresh = changed.escalation
        steps = approval.escalation.steps if is_same else 0
        reached = changed.changed(escalation=fresh.changed(steps=steps))
        votes = self.approvals.votes
        counted = await votes.count_editor(reached, actor, decision, shown=approval.digest)
        return counted.changed(escalation=fresh)

    async def refuse_arguments(self, approval: Approval, actor: Actor) -> None:
        """Record that an editor entered arguments that the tool does not accept.

        Raises:
            UserFacingError: The person may not edit it.
        """
        await self.approvals.check_editor(approval, actor)
        code = RefusalCode.INVALID_ARGUMENTS
        await self._refused(approval, actor, code, code.words)

    async def _refused(self, approval: Approval, actor: Actor, code: RefusalCode, why: str) -> str:
        now, by = self.clock(), actor.user_id
        await note_edit_refusal(self.storage.audit, approval, now, by=by, code=code, why=why)
        return why


def with_call(
    approval: Approval,
    call: CheckedCall,
    judgement: Judgement | None,
    rules: Rules,
    *,
    by: str,
    now_ms: int,
) -> Approval:
    """Return an approval of an edited call, without votes, reminders and escalation.

    Args:
        approval: The pending approval.
        call: The call with other arguments.
        judgement: The policy's decision about that call; None if unknown before the run resumes.
        rules: The rules of the settings.
        by: The editor.
        now_ms: The time of the edit.
    """
    info = judgement.info if judgement is not None else None
    if info is not None:
        changed = rebound(approval, info, rules, now_ms=now_ms)
    else:
        changed = _same_people(approval, call)
    return changed.changed(
        edits=_edits(approval, by, now_ms),
        votes=(),
        stage=0,
        escalation=approval.escalation.restarted(now_ms),
        claim=approval.claim.ended(now_ms),
        stuck="",
    )


def _edit_of(approval: Approval, call: CheckedCall, *, by: str) -> Decision:
    """Return the edit as an answer, to check that the approval accepts it."""
    digest = edited_digest(approval, call.arguments)
    return Decision(status=Status.APPROVED, by=by, at_ms=0, arguments=call.arguments, digest=digest)


def _edits(approval: Approval, by: str, now_ms: int) -> StoredEdits:
    """Return the edits with one more: the editors of earlier versions, and all votes it voids."""
    edits, voters = approval.edits, [vote.by for vote in approval.votes]
    return StoredEdits(
        original=approval.arguments if edits.original is None else edits.original,
        by=by,
        earlier=tuple(name for name in edits.editors if name != by),
        voided=tuple(dict.fromkeys((*edits.voided, *voters))),
        last=last_edit(approval, now_ms),
    )


def _has_vote(approval: Approval, user_id: str) -> bool:
    return any(vote.by == user_id for vote in approval.votes)


def _approval_of(changed: Approval, call: CheckedCall, *, by: str) -> Decision:
    """Return the editor's approval of the edited call."""
    return Decision(
        status=Status.APPROVED,
        by=by,
        at_ms=changed.escalation.since_ms,
        arguments=changed.arguments,
        digest=changed.digest,
        title=call.title,
        preview=call.preview,
    )


def _under_same_ruling(before: Approval, after: Approval) -> bool:
    """Whether an edit kept the terms, so the same people decide."""
    return before.terms.digest == after.terms.digest


def _same_people(approval: Approval, call: CheckedCall) -> Approval:
    """Return the changed approval with the same approvers."""
    return approval.changed(
        title=call.title or approval.title,
        preview=call.preview,
        arguments=call.arguments,
        digest=edited_digest(approval, call.arguments),
    )
