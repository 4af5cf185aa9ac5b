"""Build audit entries: who did what, when, and on what evidence.

The audit is append-only and secrets are masked (I10, I12). All entries are built here, so none is
stored unmasked. An entry that is written again after a crash has the same id and is stored once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from agents.core.digest import canonical_json
from agents.core.scope import StartingCall
from bot.audit.acts import Act
from bot.errors import ApprovalClosedError, UserFacingError
from bot.people.approvers import added_by, approvers_of, backups_of, next_step_ms
from bot.policy.progress import ballot_of, is_allowed_by_rule
from bot.questions.form import ask_of
from bot.records.approval import Approval, CastVote, Decision, Kind, Status, UnrecordedAct
from bot.records.origin import ProgramCall
from bot.redaction.call import mask_data
from bot.redaction.mask import mask
from bot.redaction.masks import NO_NAMES, Names
from storage.audit import AuditEntry, AuditStore
from storage.thread_ids import thread_of

_JUST_MS = 5_000
"""Age in milliseconds after which a decision is certainly in the audit."""
_LONGEST = 4_000
"""Characters of one text of the evidence. The record has the full text."""


class TakesEntries(Protocol):
    """Appends audit entries; see `AuditStore`."""

    async def append(self, *entries: AuditEntry) -> None:
        """Append entries."""
        ...


async def note(  # noqa: PLR0913 - the parts of one fact, given by name
    store: TakesEntries,
    act: Act,
    *,
    key: str,
    at_ms: int,
    about: Approval | str,
    by: str = "",
    behalf_of: str = "",
    team_id: str = "",
    masks: Names = NO_NAMES,
    **evidence: object,
) -> None:
    """Append an entry. The same act under the same key is stored once; see `entry_of`."""
    entry = entry_of(
        act,
        key=key,
        at_ms=at_ms,
        about=about,
        by=by,
        behalf_of=behalf_of,
        team_id=team_id,
        masks=masks,
        **evidence,
    )
    await store.append(entry)


def entry_of(  # noqa: PLR0913 - the parts of one fact, given by name
    act: Act,
    *,
    key: str,
    at_ms: int,
    about: Approval | str,
    by: str = "",
    behalf_of: str = "",
    team_id: str = "",
    masks: Names = NO_NAMES,
    **evidence: object,
) -> AuditEntry:
    """Build an entry. The same act under the same key is stored once.

    Args:
        act: Kind of the entry.
        key: Distinguishes entries of one kind: usually the id of the record.
        at_ms: When the act happened.
        about: The approval, or the thread's id.
        by: Slack user id of the actor; empty for the bot itself.
        behalf_of: Slack user id of the delegating person; empty without a delegation.
        team_id: The workspace, if `about` does not name one.
        masks: What the tool's author declared about the arguments in the evidence.
        evidence: JSON data. It is masked here, and long texts are cut.
    """
    thread_id, approval_id = (
        (about.thread_id, about.approval_id) if isinstance(about, Approval) else (about, "")
    )
    given = {name: item for name, item in evidence.items() if item != ""}
    if masks.shown:  # values that a person revealed are masked here
        given["declared_shown"] = list(masks.shown)
    # Mask before cutting: half of a secret would not be recognized.
    detail = _short(masked_evidence(json.loads(json.dumps(given, default=str)), masks))
    return AuditEntry(
        entry_id=f"{key}:{act}",
        at_ms=at_ms,
        action=str(act),
        thread_id=thread_id,
        approval_id=approval_id,
        actor_id=by,
        team_id=team_id,
        for_id=behalf_of,
        detail=detail if isinstance(detail, dict) else {},
    )


async def note_request(store: AuditStore, approval: Approval) -> None:
    """Record an approval request."""
    await store.append(request_entry(approval))


def request_entry(approval: Approval) -> AuditEntry:
    """Build the entry of a request, or of a request that has no possible approver."""
    act, key, reason, asker = Act.REQUESTED, approval.approval_id, "", approval.asker
    by = approval.requester_id
    if approval.kind is Kind.DOUBT:
        act, by = Act.DOUBTED, ""  # the bot asks, not the requester
    elif approval.decision is not None and approval.status is Status.UNDECIDABLE:
        # The request ends with this entry, which is stored once.
        act, key = Act.UNDECIDABLE, _end_key(approval, approval.decision)
        reason = approval.decision.reason
    return entry_of(
        act,
        key=key,
        at_ms=approval.created_ms,
        about=approval,
        by=by,
        kind=str(approval.kind),
        tool=approval.tool,
        masks=ask_of(approval).masks,
        arguments=approval.arguments,
        rule=approval.rule,
        ruling=_or_empty(approval.ruling),
        digest=approval.digest,
        asked_again=approval.asked_again,
        edited_by=approval.edits.by,
        counted=approval.counted or "",
        narrowed_to=asker.people if isinstance(asker, ProgramCall) and asker.people else "",
        requesters=approval.requesters or "",
        deciders=approvers_of(approval),
        backups=backups_of(approval) or "",
        escalates_ms=next_step_ms(approval) or "",
        expires_ms=approval.expires_ms,
        reason=reason,
    )


async def note_decision(store: AuditStore, approval: Approval, decision: Decision) -> None:
    """Record how an approval ended: by whom, and what the decision covers."""
    await store.append(*decision_entries(approval, decision))


def decision_entries(approval: Approval, decision: Decision) -> list[AuditEntry]:
    """Build all entries that describe how an approval ended."""
    emergency = [emergency_entry(approval, decision)] if decision.emergency else []
    return [*vote_entries(approval), *emergency, decision_entry(approval, decision)]


def emergency_entry(approval: Approval, decision: Decision) -> AuditEntry:
    """Build the entry of a break-glass decision, with its reasons."""
    return entry_of(
        Act.BROKE_GLASS,
        key=f"{approval.approval_id}:{decision.at_ms}",
        at_ms=decision.at_ms,
        about=approval,
        by=decision.by,
        digest=decision.digest,
        rule=approval.rule,
        policy=approval.policy_file,
        reasons=decision.emergency.model_dump() if decision.emergency else "",
    )


def decision_entry(approval: Approval, decision: Decision) -> AuditEntry:
    """Build the entry that describes how an approval ended.

    After an edit the entry names the editors, because a crash may have prevented the entry of
    `note_edit`.
    """
    is_edited = bool(approval.edits.by)
    act, key = _act_of(approval, decision), _end_key(approval, decision)
    if act is Act.ALLOWED:  # the start of the execution would record it again
        arguments = approval.arguments
        key = call_key(approval.checkpoint_id, approval.address, arguments)
    return entry_of(
        act,
        key=key,
        at_ms=decision.at_ms,
        about=approval,
        by=decision.by,
        status=str(decision.status),
        kind=str(approval.kind),
        tool=approval.tool,
        shown=approval.digest,
        digest=decision.digest,
        reason=decision.reason,
        title=decision.title,
        masks=ask_of(approval).masks,
        edited=_or_empty(decision.arguments),
        edited_by=approval.edits.by,
        arguments=approval.arguments if is_edited or decision.grant else "",
        rule=decision.rule or (approval.rule if is_edited or decision.grant else ""),
        deciders=approvers_of(approval) if is_edited else "",
        answer=_or_empty(decision.answer),
        grant=decision.grant,
        policy=approval.policy_file if act in {Act.ALLOWED, Act.GRANT_USED} else "",
    )


def call_key(checkpoint: str, address: str, arguments: Mapping[str, Any]) -> str:
    """Return the key for acts of a rule on a call with these arguments."""
    text = canonical_json(dict(arguments)).encode("ascii")
    return f"{checkpoint}:{address}:{hashlib.sha256(text).hexdigest()[:16]}"


def _end_key(approval: Approval, decision: Decision) -> str:
    return f"{approval.approval_id}:{decision.at_ms}"


_ENDS = {
    Status.EXPIRED: Act.EXPIRED,
    Status.WITHDRAWN: Act.WITHDRAWN,
    Status.UNDECIDABLE: Act.UNDECIDABLE,
    Status.SUPERSEDED: Act.SUPERSEDED,
    Status.DENIED: Act.DENIED,
}
"""Statuses that end an approval without a decision by people."""


def _act_of(approval: Approval, decision: Decision) -> Act:
    if decision.status is Status.CANCELLED and not decision.by:
        return Act.CANCELLED
    if decision.grant:
        return Act.GRANT_USED
    if is_allowed_by_rule(approval):
        return Act.ALLOWED
    if approval.kind is Kind.DOUBT and decision.status is Status.UNDECIDABLE:
        return Act.DECIDED  # abandoned: the call has started
    return _ENDS.get(decision.status, Act.DECIDED)


def vote_entries(approval: Approval) -> list[AuditEntry]:
    """Build the entries of all current votes, after the entry of the last edit.

    Entries that are stored already do not change.
    """
    votes = entries_of_votes(approval) if approval.votes else []
    ended = [
        end for entry in votes for end in _claim_end(approval, by=entry.actor_id, at_ms=entry.at_ms)
    ]
    return [*edit_entries(approval), *votes, *ended]


def _claim_end(approval: Approval, *, by: str, at_ms: int) -> list[AuditEntry]:
    """Build the entry of a claim that a vote or an edit ended, if there is one."""
    claim = approval.claim
    if claim.by or not claim.past or claim.until_ms != at_ms:
        return []
    key = f"{approval.approval_id}:{by}:{at_ms}"
    return [entry_of(Act.CLAIM_ENDED, key=key, at_ms=at_ms, about=approval, by=by)]


def edit_entries(approval: Approval) -> list[AuditEntry]:
    """Build the entry of the last edit of a call."""
    edit = approval.edits.last
    if edit is None:
        return []
    before = approval.edits.original if edit.arguments_before is None else edit.arguments_before
    entry = entry_of(
        Act.EDITED,
        key=f"{approval.approval_id}:{approval.edits.by}:{edit.at_ms}",
        at_ms=edit.at_ms,
        about=approval,
        by=approval.edits.by,
        masks=ask_of(approval).masks,
        before=_or_empty(before),
        arguments=approval.arguments,
        shown=edit.shown,
        note=edit.note,
        digest=approval.digest,
        rule=approval.rule,
        ruling=_or_empty(approval.ruling),
        deciders=approvers_of(approval),
        backups=backups_of(approval) or "",
        expires_ms=approval.expires_ms,
    )
    return [entry, *_claim_end(approval, by=approval.edits.by, at_ms=edit.at_ms)]


def entries_of_votes(approval: Approval, votes: Sequence[CastVote] = ()) -> list[AuditEntry]:
    """Build the entries of an approval's current votes and of the given earlier votes.

    They name the grounds on which a vote counted. Missing grounds are recorded as missing.
    """
    ballot = ballot_of(approval)
    return [
        entry_of(
            Act.VOTED,
            key=f"{approval.approval_id}:{vote.by}:{vote.at_ms}",
            at_ms=vote.at_ms,
            about=approval,
            by=vote.by,
            behalf_of=vote.on_behalf_of,
            choice=vote.choice,
            note=vote.note,
            payload=vote.grounds.payload or None,
            person=vote.grounds.person(vote.by),
            groups=list(vote.groups),
            groups_read_ms=vote.grounds.read_ms,
            shown=vote.grounds.shown or None,
            digest=vote.digest or None,
            ruling=ballot.terms.digest or None,
            file=vote.grounds.file or None,
        )
        for vote in (*votes, *ballot.votes)
    ]


def act_entries(approval: Approval) -> list[AuditEntry]:
    """Build the entries of the actions that the audit may not have yet.

    Entries that are stored already do not change.
    """
    entries: list[AuditEntry] = []
    for act in approval.acts:
        if act.vote is None:
            entries.append(_act_entry(approval, act))
        else:
            entries += _taken_back(approval, act.vote, act.at_ms)
    return entries


def _act_entry(approval: Approval, act: UnrecordedAct) -> AuditEntry:
    """Build the entry of a claim, a snooze, a question or an answer."""
    return entry_of(
        Act(act.act),
        key=f"{approval.approval_id}:{act.by}:{act.revision}",
        at_ms=act.at_ms,
        about=approval,
        by=act.by,
        digest=act.digest,
        until_ms="" if act.until_ms is None else act.until_ms,
        question=act.question,
        reply=act.reply,
    )


def _taken_back(approval: Approval, vote: CastVote, at_ms: int) -> list[AuditEntry]:
    """Build the entries of a vote that was taken back, and of the vote itself.

    The process that counted the vote may have crashed before it recorded it.
    """
    back = removed_vote_entry(Act.TAKEN_BACK, approval, vote, at_ms)
    return [*entries_of_votes(approval, [vote]), back]


def removed_vote_entry(act: Act, approval: Approval, vote: CastVote, at_ms: int) -> AuditEntry:
    """Build the entry of a vote that was taken back, or that no longer counts."""
    return entry_of(
        act,
        key=f"{approval.approval_id}:{vote.by}:{vote.at_ms}",
        at_ms=at_ms,
        about=approval,
        by=vote.by,
        behalf_of=vote.on_behalf_of,
        choice=vote.choice,
        digest=vote.digest,
    )


def resume_entries(
    decided: Iterable[Approval], at_ms: int, *, noted: Collection[str] = ()
) -> list[AuditEntry]:
    """Build the entries of the decisions that a run receives.

    Args:
        decided: The approvals.
        at_ms: When the run receives them.
        noted: Ids of approvals whose decision is in the audit.
    """
    entries: list[AuditEntry] = []
    for approval in decided:
        if approval.decision is not None and approval.approval_id not in noted:
            entries += decision_entries(approval, approval.decision)
        entries.append(resume_entry(approval, at_ms))
    return entries


def resume_entry(approval: Approval, at_ms: int) -> AuditEntry:
    """Build the entry of a decision that a run receives; it is stored once."""
    return entry_of(
        Act.RESUMED,
        key=approval.approval_id,
        at_ms=at_ms,
        about=approval,
        status=str(approval.status),
    )


async def note_steps(store: AuditStore, approval: Approval, steps: range, *, at_ms: int) -> None:
    """Record escalation steps: who can decide in addition, and since when."""
    terms = approval.terms
    await store.append(
        *(
            entry_of(
                Act.ESCALATED,
                key=f"{approval.approval_id}:{approval.schedule_ms}:{number}",
                at_ms=at_ms,
                about=approval,
                step=number + 1,
                groups=list(step.add),
                requirements=list(step.requirements),
                backups=added_by(terms, step),
            )
            for number, step in enumerate(terms.escalate)
            if number in steps
        )
    )


async def note_reminded(store: AuditStore, approval: Approval, key: str, at_ms: int) -> None:
    """Record a reminder, identified by the key of its message."""
    await note(
        store,
        Act.REMINDED,
        key=f"{approval.approval_id}:{key}",
        at_ms=at_ms,
        about=approval,
        number=approval.escalation.reminders,
    )


async def note_handover(store: AuditStore, approval: Approval, key: str, at_ms: int) -> None:
    """Record that the new person on call was mentioned, by the message's key."""
    name = f"{approval.approval_id}:{key}"
    await note(store, Act.HANDED_OVER, key=name, at_ms=at_ms, about=approval)


