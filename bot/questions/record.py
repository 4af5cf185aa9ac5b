"""Create an approval from an interrupt. `base.answer_from` does the reverse."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from agents import InterruptContext
from agents.core.asking.infos import CallInfo, InDoubtInfo
from agents.core.asking.limits import LimitInfo
from agents.core.codec import Json
from agents.graph import Question
from agents.prebuilt.stages import StageInfo
from bot.policy.eligibility import EDITORS, REQUESTERS
from bot.policy.escalation import deadline
from bot.policy.named_terms import NamedPeople, named_terms, under_terms
from bot.ports.people import CHANNEL
from bot.questions.base import QuestionDraft, brief_of, kind_at
from bot.records.approval import APPROVE, Approval, Kind, PriorApproval, StoredEdits
from bot.records.origin import AgentRun, Asker, RequestOrigin, RequestPlace
from bot.records.terms import Terms
from bot.records.thread import Thread
from bot.redaction.call import mask_title
from bot.redaction.mask import mask_words
from bot.words import say
from storage.documents import Part

_MOST_APPROVED = 20
_SUBJECT = 60
"""Maximum length of a message in front of a title, in characters."""
_APPROVER = re.compile(r"channel|[UWS][A-Z0-9]{1,30}")
"""Valid names of approvers in a policy. Other names match no person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings' rules: who decides, and when reminders, escalation and expiry are due.

    Attributes:
        approvers: User ids, user group ids, or `channel`; never empty.
        channels: Ids of the only channels for approvals, where `channel` in `approvers` means the
            members. Empty permits all channels, and then `channel` means no person.
        self_approval: Whether the requester may decide.
        remind_after: Time from the request to the first reminder.
        expire_after: Time from the request to its expiry.
        escalate_after: Time from the request to its escalation; None for no escalation.
        escalate_to: Who may also decide after the escalation, in the form of `approvers`; may be
            empty.
        max_age: Longest time from a decision to the start of its call.
        exclude_editors: Whether editors of a call never approve it, whatever its rule says.
    """

    approvers: tuple[str, ...]
    self_approval: bool
    remind_after: timedelta
    expire_after: timedelta
    escalate_after: timedelta | None = None
    escalate_to: tuple[str, ...] = ()
    max_age: timedelta = timedelta(minutes=15)
    exclude_editors: bool = False
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The thread and the requesters of new approvals.

    Attributes:
        thread: The thread.
        requesters: User ids of all requesters, the latest author first; never empty.
        subject: First message of the turn, for titles that do not name their subject.
    """

    thread: Thread
    requesters: tuple[str, ...]
    subject: str = ""


def approval_id_of(interrupt_id: str) -> str:
    """Return the id of an interrupt's approval: one per interrupt, and unguessable."""
    return f"apr_{uuid.UUID(interrupt_id).hex}"


def approval_from(
    context: InterruptContext, origin: Asked, rules: Rules, *, position: int, now_ms: int
) -> Approval:
    """Build the approval of an interrupt that waits for people; see `asks_people`.

    Args:
        context: The interrupt.
        origin: Its thread and requesters.
        rules: The settings' rules: they give the terms, unless the request has its own.
        position: Number of the interrupt in the turn; the first is 0.
        now_ms: The time of the request.
    """
    brief, thread, info = brief_of(context.info), origin.thread, context.info
    request = NewRequest(
        approval_id=approval_id_of(context.id),
        asker=AgentRun(interrupt_id=context.id, address=str(context.address)),
        thread_id=thread.thread_id,
        turn=thread.turn,
        position=position,
        place=RequestPlace(channel_id=thread.channel_id, thread_ts=thread.thread_ts),
        requesters=origin.requesters,
        title=_titled(brief, origin.subject),
        origin=thread.origin,
    )
    brief = replace(
        brief,
        kind=kind_at(context, brief),
        digest=brief.digest_at(thread.checkpoint_id, str(context.address)),
    )
    approval = new_approval(brief, info, request, rules, now_ms=now_ms)
    if isinstance(info, InDoubtInfo):
        return deciders_from(approval, info.frozen, now_ms=now_ms)
    return approval


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """The parts of a new approval that its question does not have; see `Approval`.

    Attributes:
        title: Verb and object, unmasked.
        answerers: User ids of the only people who may answer a question; empty for all members of
            the channel.
    """

    approval_id: str
    asker: Asker
    thread_id: str
    place: RequestPlace
    requesters: tuple[str, ...]
    title: str
    origin: RequestOrigin
    turn: int = 0
    position: int = 0
    answerers: tuple[str, ...] = ()


def new_approval(
    brief: QuestionDraft, info: object, request: NewRequest, rules: Rules, *, now_ms: int
) -> Approval:
    """Build a pending approval.

    Args:
        brief: The question, with the digest that a decision is bound to.
        info: The info of a call or an interrupt, for the terms; None for a plain question.
        request: The other parts.
        rules: The settings' rules: they give the terms, unless the request has its own.
        now_ms: The time of the request.

    Raises:
        TermsError: The request's own terms cannot be read.
    """
    masks = brief.ask.masks
    terms = _terms(
        _Request(
            kind=brief.kind,
            channel_id=request.place.channel_id,
            requesters=request.requesters,
            rule=brief.rule,
            answerers=request.answerers,
        ),
        info,
        rules,
    )
    return Approval(
        approval_id=request.approval_id,
        kind=brief.kind,
        origin=request.origin,
        asker=request.asker,
        thread_id=request.thread_id,
        turn=request.turn,
        position=request.position,
        place=request.place,
        requester_id=request.requesters[0],
        tool=brief.tool,
        rule=brief.rule,
        # A title like “Rotate {name} with {password}” contains argument values, so mask it.
        title=mask_title(request.title, brief.arguments, masks),
        why=mask_words(mask_title(brief.why, brief.arguments, masks), brief.arguments),
        preview=mask_title(brief.preview, brief.arguments, masks),
        arguments=brief.arguments,
        form=brief.ask.to_data(),
        digest=brief.digest,
        requesters=request.requesters,
        created_ms=now_ms,
        shown_ms=now_ms,
        due_ms=now_ms,
        terms=terms,
        expires_ms=deadline(terms, now_ms),
        **_under_ruling(info),
    )