async def note_opened(
    store: AuditStore, approval: Approval, at_ms: int, *, by: str, fields: Sequence[str] = ()
) -> None:
    """Record that a person read all details of a card, without the details.

    Args:
        store: The audit.
        approval: The approval at that time.
        at_ms: When the details were opened.
        by: Slack user id of the reader.
        fields: Names of revealed masked values; empty if only details were read.
    """
    await note(
        store,
        Act.REVEALED if fields else Act.OPENED,
        key=f"{approval.approval_id}:{by}:{at_ms}",
        at_ms=at_ms,
        about=approval,
        by=by,
        digest=approval.digest,
        fields=list(fields) or "",
    )


async def note_refusal(
    store: AuditStore, approval: Approval, at_ms: int, *, by: str, error: UserFacingError
) -> None:
    """Record a click or a form that had no effect.

    If another person decided first, that decision is recorded before, because its process may not
    have written the entry yet.
    """
    key = f"{approval.approval_id}:{by}:{at_ms}"
    why, code = str(error), error.code
    refused = entry_of(Act.REFUSED, key=key, at_ms=at_ms, about=approval, by=by, why=why, code=code)
    newest = error.approval if isinstance(error, ApprovalClosedError) else approval
    decision = newest.decision
    is_new = decision is not None and at_ms - decision.at_ms < _JUST_MS
    before = decision_entries(newest, decision) if decision is not None and is_new else []
    await store.append(*before, refused)