def _titled(brief: QuestionDraft, subject: str) -> str:
    """Return the title of a draft; put the turn's subject before a vague one."""
    lines = subject.strip().splitlines()
    if not brief.is_vague or not lines:
        return brief.title
    first = " ".join(lines[0].split())
    about = first if len(first) <= _SUBJECT else f"{first[:_SUBJECT].rstrip()}…"
    about = f"{about[:1].upper()}{about[1:]}"
    return say("card.about", subject=about, title=brief.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The facts of a request that its terms depend on.

    Attributes:
        kind: Its kind.
        channel_id: Its channel.
        requesters: User ids, the latest first; never empty.
        rule: Name of the rule that asks.
        answerers: As in `NewRequest`.
    """

    kind: Kind
    channel_id: str
    requesters: tuple[str, ...]
    rule: str
    answerers: tuple[str, ...] = ()


def _terms(request: _Request, info: object, rules: Rules) -> Terms:
    """Return the terms of a request: its own, or those of the settings.

    Raises:
        TermsError: The request's own terms cannot be read.
    """
    named = NamedPeople(
        approvers=rules.approvers,
        backups=rules.escalate_to,
        exclude=_excluded(info, rules),
        expires=rules.expire_after,
        remind=rules.remind_after,
        escalate=rules.escalate_after,
        max_age=rules.max_age,
    )
    if request.kind is Kind.QUESTION:  # every channel member may answer
        answers = request.answerers or (request.requesters[0], CHANNEL)
        named = replace(named, approvers=answers, backups=(), exclude=())
    elif isinstance(info, CallInfo | LimitInfo) and info.terms:
        return Terms.from_text(info.terms)
    elif isinstance(info, CallInfo):
        named = _of_code(info, named)
    return named_terms(_in_place(request, named, rules), rule=request.rule)


def _of_code(info: CallInfo, named: NamedPeople) -> NamedPeople:
    """Return the people and times that code names; it can only shorten expiry and escalation.

    If code names approvers, the settings' backup approvers are ignored. If none of the names is an
    id, no person can decide.
    """
    if info.backups or info.approvers:
        named = replace(named, backups=_valid(info.backups))
    waits = [wait for wait in (named.escalate, info.escalate_in) if wait is not None]
    return replace(
        named,
        approvers=_valid(info.approvers) if info.approvers else named.approvers,
        expires=named.expires if info.expires_in is None else min(named.expires, info.expires_in),
        remind=named.remind if info.remind_in is None else info.remind_in,
        escalate=min(waits) if waits else None,
    )


def _in_place(request: _Request, named: NamedPeople, rules: Rules) -> NamedPeople:
    """Return the people without members of a channel outside the settings, or backup requesters."""
    is_set_up = request.kind is Kind.QUESTION or request.channel_id in rules.channels
    asked = () if rules.self_approval else request.requesters
    return replace(
        named,
        approvers=[name for name in named.approvers if is_set_up or name != CHANNEL],
        backups=[
            name
            for name in dict.fromkeys(named.backups)
            if name not in asked and (is_set_up or name != CHANNEL)
        ],
    )


def _excluded(info: object, rules: Rules) -> tuple[str, ...]:
    asked = () if rules.self_approval else (REQUESTERS,)
    is_excluding = rules.exclude_editors or (isinstance(info, CallInfo) and info.exclude_editors)
    return (*asked, EDITORS) if is_excluding else asked


def rebound(approval: Approval, info: CallInfo, rules: Rules, *, now_ms: int) -> Approval:
    """Return the approval after an edit that brought its call under another ruling.

    Reminders and escalation restart, and approvers are notified at once. The expiry never moves
    later.

    Args:
        approval: The pending approval, as the editor saw it.
        info: The gate's info for the edited call.
        rules: The settings' rules.
        now_ms: The time of the edit.
    """
    brief = brief_of(info)
    changed = approval.changed(
        rule=brief.rule,
        title=mask_title(brief.title, brief.arguments, brief.ask.masks),
        preview=mask_title(brief.preview, brief.arguments, brief.ask.masks),
        arguments=brief.arguments,
        form=brief.ask.to_data(),
        digest=brief.digest,
        **_under_ruling(info),
    )
    request = _Request(
        kind=approval.kind,
        channel_id=approval.channel_id,
        requesters=approval.all_requesters,
        rule=brief.rule,
    )
    changed = under_terms(changed, _terms(request, info, rules), now_ms=now_ms)
    return changed.changed(
        expires_ms=min(changed.expires_ms, approval.expires_ms),
    )


class _KeptAtStart(Part):
    """Data that the start of a call keeps, for the case that its process dies.

    Stored: version 1, must stay readable.
    """

    start_number: int = 0
    members: Mapping[str, tuple[str, ...]] | None = None
    requesters: tuple[str, ...] = ()
    terms: str = ""
    approved: PriorApproval | None = None


def kept_at_start(approval: Approval | None, *, start_number: int = 0) -> dict[str, Json]:
    """Return what the start of a call keeps: its number, and the people who decide about it.

    Args:
        approval: The approval whose people decide a doubt; None without approval.
        start_number: The start number; 0 for none.
    """
    kept = _KeptAtStart(start_number=start_number)
    if approval is not None:
        kept = kept.changed(
            members=approval.members,
            requesters=approval.all_requesters,
            # People who may fill in missing arguments are not approvers.
            terms="" if approval.kind is Kind.QUESTION else approval.terms.text,
            approved=_approved(approval),
        )
    return kept.model_dump(mode="json", exclude_defaults=True)


def start_number_in(kept: Mapping[str, Json]) -> int:
    """Return the start number that a start has kept; 0 for none."""
    number = kept.get("start_number")
    return number if isinstance(number, int) else 0


def _approved(approval: Approval) -> PriorApproval | None:
    """Return who approved a call, and when. After a doubt, that is the first approval."""
    if approval.kind is Kind.DOUBT:
        return approval.prior_approval
    decision = approval.decision
    if decision is None or not decision.by:
        return None
    voters = [vote.by for vote in approval.votes if vote.choice == APPROVE]
    by = [*dict.fromkeys([decision.by, *voters])][:_MOST_APPROVED]
    return PriorApproval(by=tuple(by), at_ms=decision.at_ms)


def deciders_from(approval: Approval, frozen: Mapping[str, Json], *, now_ms: int = 0) -> Approval:
    """Return the approval of a doubt with the deciders that were stored when the call started.

    If nothing was stored, or it cannot be read, the settings' approvers decide.
    """
    try:
        noted = _KeptAtStart.model_validate(
            dict(frozen), strict=False
        )  # JSON has lists, the model has tuples
    except ValueError:
        return approval
    # People who asked since then may not decide, either.
    requesters = tuple(dict.fromkeys((*noted.requesters, *approval.all_requesters)))
    asked = approval.changed(prior_approval=noted.approved, requesters=requesters)
    if not noted.terms:
        return asked
    return under_terms(asked, Terms.from_text(noted.terms), now_ms=now_ms).changed(
        members=noted.members
    )


def _under_ruling(info: object) -> dict[str, Any]:
    """Return the fields of an approval that record its ruling and earlier edits."""
    match info:
        case CallInfo():
            return {
                "ruling": json.loads(info.ruling) if info.ruling else None,
                "counted": tuple(info.counted),
                "edits": StoredEdits(
                    original=info.original, by=info.edited_by, earlier=tuple(info.editors)
                ),
                "asked_again": info.asked_again,
            }
        case Question(asked_again=why) | StageInfo(asked_again=why) | InDoubtInfo(asked_again=why):
            return {"asked_again": why}
        case _:
            return {}


def unknown_names(info: object) -> list[str]:
    """Return the names in a policy's place for approvers that are no valid ids.

    If code also names valid ids, the other names are ignored.
    """
    if not isinstance(info, CallInfo):
        return []
    known = _valid(info.approvers)
    return (
        [] if known and not info.terms else [name for name in info.approvers if name not in known]
    )


def _valid(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that can be approvers."""
    return tuple(name for name in names if _APPROVER.fullmatch(name))