async def note_undeliverable(
    store: AuditStore, approval: Approval, at_ms: int, *, method: str, why: str
) -> None:
    """Record that Slack refused a card."""
    await note(
        store,
        Act.UNDELIVERABLE,
        key=f"{approval.approval_id}:{approval.shown_revision}:{why}",
        at_ms=at_ms,
        about=approval,
        method=method,
        why=why,
    )


_CALLS = frozenset({"arguments", "before", "edited", "asked", "answer"})
"""Evidence of the call, masked like a card: auditors see what approvers saw."""


def masked_evidence(detail: object, masks: Names) -> dict[str, object]:
    """Mask evidence: the call like a card, everything else like a log."""
    if not isinstance(detail, dict):
        return {}
    return {
        name: mask_data(item, masks) if name in _CALLS else mask(name, item)
        for name, item in detail.items()
    }


def _or_empty(value: object) -> object:
    """Return the evidence, or an empty text, which is left out."""
    return "" if value is None else value


def _short(value: object) -> object:
    match value:
        case str() if len(value) > _LONGEST:
            return f"{value[:_LONGEST]}… {len(value) - _LONGEST:,} more characters"
        case dict():
            return {str(name): _short(item) for name, item in value.items()}
        case list():
            return [_short(item) for item in value]
        case _:
            return value


async def note_start(
    store: TakesEntries,
    call: StartingCall,
    approvals: Iterable[Approval],
    at_ms: int,
    *,
    number: int = 0,
) -> None:
    """Record that a gated call is about to run, and that the run has the decisions.

    Args:
        store: Takes the entries.
        call: The call.
        approvals: The decisions that let it run.
        at_ms: The time now.
        number: The start number; 0 for a call that goes on, or that no policy judges.
    """
    start = f"{call.segment}:{number}" if number else str(call.segment)
    entry = entry_of(
        Act.STARTED,
        key=f"{call.checkpoint_id}:{call.address}:{start}",
        at_ms=at_ms,
        about=thread_of(call.checkpoint_id),
        checkpoint=call.checkpoint_id,
        address=call.address,
        number=number or "",
        masks=Names(secret=call.secret, shown=call.shown),
        arguments=dict(call.arguments),
    )
    await store.append(*(resume_entry(approval, at_ms) for approval in approvals), entry)
